"""Rows and marks in one transaction of a real PostgreSQL: once, in their types, the newest in place of the older."""

from __future__ import annotations

import itertools
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import catchment as cm
from catchment.cloud.publication import shares_of
from catchment.cloud.sinks.postgres.sink import PostgresSink, address
from catchment.errors import PeerError, ProgramError
from catchment.program.types import Schema
from tests.postgres import Postgres
from tests.unit.cloud.sinks.output import OUTPUT, Trip, here, identity, keep, opened, publication, trip

pytestmark = pytest.mark.process
_numbers = itertools.count()


class Kept:
    """A sink into a table of its own."""

    def __init__(self, postgres: Postgres, path: Path, schema: Schema = Trip.schema, keep_what: str = "all") -> None:
        self.postgres = postgres
        self.name = f"trip_{next(_numbers)}"
        self.sink = PostgresSink(
            f"postgres_{self.name}/sink", OUTPUT, schema, postgres.url, self.name, keep_what, 0, str(path / "refused")
        )
        self.output = opened(path)

    def publish(self) -> None:
        publishing = publication(self.sink, self.output)
        publishing.turn(0)
        assert publishing.standing.trouble == ""

    def rows(self, what: str = "*", order: str = "1") -> list[tuple[object, ...]]:
        return self.postgres.rows(f"SELECT {what} FROM {self.name} ORDER BY {order}")


def test_rows_are_there_once_in_their_types(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path)
    keep(kept.output, 1, [trip(1), trip(2, metres=float("nan"))], [trip(3, "bob", metres=float("-inf"))])
    kept.publish()
    keep(kept.output, 2, [trip(4, user="ö\\N'\t")])
    kept.publish()
    kept.publish()
    found = kept.rows(order="lasted")
    assert [row[0] for row in found] == ["ada", "ada", "bob", "ö\\N'\t"]
    assert found[0] == (
        "ada",
        datetime(1970, 1, 1, 6, tzinfo=UTC),
        "car",
        0.25,
        timedelta(minutes=1),
        ["stop 1", "home"],
        b"\x01\x00\xff",
        'a "remark", 1\n',
        False,
    )
    assert str(found[1][3]) == "nan"
    assert (found[2][3], found[2][7]) == (float("-inf"), None)


def test_a_share_that_is_written_again_adds_what_is_not_there(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path)
    keep(kept.output, 1, [trip(1)], [trip(2)])
    # Cut short: one part has written, the other has not, and nothing was noted for all.
    one = kept.sink.open(identity(kept.sink, kept.output))
    shares = shares_of(kept.output.portions(0), OUTPUT, kept.output.path)
    here([one.write(shares[1])])
    keep(kept.output, 2, [trip(3)], [trip(4)])
    kept.publish()
    assert [row[0] for row in kept.rows("lasted", "lasted")] == [timedelta(minutes=n) for n in (1, 2, 3, 4)]


def test_the_latest_of_each_key(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path, keep_what="latest")
    keep(kept.output, 1, [trip(5), trip(7), trip(6)], [trip(2, "bob")])
    kept.publish()
    assert kept.rows('"user", lasted') == [("ada", timedelta(minutes=7)), ("bob", timedelta(minutes=2))]
    keep(kept.output, 2, [trip(4), trip(9, "bob")])
    kept.publish()
    assert kept.rows('"user", lasted') == [("ada", timedelta(minutes=7)), ("bob", timedelta(minutes=9))]


class Hourly(cm.Record):
    """A result that is revised."""

    user: cm.Field[str] = cm.key()
    window_start: cm.Field[cm.Instant]
    window_end: cm.Field[cm.Instant] = cm.event_time()
    revision: cm.Field[int]
    grams: cm.Field[float]


