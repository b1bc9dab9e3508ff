"""Steps that wait for progress: what all of them do at the moments at which a watermark may rise.

At each moment (a progress, presence or tick event) leave, in this order: the results that fell due, then the progress
of each group whose watermark rose, then the tick. What falls due is the step's own business (`due`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from catchment.operators.contract import Operator, Port, Quarantine, Snapshot
from catchment.operators.keys import Grouping, collapsed
from catchment.operators.members import NEVER, Group
from catchment.operators.ordering import null_first
from catchment.operators.progress import Tracker, resolved
from catchment.operators.ticks import Ticks
from catchment.plan.history import Source
from catchment.program.steps import LATE, Scope
from catchment.program.types import Row
from catchment.program.window import Closing

Take: TypeAlias = Callable[[int, Source, Row], None]


class Waiting(Operator):
    """The base: a tracker, the ports' functions for what is not an element, and the step's own progress.

    `reach` is how far before its watermark a result may still lie.
    """

    def __init__(self, grouping: Grouping, closing: Closing, scope: Scope, *, ports: int = 1, reach: int = 0) -> None:
        self.grouping = grouping
        self.grace = closing.grace
        self.tracker = Tracker(ports, resolved(closing, scope), grouping.of_source)
        self._behind = closing.grace + reach
        self._ports = ports
        # Of each port the source last heard there since the last event that is no element: it is not told again.
        self.hears: list[list[Source | None]] = [[None] for _ in range(ports)]
        # `W - grace` where there is one group of all.
        self.closes = [NEVER]
        self._ticks = Ticks(ports)

    @abstractmethod
    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        """The function that takes the elements of an input port, whose late ones leave by `late`."""

    @abstractmethod
    def due(self, groups: list[Group]) -> None:
        """Give what fell due, now that these groups' watermarks rose. Called at each moment, also if none did."""

    def clock(self, now: int) -> None:
        """Give what fell due by the clock, after what did by watermarks."""

    def state(self) -> Snapshot:
        """What the step remembers beside its progress."""
        return {}

    def set_state(self, state: Snapshot) -> None:
        """Remember that."""

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        self._outputs = outputs
        self.output = outputs[0]
        self.quarantine = quarantine
        return tuple(self._port(port, quarantine) for port in range(self._ports))

    def mark(self, group: Group) -> int:
        """The watermark of a group, which begins with this if it has not."""
        mark = self.tracker.marks.get(group)
        if mark is None:
            self.tracker.begin(group)
            mark = self.tracker.marks.get(group, NEVER)
        return mark

    def snapshot(self) -> Snapshot:
        return {
            "progress": self.tracker.snapshot(),
            "ticks": self._ticks.save(),
            **self.state(),
        }

    def restore(self, state: Snapshot) -> None:
        self.tracker.restore(state["progress"])
        for hears in self.hears:
            hears[0] = None
        self._look_at_the_mark()
        self._ticks.load(state["ticks"])
        self.set_state(state)

    def _port(self, port: int, quarantine: Quarantine) -> Port:
        tracker, hears = self.tracker, self.hears[port]

        def progress(source: Source, at: int) -> None:
            hears[0] = None
            self._moment(tracker.progress(port, source, at))

        def presence(source: Source, since: int | None) -> None:
            hears[0] = None
            self._moment(tracker.presence(port, source, since))

        def tick(now: int) -> None:
            hears[0] = None
            groups = tracker.tick(port, now)
            self._look_at_the_mark()
            self.due(groups)
            self.clock(tracker.now(port) or now)
            self._promise(groups)
            self._tick(port, now)

        return Port(self.take(port, self._outputs[LATE + port], quarantine), progress, presence, tick)

    def _moment(self, groups: list[Group]) -> None:
        self._look_at_the_mark()
        self.due(groups)
        self._promise(groups)

    def _look_at_the_mark(self) -> None:
        if self.grouping.position is None:
            self.closes[0] = self.tracker.watermark(None) - self.grace

    def _promise(self, groups: list[Group]) -> None:
        marks, behind, promise = self.tracker.marks, self._behind, self.output.progress
        if len(groups) > 1:
            groups = sorted(groups, key=null_first)
        for group in groups:
            promise(collapsed(group), marks[group] - behind)

    def _tick(self, port: int, now: int) -> None:
        least = self._ticks.take(port, now)
        if least is not None:
            for output in self._outputs:
                output.tick(least)
