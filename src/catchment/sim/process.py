"""Processes: what can be killed or stalled at any single action, and started again.

Every action that leaves a process (a write, a sync, an SQL statement, a message) passes `act`, and a fuse may burn down
there: the process is killed, its machine loses power, or it stands still while the world goes on, in the middle of what
it was doing. A process has strands, like threads: a slow disk holds one of them, a stop holds all.

>>> clock = Clock()
>>> process = Process("p", clock)
>>> process.light(2, process.kill)
>>> process.act(); process.alive
True
>>> process.act()
Traceback (most recent call last):
...
catchment.sim.clock.Killed: p
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catchment.sim.clock import Clock, Killed, Timer

STALLS_MAX = 3
"""So many stalls may stand inside each other: each holds a piece of the simulator's own stack."""


class Strand:
    """A line of work of a process; its events run one at a time, in order."""

    __slots__ = ("held", "process")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.held: list[Timer] | None = None
        """Events that wait, while it is held."""


class Process:
    """One life: from its start until it ends or is killed."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.alive = True
        self.lost_power = False
        """Whether it ends without a kernel that closes what it had open."""
        self.actions = 0
        """How many left it."""
        self._clock = clock
        self._strands: list[Strand] = []
        self._fuse = 0
        self._burnt: Callable[[], object] | None = None
        self._exclusive = 0
        self._stopped_until_us = 0
        self._at_end: list[Callable[[], object]] = []
        self.strand = self.new_strand()
        """Its main line of work."""

    def new_strand(self) -> Strand:
        """A further line of work."""
        strand = Strand(self)
        self._strands.append(strand)
        return strand

    def at_end(self, action: Callable[[], object]) -> None:
        """Have that done when it ends, however it ends; as the kernel closes what a process had open."""
        self._at_end.append(action)

    def act(self) -> None:
        """Note that something is about to leave the process. May raise `Killed`, or return much later."""
        if not self.alive:
            raise Killed(self.name)
        self.actions += 1
        if self._fuse:
            self._fuse -= 1
            if self._fuse == 0 and self._burnt is not None:
                burnt, self._burnt = self._burnt, None
                burnt()
                if not self.alive:
                    raise Killed(self.name)

    def light(self, actions: int, burnt: Callable[[], object]) -> None:
        """Have that happen at its so-many-th action from now."""
        self._fuse, self._burnt = max(1, actions), burnt

    def put_out(self) -> None:
        """Have nothing burn any more."""
        self._fuse, self._burnt = 0, None

    def kill(self) -> None:
        """End it, wherever it is."""
        if self.alive:
            self.alive = False
            for action in reversed(self._at_end):
                action()

    def stop(self, for_us: int) -> None:
        """Hold all of it, from outside, as a scheduler may: what it was to do happens when it goes on.

        Of two stops at once, the longer one counts.
        """
        strands = _hold(self._strands)
        self._stopped_until_us = max(self._stopped_until_us, self._clock.now_us + for_us)
        self._clock.after(for_us, lambda: self._go_on(strands))

    def stall(self, for_us: int, strand: Strand | None = None) -> bool:
        """Stand still here, on the stack, while the world goes on: all of it, or only that strand.

        Refused inside an `exclusive` section, where whoever waited for it would stand on this very stack.
        """
        if self._exclusive or self._clock.nested >= STALLS_MAX:
            return False
        strands = _hold(self._strands if strand is None else [strand])
        try:
            self._clock.run(self._clock.now_us + for_us)
        finally:
            # It may have been stopped meanwhile, for longer: then what stands on the stack is the last that it does.
            self._go_on(strands)
        return True

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """A section in which others may have to wait for this process."""
        self._exclusive += 1
        try:
            yield
        finally:
            self._exclusive -= 1

    def _go_on(self, strands: list[Strand]) -> None:
        if self._clock.now_us < self._stopped_until_us:
            self._clock.at(self._stopped_until_us, lambda: self._go_on(strands))
        else:
            self._release(strands)

    def _release(self, strands: list[Strand]) -> None:
        for strand in strands:
            held, strand.held = strand.held or [], None
            for timer in held:
                self._clock.put(self._clock.now_us, timer)


def _hold(strands: list[Strand]) -> list[Strand]:
    free = [strand for strand in strands if strand.held is None]
    for strand in free:
        strand.held = []
    return free
