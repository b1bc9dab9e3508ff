"""Group commit: many uploads, one sync, and acknowledgements only after it.

A partition has one thread. Whatever was submitted while it synced goes into the next block together, so the busier the
gateway, the fewer syncs per upload, and an idle one answers after a single sync. The thread is also the one that
renews the lease, restarts the partition after a failed disk, trims what readers confirmed and forgets devices: nobody
else touches the writer. Knows the partition, and a `Drive` that gives it turns: a thread, or the simulator's clock.
Must not know sockets or what an entry means.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from catchment.errors import CatchmentError, InternalError
from catchment.gateway.log.entry import Entry
from catchment.gateway.log.files import block, lease, retention
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.forgetting import Forgetting
from catchment.gateway.log.files.partition import Partition
from catchment.gateway.log.files.segment import Segment
from catchment.gateway.log.progress import Ticker

Outcome: TypeAlias = list[int] | CatchmentError
"""The offsets, durable; or why not, and then none of these entries is in the log."""
Done: TypeAlias = Callable[[Outcome], None]
RESTART_US = 1_000_000
"""How long a failed partition rests between two attempts to start anew."""
Deliver: TypeAlias = Callable[[list[tuple[Done, Outcome]]], None]
"""Called once per group, on the partition's thread; a service hands the list to its event loop."""


class State(Enum):
    """What a partition's writer can do."""

    WRITING = "writing"
    FULL = "full"
    """The disk is nearly full: uploads are refused until there is room."""
    FAILED = "failed"
    """The disk failed; the writer starts anew at the next chance."""
    REPLACED = "replaced"
    """Another gateway writes this partition now."""
    CLOSED = "closed"


class Ticks(NamedTuple):
    """How often a partition ticks, and for how long after its last data: as long as a window may stay open."""

    every_us: int = 1_000_000
    horizon_us: int = 3_600_000_000


TICKS = Ticks()


class Submitted(NamedTuple):
    """What waits to be written."""

    entries: Sequence[Entry]
    done: Done
    weight: int
    """About how many bytes."""


class Drive(Protocol):
    """What gives a partition its turns, one after the other."""

    def start(self, name: str, turn: Callable[[], int | None]) -> None:
        """Call `turn` now, and again whenever it says or `wake` is called; until it answers None."""
        ...

    def wake(self) -> None:
        """There is something to do. Called by any thread."""
        ...

    def join(self, timeout_s: float) -> None:
        """Return when the last turn has ended, or after so long."""
        ...


