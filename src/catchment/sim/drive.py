"""Turns of a partition's writer, given by the simulator's clock instead of by a thread.

The writer's work runs on a strand of its own: a slow disk holds that strand, in the middle of a write, while the
gateway's loop goes on. Between being woken and starting, a little time passes, in which more uploads gather.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from catchment.sim.clock import Clock, Timer
from catchment.sim.process import Process

WAKE_US = (50, 3_000)
"""How long a woken thread takes to run."""


class ClockDrive:
    """The turns of one writer; see `catchment.gateway.log.files.commit.Drive`."""

    def __init__(self, clock: Clock, process: Process, luck: random.Random, now_us: Callable[[], int]) -> None:
        """`now_us` is the gateway's own clock, in which a turn says when the next one is due."""
        self._clock = clock
        self._luck = luck
        self._now_us = now_us
        self._strand = process.new_strand()
        self._turn: Callable[[], int | None] = lambda: None
        self._planned: Timer | None = None
        self._planned_us = 0
        self._running = self._again = self._ended = False

    def start(self, name: str, turn: Callable[[], int | None]) -> None:
        """Begin with the first turn."""
        self._turn = turn
        self.wake()

    def wake(self) -> None:
        """There is something to do: a turn comes soon."""
        if self._running:
            self._again = True
        else:
            self._plan(self._luck.randint(*WAKE_US))

    def join(self, timeout_s: float) -> None:
        """Turn until the last; one that is being held is left to itself, as after the timeout."""
        while not self._ended and not self._running and self._strand.held is None:
            self._run()

    def _plan(self, delay_us: int) -> None:
        at_us = self._clock.now_us + delay_us
        if self._planned is not None and self._planned.action is not None:
            if self._planned_us <= at_us:
                return
            self._planned.cancel()
        self._planned_us = at_us
        self._planned = self._clock.at(at_us, self._run, self._strand)

    def _run(self) -> None:
        if self._ended:
            return
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        self._running, self._again = True, False
        due_us = self._turn()
        self._running = False
        if due_us is None:
            self._ended = True
        else:
            self._plan(self._luck.randint(*WAKE_US) if self._again else max(1, due_us - self._now_us()))
