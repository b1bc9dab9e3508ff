"""The partition's writer: what it returns is durable, what a crash leaves is repaired, anything else is refused."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from catchment.errors import InternalError, PeerError
from catchment.gateway.log import Entry
from catchment.gateway.log.files import block, lease
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from catchment.gateway.log.files.segment import PAGE, Segment, chain
from tests.unit.gateway.kit import LogKit, upload


@pytest.fixture
def log(tmp_path: Path) -> LogKit:
    return LogKit(tmp_path / "log")


def _entries(log: LogKit) -> list[Entry]:
    return [entry for _, entry in LogReader(log.disk).read(0, 0)]


def test_what_was_appended_is_read_back_in_order(log: LogKit) -> None:
    writer = log.writer()
    first = writer.append([upload(1), upload(2)], now_us=0)
    second = writer.append([upload(3)], now_us=0)
    assert first == [0, 1] and second[0] > 1
    assert list(LogReader(log.disk).read(0, 0)) == [(0, upload(1)), (1, upload(2)), (second[0], upload(3))]


def test_an_append_of_nothing_writes_nothing(log: LogKit) -> None:
    writer = log.writer()
    assert writer.append([], now_us=0) == []
    assert writer.end == 0


def test_marks_are_the_same_after_a_restart(log: LogKit) -> None:
    writer = log.writer()
    for upto in range(1, 20):
        writer.append([upload(upto, device=f"phone-{upto % 3}")], now_us=0)
    again = log.writer()
    assert again.marks == writer.marks
    assert again.end == writer.end
    assert again.marks.upto("phone-1", "peir/fixes", 1, -7) == 19


def test_a_torn_tail_of_any_length_is_cut_off(tmp_path: Path) -> None:
    origin = LogKit(tmp_path / "origin")
    writer = origin.writer()
    writer.append([upload(1)], now_us=0)
    acknowledged = writer.end
    # A second block is written but, in this story, the power goes before its sync: any prefix may be there.
    torn = block.encode([upload(2)], offset=writer.end, generation=1, salt=1)
    for length in range(0, len(torn), 7):
        where = tmp_path / f"torn-{length}"
        shutil.copytree(tmp_path / "origin", where)
        log = LogKit(where)
        with log.segments()[0].open("ab") as file:
            file.write(torn[:length])
        restarted = log.writer()
        assert restarted.end == acknowledged
        assert (restarted.repaired.bytes if restarted.repaired else 0) == length
        assert _entries(log) == [upload(1)]
        assert restarted.append([upload(2)], now_us=0) == [acknowledged]


def test_a_whole_block_that_was_never_acknowledged_is_kept_once(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    whole = block.encode([upload(2)], offset=writer.end, generation=1, salt=1)
    with log.segments()[0].open("ab") as file:
        file.write(whole)
    restarted = log.writer()
    # The device will send 2 again, and the mark says that it is here.
    assert restarted.marks.upto("phone", "peir/fixes", 1, -7) == 2
    assert _entries(log) == [upload(1), upload(2)]


@pytest.mark.parametrize("place", ["first", "last"])
def test_harm_to_acknowledged_data_is_refused_with_its_place(log: LogKit, place: str) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    second_at = PAGE + writer.end
    writer.append([upload(2)], now_us=0)
    file = log.segments()[0]
    data = bytearray(file.read_bytes())
    at = PAGE if place == "first" else second_at
    data[at + 100] ^= 4
    file.write_bytes(data)
    with pytest.raises(InternalError, match=rf"G501.*{file.name} at byte {at}"):
        log.writer()
    with pytest.raises(InternalError, match=rf"G501.*{file.name} at byte {at}"):
        _entries(log)


def test_harm_before_an_intact_block_is_refused_even_without_a_mark(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    writer.append([upload(2)], now_us=0)
    file = log.segments()[0]
    data = bytearray(file.read_bytes())
    from catchment.gateway.log.files import segment

    data[segment.MARK_AT : segment.MARK_AT + 16] = segment.mark(0)
    data[PAGE + 90] ^= 1
    file.write_bytes(data)
    with pytest.raises(InternalError, match="and one at offset"):
        log.writer()


def test_a_payload_that_looks_like_a_block_is_only_a_payload(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    # Crafted to look like the block that follows a torn one; the salt is not known to who sends it.
    fake = b"".join(
        [block.encode([upload(9)], offset=writer.end + shift, generation=1, salt=0) for shift in range(300, 340, 8)]
    )
    torn = block.encode([upload(2, payload=fake)], offset=writer.end, generation=1, salt=1)
    with log.segments()[0].open("ab") as file:
        file.write(torn[:-9])
    assert log.writer().end == writer.end


def test_segments_roll_by_size_and_by_time(log: LogKit) -> None:
    writer = log.writer(limits=Limits(segment_bytes=1000, segment_us=60_000_000, reserve_bytes=0))
    writer.append([upload(1, payload=bytes(2000))], now_us=0)
    writer.append([upload(2)], now_us=0)
    assert len(log.segments()) == 2
    writer.append([upload(3)], now_us=60_000_000)
    assert len(log.segments()) == 3
    assert [entry.upto for entry in _entries(log)] == [1, 2, 3]
    assert log.writer().marks == writer.marks


def test_an_idle_segment_is_not_rolled_when_it_is_empty(log: LogKit) -> None:
    writer = log.writer(limits=Limits(segment_us=1, reserve_bytes=0))
    writer.append([upload(1)], now_us=10_000_000)
    assert len(log.segments()) == 1


def test_entries_beyond_a_block_are_split_and_all_there(log: LogKit) -> None:
    writer = log.writer()
    big = bytes(12 << 20)
    offsets = writer.append([upload(n, payload=big) for n in range(1, 6)], now_us=0)
    assert len(set(offsets)) == 5 and offsets == sorted(offsets)
    assert [entry.upto for entry in _entries(log)] == [1, 2, 3, 4, 5]


def test_a_replaced_writer_acknowledges_nothing(log: LogKit) -> None:
    old = log.writer("one")
    old.append([upload(1)], now_us=0)
    new = log.writer("two", now_us=lease.LEASE_US + 1)
    with pytest.raises(PeerError, match="G505"):
        old.append([upload(2)], now_us=lease.LEASE_US + 1)
    new.append([upload(3)], now_us=lease.LEASE_US + 1)
    # What the old one wrote after the new one began lies where nobody looks.
    assert [entry.upto for entry in _entries(log)] == [1, 3]
    assert [entry.upto for entry in _entries(LogKit(log.disk.root))] == [1, 3]
    assert log.writer("two").marks.upto("phone", "peir/fixes", 1, -7) == 3


def test_a_writer_replaced_during_its_sync_acknowledges_nothing(log: LogKit) -> None:
    old = log.writer("one")
    old.append([upload(1)], now_us=0)
    takers = []
    log.disk.on_sync = lambda: takers.append(log.writer("two", now_us=lease.LEASE_US + 1))
    with pytest.raises(PeerError, match="G505"):
        old.append([upload(2)], now_us=0)
    new = takers[0]
    # The block was whole when the new writer looked, so it counts; the device sends it again and the mark knows it.
    assert new.marks.upto("phone", "peir/fixes", 1, -7) == 2
    new.append([upload(3)], now_us=0)
    assert [entry.upto for entry in _entries(log)] == [1, 2, 3]


def test_a_running_lease_is_respected_and_a_released_one_is_not(log: LogKit) -> None:
    one = log.writer("one")
    with pytest.raises(PeerError, match=r"G504.*http://one"):
        log.writer("two", now_us=1)
    one.close()
    assert log.writer("two", now_us=1).lease.generation == 2


def test_renewal_keeps_the_lease_and_fails_once_replaced(log: LogKit) -> None:
    one = log.writer("one")
    one.renew(now_us=lease.LEASE_US)
    with pytest.raises(PeerError, match="G504"):
        log.writer("two", now_us=lease.LEASE_US + 1)
    log.writer("two", now_us=3 * lease.LEASE_US)
    with pytest.raises(PeerError, match="G505"):
        one.renew(now_us=3 * lease.LEASE_US)
    with pytest.raises(PeerError, match="G505"):
        one.restart(now_us=3 * lease.LEASE_US)


def test_a_full_disk_refuses_before_it_is_full_and_recovers(log: LogKit) -> None:
    writer = log.writer(limits=Limits(reserve_bytes=1 << 20))
    writer.append([upload(1)], now_us=0)
    log.disk.free = (1 << 20) + 100
    with pytest.raises(PeerError, match="G506"):
        writer.append([upload(2)], now_us=0)
    log.disk.free = None
    writer.append([upload(2)], now_us=0)
    assert [entry.upto for entry in _entries(log)] == [1, 2]


def test_a_disk_that_fills_during_a_write_leaves_nothing_behind(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    size = log.segments()[0].stat().st_size
    log.disk.write_error = errno.ENOSPC
    with pytest.raises(PeerError, match="G506"):
        writer.append([upload(2)], now_us=0)
    assert log.segments()[0].stat().st_size == size
    log.disk.write_error = None
    writer.append([upload(2)], now_us=0)
    assert [entry.upto for entry in _entries(log)] == [1, 2]


@pytest.mark.parametrize("cut", [True, False])
def test_after_a_failed_sync_the_block_never_counts(log: LogKit, cut: bool) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    log.disk.sync_error, log.disk.truncate_fails = errno.EIO, not cut
    with pytest.raises(InternalError, match="G507"):
        writer.append([upload(2)], now_us=0)
    log.disk.sync_error, log.disk.truncate_fails = None, False
    writer.restart(now_us=0)
    assert writer.marks.upto("phone", "peir/fixes", 1, -7) == 1
    writer.append([upload(2, payload=b"sent again")], now_us=0)
    assert [entry.payload for entry in _entries(log)] == [b"points", b"sent again"]
    assert log.writer().marks == writer.marks


def test_a_block_whose_mark_could_not_be_moved_counts_and_is_there_once(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    log.disk.header_error = errno.EIO
    writer.append([upload(2)], now_us=0)
    assert writer.marks.upto("phone", "peir/fixes", 1, -7) == 2
    log.disk.header_error = None
    again = log.writer()
    assert again.marks == writer.marks
    again.append([upload(3)], now_us=0)
    assert _entries(log) == [upload(1), upload(2), upload(3)]


def test_a_restart_that_found_the_disk_full_is_finished_before_anything_is_acknowledged(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    log.disk.sync_error = errno.EIO
    with pytest.raises(InternalError, match="G507"):
        writer.append([upload(2)], now_us=0)
    log.disk.sync_error = errno.ENOSPC
    with pytest.raises(PeerError, match="G506"):
        writer.restart(now_us=0)
    # The new generation's segment exists and is empty: whatever was appended to the old one now would never be read.
    log.disk.sync_error = None
    writer.append([upload(2)], now_us=0)
    assert _entries(log) == [upload(1), upload(2)]
    writer.abandon()
    assert log.writer().marks.upto("phone", "peir/fixes", 1, -7) == 2


def test_a_torn_header_of_a_new_segment_is_passed_over(log: LogKit) -> None:
    writer = log.writer()
    writer.append([upload(1)], now_us=0)
    writer.abandon()
    (log.disk.root / "p0000/segments" / Segment(writer.end, 2).name).write_bytes(bytes(700))
    again = log.writer()
    assert again.lease.generation == 3
    again.append([upload(2)], now_us=0)
    assert [entry.upto for entry in _entries(log)] == [1, 2]


def test_lost_snapshots_are_made_up_for_by_reading_more(log: LogKit) -> None:
    limits = Limits(segment_bytes=1, reserve_bytes=0)
    writer = log.writer(limits=limits)
    for upto in range(1, 6):
        writer.append([upload(upto)], now_us=0)
    snapshots = sorted((log.disk.root / "p0000" / "segments").glob("*.marks"))
    snapshots[-1].write_bytes(b"\x00harmed")
    snapshots[-2].unlink()
    assert log.writer().marks == writer.marks


def test_the_chain_of_segments_follows_generations() -> None:
    links = chain([Segment(0, 1), Segment(0, 2), Segment(50, 2), Segment(60, 1), Segment(90, 3), Segment(95, 2)])
    assert [(link.segment, link.end) for link in links] == [
        (Segment(0, 2), 50),
        (Segment(50, 2), 90),
        (Segment(90, 3), None),
    ]
