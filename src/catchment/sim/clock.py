"""Time: one true clock that jumps from event to event, and the wrong clocks that devices have.

Promises: events run in the order of their instants, those of one instant in the order in which they were planned; time
never goes back. An event belongs to a strand (see `process`), and waits while that strand is held; one of a dead
process never runs. `run` may be called from inside an event: that is how a stalled process lets the world go on.

>>> clock = Clock()
>>> _ = clock.after(5, lambda: print("at", clock.now_us))
>>> clock.run()
at 5
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from catchment.sim.process import Strand

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US


class Killed(BaseException):
    """A process ends here, in the middle of what it was doing. Not an `Exception`: nothing may catch it and go on."""


class Timer:
    """A planned event. Cancelled, it does not happen."""

    __slots__ = ("action", "strand")

    def __init__(self, action: Callable[[], object], strand: Strand | None) -> None:
        self.action: Callable[[], object] | None = action
        self.strand = strand

    def cancel(self) -> None:
        """Have it not happen."""
        self.action = None


class Clock:
    """The true time, and what is planned."""

    def __init__(self, now_us: int = 0) -> None:
        self.now_us = now_us
        self.events = 0
        """How many have run."""
        self.current: Strand | None = None
        """The strand whose event is running."""
        self.nested = -1
        """How many runs stand inside the first."""
        self._heap: list[tuple[int, int, Timer]] = []
        self._planned = 0

    def at(self, when_us: int, action: Callable[[], object], strand: Strand | None = None) -> Timer:
        """Plan an event; one in the past happens now."""
        timer = Timer(action, strand)
        self.put(when_us, timer)
        return timer

    def after(self, delay_us: int, action: Callable[[], object], strand: Strand | None = None) -> Timer:
        """Plan an event that many microseconds from now."""
        return self.at(self.now_us + delay_us, action, strand)

    def put(self, when_us: int, timer: Timer) -> None:
        """Plan a timer, perhaps again."""
        self._planned += 1
        heapq.heappush(self._heap, (max(when_us, self.now_us), self._planned, timer))

    def run(self, until_us: int | None = None, events_max: int | None = None) -> None:
        """Run what is planned, up to and including that instant, which it is then."""
        left = -1 if events_max is None else events_max
        self.nested += 1
        try:
            while self._heap and left != 0 and (until_us is None or self._heap[0][0] <= until_us):
                left -= self._run_next()
        finally:
            self.nested -= 1
        if until_us is not None and left != 0:
            self.now_us = max(self.now_us, until_us)

    def _run_next(self) -> bool:
        when_us, _, timer = heapq.heappop(self._heap)
        action, strand = timer.action, timer.strand
        if action is None:
            return False
        if strand is not None:
            if not strand.process.alive:
                return False
            if strand.held is not None:
                strand.held.append(timer)
                return False
        self.now_us = when_us
        self.events += 1
        before, self.current = self.current, strand
        try:
            action()
        except Killed:
            # Whatever was on the stack of the killed process is gone, and so is the process.
            if strand is None or strand.process.alive:
                raise
        finally:
            self.current = before
        return True

    @property
    def next_us(self) -> int | None:
        """When the next event is planned, if any is."""
        return self._heap[0][0] if self._heap else None


@dataclass(slots=True)
class BootClock:
    """A device's monotonic clock: it runs through suspend, begins anew at a boot, and drifts a little.

    >>> clock = Clock(now_us=1_000_000)
    >>> boot = BootClock(clock, booted_us=0, drift_ppm=100, session=b"boot-1")
    >>> boot.reading_us()
    1000100
    """

    clock: Clock
    booted_us: int
    drift_ppm: int
    session: bytes

    def reading_us(self) -> int:
        """What it shows."""
        ran_us = self.clock.now_us - self.booted_us
        return ran_us + ran_us * self.drift_ppm // 1_000_000


@dataclass(slots=True)
class WallClock:
    """A clock that people set: off by anything, and it jumps."""

    clock: Clock
    off_us: int = 0

    def now_us(self) -> int:
        """What it claims."""
        return self.clock.now_us + self.off_us

    def jump(self, by_us: int) -> None:
        """Somebody, or a network, set it."""
        self.off_us += by_us