class ThreadDrive:
    """Turns on a thread of their own."""

    def __init__(self, clock_us: Callable[[], int]) -> None:
        self._clock_us = clock_us
        self._changed = threading.Condition()
        self._woken = False
        self._thread: threading.Thread | None = None

    def start(self, name: str, turn: Callable[[], int | None]) -> None:
        self._thread = threading.Thread(target=self._run, args=(turn,), name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        if self._woken:
            # Its next turn is still to come, and sees what there is to do.
            return
        with self._changed:
            self._woken = True
            self._changed.notify()

    def join(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, turn: Callable[[], int | None]) -> None:
        while (due_us := turn()) is not None:
            with self._changed:
                if not self._woken:
                    self._changed.wait(max(0, due_us - self._clock_us()) / 1e6)
                self._woken = False


class GroupCommit:
    """The writer of one partition, at work."""

    def __init__(
        self,
        partition: Partition,
        disk: Disk,
        *,
        clock_us: Callable[[], int],
        deliver: Deliver | None = None,
        on_trim: Callable[[int, list[Segment]], None] | None = None,
        ticks: Ticks = TICKS,
        renew_us: int = lease.LEASE_US // 3,
        trim_us: int = 60_000_000,
        drive: Drive | None = None,
    ) -> None:
        self.partition = partition
        self.state = State.WRITING
        self.groups = 0
        """Blocks written, which is syncs made."""
        self.pending_bytes = 0
        """Bytes that were submitted and not yet answered."""
        self._disk = disk
        self._clock_us = clock_us
        self._deliver = deliver or _deliver_here
        self._on_trim = on_trim
        self._ticker = Ticker(partition.marks, every_us=ticks.every_us, horizon_us=ticks.horizon_us)
        partition.on_source = self._ticker.progress.apply
        self._renew_us = renew_us
        self._trim_us = trim_us
        self._lock = threading.Lock()
        self._pending: list[Submitted] = []
        self._closing = False
        self._restart_us = self._rest_us = 0
        self._failure: CatchmentError = _closed(partition)
        self._renew_at = clock_us() + renew_us
        self._looked_us = self._trim_at = clock_us()
        self._forgetting = Forgetting(disk)
        self._forgets = False
        self._drive = drive or ThreadDrive(clock_us)
        self._drive.start(f"log-{partition.directory}", self._turn)

    def submit(self, entries: Sequence[Entry], done: Done) -> None:
        """Have the entries logged; `done` hears the outcome. Returns at once."""
        weight = sum([block.size_of(entry) for entry in entries])
        with self._lock:
            taken = not self._closing
            if taken:
                self._pending.append(Submitted(entries, done, weight))
                self.pending_bytes += weight
        if taken:
            self._drive.wake()
        else:
            done(_closed(self.partition))

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Have the entries logged and wait: their offsets, once durable."""
        answered = threading.Event()
        outcomes: list[Outcome] = []

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            answered.set()

        self.submit(entries, done)
        answered.wait()
        if isinstance(outcomes[0], CatchmentError):
            raise outcomes[0]
        return outcomes[0]

    def close(self, timeout_s: float = 30.0) -> None:
        """Write what was submitted, release the lease, end the thread."""
        with self._lock:
            self._closing = True
        self._drive.wake()
        self._drive.join(timeout_s)

    def _turn(self) -> int | None:
        """Do what is due; when to be called again at the latest, None after the last turn."""
        with self._lock:
            group = self._take()
            ending = self._closing and not group
        if ending or self._is_replaced():
            self._end(group)
            return None
        now = self._clock_us()
        if now < self._looked_us:
            # The clock was set back: what was to wait for a second would wait for as long as that.
            self._restart_us = self._rest_us = self._renew_at = self._trim_at = now
        self._looked_us = now
        # A tick tries a troubled disk again, but not at every turn.
        tick = self._ticker.tick(now_us=now) if now >= self._rest_us else None
        if tick is not None:
            # Before the rest of its block, which may bring a source that has promised less.
            group.insert(0, Submitted((tick,), _unheard, 0))
        if group:
            self._commit(group, now)
        if now >= self._renew_at:
            self._renew_at = now + self._renew_us
            self._guarded(partial(self.partition.renew, now_us=now))
            # Somebody may be waiting for it, and it has several steps that wait for others: see `forgetting`.
            self._forgets = True
        if now >= self._trim_at:
            self._trim_at = now + self._trim_us
            self._guarded(self._trim)
        if self._forgets:
            self._guarded(partial(self._forget, now))
        with self._lock:
            if self._pending or self._closing or self._forgets or self._is_replaced():
                return now
        tick_due_us = self._ticker.due_us()
        return min(
            self._renew_at, self._trim_at, self._renew_at if tick_due_us is None else max(tick_due_us, self._rest_us)
        )

    def _is_replaced(self) -> bool:
        return self.state is State.REPLACED

    def _end(self, left: list[Submitted]) -> None:
        with self._lock:
            self._closing = True
            left, self._pending = [*left, *self._pending], []
        if self.state is State.REPLACED:
            self.partition.abandon()
        else:
            self._guarded(self.partition.close)
            self.state = State.CLOSED
        if left:
            self._deliver([(one.done, _closed(self.partition)) for one in left])

    def _take(self) -> list[Submitted]:
        """All that waits, as far as one block holds it: what fails must fail whole."""
        weight = 0
        for index, one in enumerate(self._pending):
            weight += one.weight
            if index and weight > block.BLOCK_BYTES_MAX:
                group, self._pending = self._pending[:index], self._pending[index:]
                return group
        group, self._pending = self._pending, []
        return group

    def _commit(self, group: list[Submitted], now_us: int) -> None:
        answers: list[tuple[Done, Outcome]]
        try:
            if self.state is State.FAILED:
                # Not at every upload: each attempt leaves a segment behind.
                if now_us < self._restart_us:
                    raise self._failure
                self._restart_us = now_us + RESTART_US
                self.partition.restart(now_us=now_us)
            offsets = self.partition.append([entry for one in group for entry in one.entries], now_us=now_us)
        except (CatchmentError, OSError) as error:
            failure = self._failed(error)
            answers = [(one.done, failure) for one in group]
        else:
            self.groups += 1
            self.state = State.WRITING
            answers, at = [], 0
            for one in group:
                answers.append((one.done, offsets[at : at + len(one.entries)]))
                at += len(one.entries)
        with self._lock:
            self.pending_bytes -= sum([one.weight for one in group])
        self._deliver(answers)

    def _guarded(self, step: Callable[[], object]) -> None:
        try:
            step()
        except (CatchmentError, OSError) as error:
            self._failed(error)

    def _failed(self, error: CatchmentError | OSError) -> CatchmentError:
        """Show what happened in `state`; the error to answer with."""
        if isinstance(error, OSError):
            error = InternalError(
                "G517",
                f"the disk under {self.partition.directory} failed",
                why=str(error),
                fix="check the disk; the partition starts anew by itself once it answers",
            )
        states = {"G504": State.REPLACED, "G505": State.REPLACED, "G506": State.FULL}
        self.state = states.get(error.code, State.FAILED)
        self._failure = error
        self._rest_us = self._clock_us() + RESTART_US
        return error

    def _forget(self, now_us: int) -> None:
        """A piece of what is to be forgotten; the rest at the next turns."""
        self._forgets = False
        self._forgets = self._forgetting.step(self.partition, now_us=now_us)

    def _trim(self) -> None:
        gone = retention.trim(self._disk, self.partition.number)
        if gone and self._on_trim is not None:
            self._on_trim(self.partition.number, gone)


def _unheard(outcome: Outcome) -> None:
    """A tick that could not be logged is not missed: the next one says more."""


def _deliver_here(answers: list[tuple[Done, Outcome]]) -> None:
    for done, outcome in answers:
        done(outcome)


def _closed(partition: Partition) -> CatchmentError:
    return InternalError(
        "G518",
        f"{partition.directory} is closing",
        why="this gateway is stopping, or hands the partition over",
        fix="send again: the gateway that takes over answers",
    )
