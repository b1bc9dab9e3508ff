"""Reading: exact ranges, durable ends, confirmed retention, and Arrow that says what the plain reader says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import PeerError
from catchment.gateway.log import Kind, Reached, reached_of, tick
from catchment.gateway.log.files import block, retention
from catchment.gateway.log.files.arrow import read_arrow
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from tests.unit.gateway.kit import LogKit, upload

SMALL = Limits(segment_bytes=1500, reserve_bytes=0)


@pytest.fixture
def log(tmp_path: Path) -> LogKit:
    return LogKit(tmp_path / "log")


def _fill(log: LogKit, blocks: int = 12) -> list[int]:
    writer = log.writer(limits=SMALL)
    offsets: list[int] = []
    for n in range(blocks):
        entries = [upload(10 * n + i, device=f"phone-{i}", payload=bytes([n]) * (7 * i)) for i in range(1, 2 + n % 3)]
        offsets += writer.append(entries, now_us=0)
    return offsets


def test_any_range_gives_exactly_its_entries(log: LogKit) -> None:
    offsets = _fill(log)
    reader = LogReader(log.disk)
    everything = list(reader.read(0, 0))
    assert [offset for offset, _ in everything] == offsets
    for start in [0, *offsets]:
        for end in [*offsets, reader.end(0)]:
            expected = [(offset, entry) for offset, entry in everything if start <= offset < end]
            if start <= end:
                assert list(reader.read(0, start, end)) == expected


def test_arrow_says_what_the_plain_reader_says(log: LogKit) -> None:
    offsets = _fill(log)
    log.writer().append([tick(now=9, reached={"peir/fixes": Reached(5, 6)})], now_us=0)
    reader = LogReader(log.disk)
    for start, end in [(0, reader.end(0)), (offsets[3], offsets[-2]), (offsets[4], offsets[5])]:
        rows = [row for batch in read_arrow(reader, 0, start, end, batch_bytes=900) for row in batch.to_pylist()]
        plain = list(reader.read(0, start, end))
        assert [row["offset"] for row in rows] == [offset for offset, _ in plain]
        for row, (_, entry) in zip(rows, plain, strict=True):
            for name in ("kind", "payload", *block.STRINGS, *block.NUMBERS):
                assert row[name] == getattr(entry, name), name


@given(st.lists(st.sampled_from(["peir/fixes", "peir/steps", "walks/fixes", ""]), min_size=1, max_size=30))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_uploads_of_streams_that_are_not_read_cost_no_row(
    tmp_path_factory: pytest.TempPathFactory, to: list[str]
) -> None:
    log = LogKit(tmp_path_factory.mktemp("log") / "log")
    writer = log.writer(limits=SMALL)
    for n, stream in enumerate(to):
        if stream:
            kind = Kind.PROMISE if n % 5 == 4 else Kind.DATA
            writer.append([msgspec.structs.replace(upload(n), stream=stream, kind=kind)], now_us=0)
        else:
            writer.append([tick(now=n, reached={"peir/steps": Reached(5, 6)})], now_us=0)
    reader = LogReader(log.disk)
    read = {"peir/fixes", "walks/fixes"}
    found = [row for batch in read_arrow(reader, 0, 0, streams=read, batch_bytes=900) for row in batch.to_pylist()]
    kept = [entry for entry in reader.read(0, 0) if entry[1].kind == Kind.TICK or entry[1].stream in read]
    assert [(row["offset"], row["kind"], row["payload"]) for row in found] == [
        (offset, entry.kind, entry.payload) for offset, entry in kept
    ]


def test_an_empty_range_has_no_batches(log: LogKit) -> None:
    offsets = _fill(log)
    assert list(read_arrow(LogReader(log.disk), 0, offsets[2], offsets[2])) == []
    assert list(LogReader(log.disk).read(1, 0)) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bytes_max=st.integers(1, 6000))
def test_boundaries_cut_the_log_without_loss(log: LogKit, bytes_max: int) -> None:
    if not log.segments():
        _fill(log)
    reader = LogReader(log.disk)
    at, seen = 0, []
    while at < reader.end(0):
        upto = reader.boundary(0, at, bytes_max=bytes_max)
        assert upto > at
        part = list(reader.read(0, at, upto))
        assert upto - at <= bytes_max or len(list(reader.blocks(0, at, upto))) == 1
        seen += part
        at = upto
    assert seen == list(reader.read(0, 0))


def test_a_reader_sees_what_a_writer_appends_while_it_runs(log: LogKit) -> None:
    writer, reader = log.writer(limits=SMALL), LogReader(log.disk)
    for n in range(1, 20):
        before = reader.end(0)
        writer.append([upload(n, payload=bytes(200))], now_us=0)
        assert [entry.upto for _, entry in reader.read(0, before)] == [n]


def test_what_is_written_but_not_synced_is_not_seen(log: LogKit) -> None:
    writer, reader = log.writer(), LogReader(log.disk)
    writer.append([upload(1)], now_us=0)
    seen: list[int] = []
    log.disk.on_sync = lambda: seen.append(reader.end(0))
    before = writer.end
    writer.append([upload(2)], now_us=0)
    assert seen == [before] and reader.end(0) > before


def test_only_what_every_reader_confirmed_is_deleted(log: LogKit) -> None:
    _fill(log)
    reader = LogReader(log.disk)
    everything = list(reader.read(0, 0))
    assert retention.trim(log.disk, 0) == [], "nobody has confirmed anything"
    reader.confirm("spark-a", 0, reader.end(0))
    reader.confirm("spark-b", 0, 2000)
    deleted = retention.trim(log.disk, 0)
    assert deleted and reader.start(0) <= 2000
    kept = [(offset, entry) for offset, entry in everything if offset >= reader.start(0)]
    assert list(reader.read(0, reader.start(0))) == kept
    with pytest.raises(PeerError, match="G511"):
        list(reader.read(0, 0))
    assert log.writer().marks.upto("phone-1", "peir/fixes", 1, -7) == 111


def test_retention_never_takes_the_writers_segment(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    reader = LogReader(log.disk)
    reader.confirm("spark", 0, reader.end(0))
    assert retention.trim(log.disk, 0) == []
    writer.append([upload(2)], now_us=0)
    assert [entry.upto for _, entry in reader.read(0, 0)] == [1, 2]


def test_what_must_be_kept_is_kept_whatever_was_confirmed(log: LogKit) -> None:
    _fill(log)
    reader = LogReader(log.disk)
    reader.confirm("spark", 0, reader.end(0))
    assert retention.trim(log.disk, 0, keep_from=0) == []
    assert retention.trim(log.disk, 0) != []


def test_who_keeps_how_much_is_said_and_a_reader_that_leaves_keeps_nothing(log: LogKit) -> None:
    _fill(log)
    reader = LogReader(log.disk)
    full = sum(path.stat().st_size for path in log.segments()[:-1])
    assert retention.held(log.disk, 0) == {retention.NOBODY: full}
    reader.confirm("level", 0, reader.end(0))
    reader.confirm("half", 0, 2000)
    held = retention.held(log.disk, 0)
    assert held["level"] == 0 < held["half"] < full
    retention.trim(log.disk, 0)
    assert retention.held(log.disk, 0) == held, "retention deletes what nobody keeps, and nothing of what is kept"
    assert sum(path.stat().st_size for path in log.segments()[:-1]) == held["half"]
    reader.leave("half")
    retention.trim(log.disk, 0)
    assert retention.held(log.disk, 0) == {"level": 0} and len(log.segments()) == 1


class LeavingDisk(LocalDisk):
    """A disk on which readers leave while another process looks."""

    def list(self, directory: str) -> tuple[str, ...]:
        names = super().list(directory)
        if directory.endswith("/readers"):
            super().delete(f"{directory}/left.json")
        return names


def test_a_reader_that_leaves_at_any_moment_is_no_failure(log: LogKit) -> None:
    _fill(log)
    reader = LogReader(log.disk)
    reader.confirm("level", 0, reader.end(0))
    reader.confirm("left", 0, 0)
    assert retention.trim(LeavingDisk(log.disk.root), 0) != []


def test_ranges_that_do_not_exist_are_refused(log: LogKit) -> None:
    _fill(log)
    reader = LogReader(log.disk)
    with pytest.raises(PeerError, match="G512"):
        list(reader.read(0, 0, reader.end(0) + 1))
    with pytest.raises(PeerError, match="G510"):
        list(reader.read(7, 0, 0))
    with pytest.raises(PeerError, match="G509"):
        reader.confirm("../../etc", 0, 0)
    with pytest.raises(PeerError, match="G512"):
        reader.confirm("spark", 0, reader.end(0) + 1)


def test_a_directory_without_a_log_says_so(log: LogKit) -> None:
    from catchment.gateway.log.files.disk import LocalDisk

    with pytest.raises(PeerError, match="G513"):
        LogReader(LocalDisk(log.disk.root / "p0000"))


def test_ticks_tell_each_streams_progress() -> None:
    entry = tick(now=100, reached={"b": Reached(7, 7), "a": Reached(5, 9)})
    assert entry.kind == Kind.TICK and entry.promise_us == 5
    assert reached_of(entry) == {"a": Reached(5, 9), "b": Reached(7, 7)}