def test_a_revision_takes_the_place_of_what_it_revises(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path, Hourly.schema)

    def hourly(start: int, revision: int, grams: float) -> Hourly:
        return Hourly(
            user="ada",
            window_start=cm.Instant(start),
            window_end=cm.Instant(start + 10),
            revision=revision,
            grams=grams,
        )

    keep(kept.output, 1, [hourly(0, 0, 1.0), hourly(10, 0, 3.0), hourly(0, 1, 2.0)], schema=Hourly.schema)
    kept.publish()
    assert kept.rows("revision, grams", "window_start") == [(1, 2.0), (0, 3.0)]
    keep(kept.output, 2, [hourly(10, 1, 4.0), hourly(0, 0, 1.0)], schema=Hourly.schema)
    kept.publish()
    assert kept.rows("revision, grams", "window_start") == [(1, 2.0), (1, 4.0)]


def test_a_row_that_cannot_be_held_is_quarantined(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path)
    far = 400_000_000_000_000_000
    given = [trip(1, mode="nul\0l"), trip(2), trip(3, at=far), trip(4, stops=("\0",)), trip(5, at=-far)]
    keep(kept.output, 1, given)
    kept.publish()
    assert kept.rows("lasted") == [(timedelta(minutes=2),)]
    (file,) = (tmp_path / "refused").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["given"]["lasted"] // 60_000_000, line["reason"][:6]) for line in lines] == [
        (1, "a text"),
        (3, "an ins"),
        (4, "a text"),
        (5, "an ins"),
    ]


def test_a_table_grows_by_a_field_and_refuses_another_type(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path)
    keep(kept.output, 1, [trip(1)])
    kept.publish()
    postgres.execute(f"ALTER TABLE {kept.name} DROP remark")
    kept.publish()
    assert kept.rows("remark") == [(None,)]
    postgres.execute(f"ALTER TABLE {kept.name} ALTER metres TYPE text")
    with pytest.raises(ProgramError, match=r"E048.*metres"):
        kept.sink.open(identity(kept.sink, kept.output))
    postgres.execute(f"ALTER TABLE {kept.name} ALTER metres TYPE double precision USING metres::double precision")
    kept.publish()


def test_who_was_replaced_and_who_is_another_are_refused(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path)
    keep(kept.output, 1, [trip(1)])
    kept.publish()
    old = kept.sink.open(identity(kept.sink, kept.output))
    keep(kept.output, 2, [trip(2)])
    shares = shares_of(kept.output.portions(1), OUTPUT, kept.output.path)
    newer = opened(tmp_path, 2)
    kept.sink.open(identity(kept.sink, newer))
    with pytest.raises(PeerError, match="E042"):
        here([old.write(shares[0])])
    with pytest.raises(PeerError, match="E042"):
        kept.sink.open(identity(kept.sink, kept.output))
    elsewhere = opened(tmp_path / "elsewhere")
    with pytest.raises(ProgramError, match="E049"):
        kept.sink.open(identity(kept.sink, elsewhere))
    postgres.execute("DELETE FROM catchment_mark")
    kept.sink.open(identity(kept.sink, elsewhere))


def test_a_database_that_comes_back_gets_all_that_waited(postgres: Postgres, tmp_path: Path) -> None:
    kept = Kept(postgres, tmp_path)
    publishing = publication(kept.sink, kept.output)
    keep(kept.output, 1, [trip(1)])
    publishing.turn(0)
    postgres.kill()
    keep(kept.output, 2, [trip(2)])
    again_us = publishing.turn(1_000_000)
    assert again_us == 1_500_000
    assert "OperationalError" in publishing.standing.trouble or "connection" in publishing.standing.trouble
    assert publishing.turn(1_200_000) == again_us, "not before"
    assert publishing.turn(again_us) == again_us + 1_000_000, "later each time"
    postgres.start()
    assert publishing.turn(again_us + 1_000_000) is None
    assert publishing.standing.trouble == ""
    assert len(kept.rows()) == 2


def test_a_machine_without_the_driver_says_so(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(postgres, tmp_path)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ProgramError, match="E047"):
        kept.sink.open(identity(kept.sink, kept.output))


def test_the_address_comes_from_the_environment() -> None:
    assert address("postgresql://$WHO@db/x", {"WHO": "fleet"}) == "postgresql://fleet@db/x"
    with pytest.raises(ProgramError, match="E046"):
        address("$FLEET_DATABASE", {})
