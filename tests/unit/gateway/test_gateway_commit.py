"""Group commit: uploads share syncs, each hears its own outcome, and failures show in the state."""

from __future__ import annotations

import errno
import itertools
import threading
from pathlib import Path

import msgspec
import pytest

from catchment.errors import CatchmentError, InternalError, PeerError
from catchment.gateway.log import NO_INSTANT, Entry, Kind, reached_of
from catchment.gateway.log.files import layout, lease
from catchment.gateway.log.files.commit import RESTART_US, GroupCommit, Outcome, State
from catchment.gateway.log.files.faults import FailingDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.log.files.reader import LogReader


class Kit:
    """One partition with its thread, and a clock that only the test moves."""

    def __init__(self, root: Path) -> None:
        self.disk = FailingDisk(root)
        layout.create(self.disk, partitions=1)
        self.now_us = 0
        self._salts = itertools.count(1)
        self.commit = GroupCommit(self.open("one"), self.disk, clock_us=lambda: self.now_us)

    def open(self, holder: str) -> Partition:
        return Partition(
            self.disk,
            0,
            holder=holder,
            address="",
            now_us=self.now_us,
            salt=lambda: next(self._salts),
            limits=Limits(reserve_bytes=0),
        )

    def state(self) -> State:
        return self.commit.state

    def logged(self) -> list[int]:
        return [entry.first for _, entry in LogReader(self.disk).read(0, 0) if entry.kind == Kind.DATA]


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


def _upload(first: int) -> Entry:
    return Entry(kind=Kind.DATA, device="d", stream="s", first=first, count=1, upto=first + 1, received_us=0)


def test_uploads_that_wait_for_a_sync_share_the_next(kit: Kit) -> None:
    answered: dict[int, Outcome] = {}
    all_in, held = threading.Event(), threading.Event()
    everyone = threading.Barrier(2)

    def submit_many_during_the_sync() -> None:
        held.set()
        assert all_in.wait(10)

    def done(first: int, outcome: Outcome) -> None:
        answered[first] = outcome
        if len(answered) == 51:
            everyone.wait(10)

    kit.disk.on_sync = submit_many_during_the_sync
    kit.commit.submit([_upload(0)], lambda outcome: done(0, outcome))
    assert held.wait(10)
    for first in range(1, 51):
        kit.commit.submit([_upload(first)], lambda outcome, first=first: done(first, outcome))  # type: ignore[misc]
    all_in.set()
    everyone.wait(10)
    assert kit.commit.groups == 2
    offsets = {offset: entry.first for offset, entry in LogReader(kit.disk).read(0, 0)}
    assert offsets == {outcome[0]: first for first, outcome in answered.items() if isinstance(outcome, list)}
    assert len(offsets) == 51 and kit.commit.pending_bytes == 0
    kit.commit.close()


def test_a_full_disk_shows_and_passes(kit: Kit) -> None:
    kit.commit.append([_upload(0)])
    kit.disk.write_error = errno.ENOSPC
    with pytest.raises(PeerError, match="G506"):
        kit.commit.append([_upload(1)])
    assert kit.state() is State.FULL
    kit.disk.write_error = None
    kit.commit.append([_upload(1)])
    assert kit.state() is State.WRITING
    kit.commit.close()
    assert kit.logged() == [0, 1]


def test_a_failed_disk_rests_and_then_starts_anew(kit: Kit) -> None:
    kit.commit.append([_upload(0)])
    kit.disk.sync_error = errno.EIO
    with pytest.raises(InternalError, match="G507"):
        kit.commit.append([_upload(1)])
    assert kit.state() is State.FAILED
    kit.now_us += 1
    with pytest.raises(InternalError):
        kit.commit.append([_upload(1)])
    kit.disk.sync_error = None
    with pytest.raises(InternalError):
        kit.commit.append([_upload(1)])
    kit.now_us += RESTART_US
    kit.commit.append([_upload(1)])
    assert kit.state() is State.WRITING
    kit.commit.close()
    assert kit.logged() == [0, 1]


def test_a_replaced_writer_ends_and_answers_everyone(kit: Kit) -> None:
    kit.commit.append([_upload(0)])
    kit.now_us = lease.LEASE_US + 1
    other = kit.open("two")
    with pytest.raises(PeerError, match="G505"):
        kit.commit.append([_upload(1)])
    with pytest.raises(CatchmentError, match="G518"):
        kit.commit.append([_upload(2)])
    assert kit.state() is State.REPLACED
    other.append([_upload(3)], now_us=kit.now_us)
    kit.commit.close()
    assert kit.logged() == [0, 3]


def test_closing_writes_what_waits_and_frees_the_lease(kit: Kit) -> None:
    outcomes: list[Outcome] = []
    for first in range(20):
        kit.commit.submit([_upload(first)], outcomes.append)
    kit.commit.close()
    assert all(isinstance(outcome, list) for outcome in outcomes) and len(outcomes) == 20
    assert kit.state() is State.CLOSED
    assert kit.open("two").lease.generation == 2
    assert kit.logged() == list(range(20))


def test_the_lease_is_renewed_and_confirmed_segments_are_trimmed_by_the_thread(kit: Kit) -> None:
    kit.commit.append([_upload(0)])
    kit.commit.close()
    kit.commit = GroupCommit(kit.open("one"), kit.disk, clock_us=lambda: kit.now_us)
    reader = LogReader(kit.disk)
    kit.commit.append([_upload(1)])
    reader.confirm("spark", 0, reader.end(0))
    kit.now_us += 120_000_000
    # The clock is the test's, so an upload is what wakes the thread; the one after it finds both chores done.
    kit.commit.append([_upload(2)])
    kit.commit.append([_upload(3)])
    assert lease.read(kit.disk, "p0000").expires_us > kit.now_us
    assert reader.start(0) > 0
    kit.commit.close()
    kept = [entry for _, entry in reader.read(0, reader.start(0))]
    assert [entry.first for entry in kept if entry.kind == Kind.DATA] == [1, 2, 3]


def test_a_tick_knows_no_less_than_what_stands_before_it(kit: Kit) -> None:
    """A source whose first upload shares its block has promised less than the others: the tick comes before it."""
    kit.commit.append([msgspec.structs.replace(_upload(0), promise_us=90)])
    kit.now_us += 1_500_000
    kit.commit.append([msgspec.structs.replace(_upload(0), device="late", promise_us=40)])
    kit.now_us += 1_500_000
    kit.commit.append([_upload(1)])
    kit.commit.close()
    promised: dict[str, int] = {}
    reached: list[int] = []
    for _, entry in LogReader(kit.disk).read(0, 0):
        if entry.kind == Kind.TICK:
            reached.append(reached_of(entry)["s"].all_us)
            assert reached[-1] <= min(promised.values())
        else:
            promised[entry.device] = max(entry.promise_us, promised.get(entry.device, NO_INSTANT))
    assert reached == [90, 40]


def test_time_is_logged_while_a_window_may_be_open(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    kit.commit.append([_upload(0)])
    kit.now_us += 1_500_000
    kit.commit.append([_upload(1)])
    kit.commit.close()
    kinds = [entry.kind for _, entry in LogReader(kit.disk).read(0, 0)]
    assert sorted(kinds) == [Kind.DATA, Kind.DATA, Kind.TICK]
