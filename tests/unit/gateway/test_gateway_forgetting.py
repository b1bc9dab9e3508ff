"""A forgotten device is in no byte of the log, and every other entry is where it was, as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.entry import presence
from catchment.gateway.log.files import forgetting, retention
from catchment.gateway.log.files.commit import GroupCommit
from catchment.gateway.log.files.forgetting import Forgetting
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from tests.unit.gateway.kit import LogKit

SECRET = b"forget-me"


def upload(device: str, first: int, *, session: str = "") -> Entry:
    return Entry(
        kind=Kind.DATA,
        device=device,
        user=f"user of {device}",
        stream="fixes",
        session=session,
        first=first,
        count=1,
        upto=first + 1,
        received_us=first,
        payload=f"{device} was at {first}".encode() * 3,
    )


@pytest.fixture
def kit(tmp_path: Path) -> LogKit:
    return LogKit(tmp_path)


def everything(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


def entries(kit: LogKit) -> list[tuple[int, Entry]]:
    reader = LogReader(kit.disk)
    return list(reader.read(0, reader.start(0)))


def fill(kit: LogKit, *, offline: bool = True) -> None:
    """Three lives of a writer, of small segments, with both devices in most blocks."""
    for life in range(3):
        writer = kit.writer(now_us=life, limits=Limits(segment_bytes=3_000, reserve_bytes=0))
        for number in range(12):
            first = life * 12 + number
            mixed = [upload("forget-me", first, session="5e551011"), upload("other", first)]
            writer.append(mixed if number % 3 else mixed[1:], now_us=first)
        away = presence(device="forget-me", user="user of forget-me", online=not offline, since=1, now=1)
        writer.append([away], now_us=100)
        writer.close()


def work(kit: LogKit, now_us: int = 1000) -> None:
    writer = kit.writer(now_us=now_us)
    forgetting_ = Forgetting(kit.disk)
    while forgetting_.step(writer, now_us=now_us):
        pass
    writer.close()


def test_no_byte_names_it_and_others_are_where_they_were(kit: LogKit, tmp_path: Path) -> None:
    fill(kit)
    before = entries(kit)
    assert everything(tmp_path).count(SECRET) > 50
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500)
    work(kit)
    assert forgetting.asked(kit.disk, 0) == []
    assert SECRET not in everything(tmp_path)
    assert b"5e551011" not in everything(tmp_path)
    after = entries(kit)
    assert [offset for offset, _ in after[:-1]] == [offset for offset, _ in before]
    for (_, was), (_, now) in zip(before, after[:-1], strict=True):
        if was.device == "forget-me":
            assert now.kind == Kind.EMPTIED
            assert now.payload == bytes(len(was.payload))
            assert not (now.device + now.user + now.session).strip("\0")
        else:
            assert now == was
    again = kit.writer(now_us=2000)
    assert set(again.marks.devices) == {"other"}
    again.append([upload("other", 99)], now_us=2000)
    again.close()


def test_a_crash_in_between_is_no_harm(kit: LogKit, tmp_path: Path) -> None:
    fill(kit)
    before = [entry for _, entry in entries(kit) if entry.device == "other"]
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500)
    for steps in range(1, 80, 4):  # each life adds a segment that is empty
        writer = kit.writer(now_us=1000 + steps)
        started = Forgetting(kit.disk)
        if not all(started.step(writer, now_us=1000) for _ in range(steps)):
            break
        writer.abandon()
    assert SECRET not in everything(tmp_path)
    assert [entry for _, entry in entries(kit) if entry.device == "other"] == before


def test_one_that_is_connected_is_waited_for(kit: LogKit, tmp_path: Path) -> None:
    fill(kit, offline=False)
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500)
    work(kit)
    assert len(forgetting.asked(kit.disk, 0)) == 1
    work(kit, now_us=500 + forgetting.PATIENCE_US)
    assert SECRET not in everything(tmp_path)


def test_readers_are_told_first(kit: LogKit, tmp_path: Path) -> None:
    fill(kit)
    reader = LogReader(kit.disk)
    reader.confirm("spark", 0, 0)
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500, user="user of forget-me", all_of_user=True)
    work(kit)
    (told,) = [entry for _, entry in entries(kit) if entry.device == "forget-me"]
    assert (told.kind, told.user, told.count) == (Kind.FORGOTTEN, "user of forget-me", 1)
    reader.confirm("spark", 0, reader.end(0))
    work(kit)
    assert SECRET not in everything(tmp_path)
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500)
    work(kit)
    assert SECRET in everything(tmp_path)
    work(kit, now_us=501 + forgetting.UNREAD_US)
    assert SECRET not in everything(tmp_path), "a reader that reads no more is not waited for beyond a day"


def test_what_comes_after_under_that_name_stays(kit: LogKit) -> None:
    fill(kit)
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500)
    writer = kit.writer(now_us=1000)
    work_ = Forgetting(kit.disk)
    assert work_.step(writer, now_us=1000)
    writer.append([upload("forget-me", 0)], now_us=1001)
    while work_.step(writer, now_us=1002):
        pass
    writer.close()
    assert [entry.first for _, entry in entries(kit) if entry.device == "forget-me"] == [0]


def test_the_writer_at_work_does_it(kit: LogKit, tmp_path: Path) -> None:
    fill(kit)
    now_us = 1000
    commit = GroupCommit(kit.writer(now_us=now_us), kit.disk, clock_us=lambda: now_us)
    forgetting.ask(kit.disk, 0, "forget-me", now_us=500)
    now_us += 60_000_001
    for first in range(100, 140):
        commit.append([upload("other", first)])
        if not forgetting.asked(kit.disk, 0):
            break
    commit.close()
    assert SECRET not in everything(tmp_path)


def test_a_year_of_a_log_that_is_read_stays_small(kit: LogKit) -> None:
    writer = kit.writer()
    reader = LogReader(kit.disk)
    for week in range(52):
        writer.append([upload("other", week)], now_us=week * 7 * 86_400_000_000)
        if week % 2:
            reader.confirm("spark", 0, reader.end(0))
            retention.trim(kit.disk, 0)
            assert len(kit.disk.list("p0000/segments")) <= 2 * 2
    writer.close()
