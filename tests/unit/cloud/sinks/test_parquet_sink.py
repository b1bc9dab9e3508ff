"""Files under a list: what counts is in the list, once, whatever was cut short; small files become larger ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import catchment as cm
from catchment.cli import main
from catchment.cloud.publication import shares_of
from catchment.cloud.sinks.parquet import sink as parquet
from catchment.cloud.sinks.parquet.listing import FOLDER, WHOLE_EVERY
from catchment.cloud.sinks.parquet.sink import ParquetSink
from catchment.cloud.tables import open_table
from catchment.errors import PeerError, ProgramError
from tests.unit.cloud.sinks.output import OUTPUT, Trip, here, identity, keep, opened, publication, trip


def sink(path: Path, *by: str, every_us: int = 0) -> ParquetSink:
    return ParquetSink("parquet_trips/sink", OUTPUT, Trip.schema, str(path / "kept"), by, every_us)


def rows(path: Path) -> list[tuple[str, int]]:
    table = open_table(path / "kept").rows()
    return sorted(zip(table["user"].to_pylist(), table["lasted"].to_pylist(), strict=True))


def test_readers_find_each_result_once_as_it_was(tmp_path: Path) -> None:
    output = opened(tmp_path)
    keep(output, 1, [trip(1), trip(2)], [trip(3, "bob")])
    keep(output, 2, [trip(4)])
    assert publication(sink(tmp_path), output).turn(0) is None
    table = open_table(tmp_path / "kept")
    assert len(table.files()) == 2, "one per part"
    found = {row["lasted"]: row for row in table.rows().to_pylist()}
    assert set(found) == {60_000_000 * n for n in (1, 2, 3, 4)}
    one = trip(2)
    row = found[120_000_000]
    assert {name: row[name] for name in ("user", "mode", "metres", "photo", "remark", "night")} == {
        "user": one.user,
        "mode": "walk",
        "metres": 0.5,
        "photo": one.photo,
        "remark": one.remark,
        "night": False,
    }
    assert row["stops"] == list(one.stops)
    assert row["at"].isoformat() == "1970-01-01T12:00:00+00:00"


def test_folders_by_field_are_read_by_others(tmp_path: Path) -> None:
    output = opened(tmp_path)
    keep(output, 1, [trip(n) for n in range(8)], [trip(9, mode="a/b=c"), trip(10, mode="")])
    publication(sink(tmp_path, "mode", "at"), output).turn(0)
    table = open_table(tmp_path / "kept")
    folders = {file.rpartition("/")[0].removeprefix(f"{tmp_path}/kept/") for file in table.files()}
    assert {"mode=walk/at_day=1970-01-01", "mode=a%2Fb%3Dc/at_day=1970-01-03"} <= folders
    assert table.rows().num_rows == 10
    query = f"SELECT count(*), max(lasted) FROM read_parquet({table.files()}) WHERE mode = 'car'"
    asked = duckdb.connect().execute(query).fetchall()
    assert asked == [(4, 7 * 60_000_000)]


def test_what_is_not_in_the_list_does_not_count(tmp_path: Path) -> None:
    output = opened(tmp_path)
    keep(output, 1, [trip(1)])
    kept = sink(tmp_path)
    # Cut short between the files and the list:
    one = kept.open(identity(kept, output))
    here([one.write(share) for share in shares_of(output.portions(0), OUTPUT, output.path)])
    assert len(list((tmp_path / "kept").glob("*.parquet"))) == 1
    assert rows(tmp_path) == []
    keep(output, 2, [trip(2)])
    publication(kept, output).turn(0)
    assert [lasted for _, lasted in rows(tmp_path)] == [60_000_000, 120_000_000]
    stray = {path.name for path in (tmp_path / "kept").glob("*.parquet")} - {
        Path(file).name for file in open_table(tmp_path / "kept").files()
    }
    assert len(stray) == 1
    for name in stray:
        os.utime(tmp_path / "kept" / name, (0, 0))
    kept.open(identity(kept, output)).chores()
    assert len(list((tmp_path / "kept").glob("*.parquet"))) == 1


def test_a_year_of_small_batches_is_not_a_year_of_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GRACE_S", -1.0)
    monkeypatch.setattr(parquet, "MERGE_FILES", 4)
    output = opened(tmp_path)
    publishing = publication(sink(tmp_path, "mode"), output)
    for epoch in range(70):
        keep(output, epoch, [trip(epoch)])
        publishing.turn(epoch)
        assert publishing.standing.trouble == ""
        output.trim(publishing.upto or 0)
    assert [lasted for _, lasted in rows(tmp_path)] == [60_000_000 * n for n in range(70)]
    table = open_table(tmp_path / "kept")
    assert len(table.files()) <= 2 * 2 * parquet.MERGE_FILES
    assert len(list((tmp_path / "kept").rglob("*.parquet"))) <= 2 * 2 * parquet.MERGE_FILES + 2
    assert len(list((tmp_path / "kept" / FOLDER).iterdir())) <= 2 * WHOLE_EVERY + 4
    assert len(list((tmp_path / "results").rglob("*"))) < 10
    for file in table.files():
        assert pq.ParquetFile(file).metadata.num_rows >= 1


def test_results_gather_until_they_are_due_or_many(tmp_path: Path) -> None:
    output = opened(tmp_path)
    publishing = publication(sink(tmp_path, every_us=10_000_000), output)
    keep(output, 1, [trip(1)])
    assert publishing.turn(5_000_000) == 15_000_000
    keep(output, 2, [trip(2)])
    assert publishing.turn(14_000_000) == 15_000_000
    assert rows(tmp_path) == []
    assert publishing.turn(15_000_000) is None
    assert len(rows(tmp_path)) == 2
    keep(output, 3, [trip(3)])
    publishing.turn(16_000_000, gather=False)
    assert len(rows(tmp_path)) == 3, "a sink that is closed writes what has gathered"


def test_who_was_replaced_and_who_is_another_are_refused(tmp_path: Path) -> None:
    output = opened(tmp_path)
    kept = sink(tmp_path)
    old = kept.open(identity(kept, output))
    keep(output, 1, [trip(1)])
    newer = opened(tmp_path, 2)
    kept.open(identity(kept, newer))
    with pytest.raises(PeerError, match="E042"):
        old.commit(output.portions(0), [b"[]"])
    elsewhere = opened(tmp_path / "elsewhere", 3)
    with pytest.raises(ProgramError, match="E043"):
        kept.open(identity(kept, elsewhere))
    with pytest.raises(ProgramError, match="E044"):
        open_table(tmp_path / "nothing")


def test_a_list_that_is_gone_at_every_look_is_said(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / f"{1:020d}.json").symlink_to(tmp_path / "gone")
    with pytest.raises(PeerError, match="E045"):
        open_table(tmp_path)


def test_the_command_shows_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = opened(tmp_path)
    keep(output, 1, [trip(1), trip(2)])
    publication(sink(tmp_path), output).turn(0)
    kept = str(tmp_path / "kept")
    assert main(["table", kept]) == 0
    assert "Trip, kept by parquet_trips/sink of peir\n  version 2: 2 results in 1 files" in capsys.readouterr().out
    assert main(["table", kept, "--files"]) == 0
    assert capsys.readouterr().out.split() == open_table(kept).files()
    assert main(["table", kept, "--rows", "--latest"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (first["at"], first["photo"]) == ("1970-01-01T06:00:00+00:00", "0100ff")
    assert main(["table", str(tmp_path / "results")]) == 2
    assert "E044" in capsys.readouterr().err


class Hourly(cm.Record):
    """A result that is revised."""

    user: cm.Field[str] = cm.key()
    window_start: cm.Field[cm.Instant]
    window_end: cm.Field[cm.Instant] = cm.event_time()
    revision: cm.Field[int]
    grams: cm.Field[float]


def test_the_highest_revision_is_the_latest(tmp_path: Path) -> None:
    output = opened(tmp_path)

    def hourly(user: str, start: int, revision: int, grams: float) -> Hourly:
        return Hourly(
            user=user, window_start=cm.Instant(start), window_end=cm.Instant(start + 10), revision=revision, grams=grams
        )

    keep(output, 1, [hourly("ada", 0, 0, 1.0), hourly("bob", 0, 0, 2.0)], schema=Hourly.schema)
    keep(output, 2, [hourly("ada", 0, 2, 1.5), hourly("ada", 10, 0, 9.0)], schema=Hourly.schema)
    kept = ParquetSink("parquet_hourly/sink", OUTPUT, Hourly.schema, str(tmp_path / "kept"), (), 0)
    publication(kept, output).turn(0)
    table = open_table(tmp_path / "kept")
    assert table.rows().num_rows == 4
    latest = table.rows(latest=True).to_pylist()
    assert sorted((row["user"], row["revision"], row["grams"]) for row in latest) == [
        ("ada", 0, 9.0),
        ("ada", 2, 1.5),
        ("bob", 0, 2.0),
    ]
