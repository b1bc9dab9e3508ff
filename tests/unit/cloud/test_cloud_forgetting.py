"""Forgetting a device: no byte of its data directory and no row of its tables speaks of it, and others are whole."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import catchment as cm
from catchment.cli import main
from catchment.cloud.keeping import TABLES
from catchment.cloud.sinks.declared import sinks_of
from catchment.cloud.tables import open_table
from catchment.errors import PeerError
from catchment.gateway.downlink import Keep, Mark, Result, to_device, to_user
from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.stores import open_downlink, open_enrolment
from catchment.plan import document
from tests.postgres import Postgres
from tests.unit.cloud.sinks.output import Trip, keep, opened, publication, trip

pytestmark = pytest.mark.process
NAMES = {"phone-of-ada": "ada-lovelace", "phone-of-bob": "bob-builder"}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres().start()
    yield server
    server.stop()


def program(folder: Path) -> cm.Program:
    rides = cm.Program("rides")

    @rides.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Trip]:
        return device.sensor(Trip, "trips")

    @rides.stream(at=cm.CLOUD)
    def trips(fixes: cm.Stream[Trip]) -> cm.Stream[Trip]:
        return fixes.where(Trip.metres >= 0)

    rides.sink(trips, "parquet", path=str(folder / "kept"), by=Trip.user)
    rides.sink(trips, "postgres", url="$FORGET_DATABASE", table="forgotten_trip")
    return rides


def filled(data: Path, folder: Path) -> list[tuple[int, int, Entry]]:
    """A data directory in which two users have left something everywhere; what the log holds."""
    store = open_enrolment(data)
    for device, user in NAMES.items():
        token = store.token(user=user, program="rides", now_us=0, valid_us=10**15)
        given = store.enrol(token, device=device, now_us=1)
        store.prove(device, given.credential)
    store.close()
    disk, salts = LocalDisk(data / "log"), itertools.count(1)
    layout.create(disk, partitions=2)
    for number in range(2):
        limits = Limits(segment_bytes=2_000, reserve_bytes=0)
        writer = Partition(disk, number, holder="g", address="", now_us=0, salt=lambda: next(salts), limits=limits)
        for first in range(20):
            entries = [
                Entry(
                    kind=Kind.DATA,
                    device=device,
                    user=user,
                    stream="rides/fixes",
                    first=first,
                    count=1,
                    upto=first + 1,
                    received_us=first,
                    payload=f"{user} {first}".encode(),
                )
                for device, user in NAMES.items()
                if layout.partition_of(device, 2) == number
            ]
            writer.append(entries, now_us=first)
        writer.close()
    downlink = open_downlink(data)
    for number, (device, user) in enumerate(NAMES.items()):
        for target in (to_device(device), to_user(user)):
            results = [Result(target, "rides/trips", b"\0" * 8, "msgpack", f"for {user}".encode())]
            downlink.append(Mark("rides", f"trips/{number}-{target[0]}", 1, 0, ""), results, keep=Keep.ALL, now_us=1)
    downlink.close()
    plan = cm.build(program(folder))
    (part,) = plan.at(cm.CLOUD)
    home = data / "programs" / "rides"
    (home / part.name).mkdir(parents=True)
    (home / "plan.json").write_bytes(document.write(plan))
    (home / part.name / TABLES).write_bytes(msgspec.json.encode({"parquet_trips/sink": str(folder / "kept")}))
    output = opened(home / part.name)
    sinks = sinks_of(plan, part, home / part.name, data / "quarantine")
    for epoch in range(3):
        users = [*NAMES.values()]
        keep(output, epoch, [trip(epoch, users[0]), trip(epoch, users[1])], name=sinks[0].output)
        if epoch < 2:
            for sink in sinks:
                publishing = publication(sink, output)
                publishing.turn(0, gather=False)
                assert publishing.standing.trouble == ""
    output.trim(2)
    quarantine = data / "quarantine" / "programs" / "rides"
    quarantine.mkdir(parents=True)
    lines = [f'{{"step":"trips","reason":"claims to be of {user}","given":["{user}",1]}}\n' for user in NAMES.values()]
    (quarantine / "1.jsonl").write_text("".join(lines))
    return everything_logged(data)


def everything_logged(data: Path) -> list[tuple[int, int, Entry]]:
    log = open_log(data / "log")
    return [(number, *one) for number in range(log.partitions) for one in log.read(number, log.start(number))]


def named(root: Path, name: str) -> list[str]:
    """The files that hold a name, in their bytes or their paths."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return [str(path) for path in paths if name.encode() in path.read_bytes() or name in str(path.relative_to(root))]


def test_nothing_is_left_of_a_device_and_all_of_another(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORGET_DATABASE", postgres.url)
    data = tmp_path / "data"
    data.mkdir()
    before = filled(data, tmp_path)
    for name in ("phone-of-ada", "ada-lovelace"):
        assert len(named(tmp_path, name)) >= 4
    bobs = named(tmp_path, "bob-builder")
    assert main(["forget", "phone-of-ada", "--data", str(data)]) == 0
    said = capsys.readouterr().out
    assert "forgotten: phone-of-ada of ada-lovelace" in said
    assert "parquet_trips/sink: 2 rows deleted" in said
    assert "postgres_trips/sink: 2 rows deleted" in said
    assert "1 results deleted; quarantine: 1 lines deleted" in said
    for name in ("phone-of-ada", "ada-lovelace"):
        assert named(tmp_path, name) == []
    lists = {path for path in bobs if "_catchment" in path}
    assert set(bobs) - lists <= set(named(tmp_path, "bob-builder"))
    after = everything_logged(data)
    assert {place[:2] for place in before} <= {place[:2] for place in after}, "offsets are what they were"
    assert [one for one in after if one[2].device == "phone-of-bob"] == [
        one for one in before if one[2].device == "phone-of-bob"
    ]
    kept = open_table(tmp_path / "kept").rows()
    assert kept["user"].to_pylist() == ["bob-builder"] * 2
    assert postgres.rows('SELECT "user", count(*) FROM forgotten_trip GROUP BY 1') == [("bob-builder", 2)]
    store = open_enrolment(data)
    with pytest.raises(PeerError, match="G523"):
        store.prove("phone-of-ada", "whatever")
    store.close()
    assert main(["forget", "--user", "bob-builder", "--data", str(data)]) == 0
    assert named(tmp_path, "bob-builder") == []
    assert main(["forget", "phone-of-ada", "--data", str(data)]) == 0, "again is no harm"


def test_who_is_said_clearly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", "--data", str(tmp_path)]) == 2
    assert "E051" in capsys.readouterr().err
    assert main(["forget", "phone", "--data", str(tmp_path)]) == 2
    assert "E052" in capsys.readouterr().err


def test_a_gateway_that_writes_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_enrolment(tmp_path).close()
    disk, salts = LocalDisk(tmp_path / "log"), itertools.count(1)
    layout.create(disk, partitions=1)
    now_us = time.time_ns() // 1000
    limits = Limits(reserve_bytes=0)
    held = Partition(disk, 0, holder="g", address="", now_us=now_us + 10**9, salt=lambda: next(salts), limits=limits)
    assert main(["forget", "phone", "--data", str(tmp_path), "--wait", "0"]) == 1
    assert "not done: it goes on by itself" in capsys.readouterr().out
    held.close()
    assert main(["forget", "phone", "--data", str(tmp_path), "--wait", "0"]) == 0
