"""The keys of a `process` over a batch: the operator's own calls, timers and forgetting, driven key by key or in turn.

Keys know nothing of each other, so each can be taken through a whole batch at once; what its calls give is noted with
when it happened among all else, and put in that order afterwards. Where keys do meet, at ticks that make timers on the
clock due, and where elements are taken in the order of arrival, events go in turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from catchment.engines.spark.events import TICK
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Control
from catchment.engines.spark.vector.places import event_at
from catchment.engines.spark.vector.release import Released
from catchment.engines.spark.vector.told import Told
from catchment.engines.spark.vector.waiting import LEAST
from catchment.errors import ProgramError
from catchment.operators.contract import NOWHERE, Port, Quarantine
from catchment.operators.keys import Key
from catchment.operators.members import Group
from catchment.operators.process import EVENT, Known, Processed
from catchment.operators.timers import ELEMENT, TIMER, Happening
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.process import Process, names
from catchment.program.types import Row, Schema


class When(NamedTuple):
    """When something happened among all that a batch makes happen."""

    moment: int
    """The control that made it happen, by number."""
    at: int
    kind: int
    tie: Any
    """Of an element its rank in the order of release; of a timer what its key sorts as, and its name."""
    after: int = 0
    """Which of those it is that followed at once: a timer may be set for what has passed."""


class Keyed(Processed):
    """The operator. What it gives is in `made`: when it happened, the place of that, its time, source and row."""

    def __init__(self, step: steps.Processed, given: Schema, quarantine: Quarantine) -> None:
        super().__init__(step, given)
        self.connect((Port(self._give, NOWHERE.progress, NOWHERE.presence, NOWHERE.tick), NOWHERE), quarantine)
        self.time = Told()
        self.tracker: Any = self.time
        self.process: Process[Any, Any, Any] = self._kind(**step.parameters)
        self.state_type = self._kind.state_type
        self.copied = self._copy
        self.ttl = step.ttl
        self.arrives = step.order == "arrival"
        self.is_in_turn = self.arrives or names(self._kind, "wake_after")
        self.made: list[tuple[When, int, int, Source, Row]] = []
        self.now = When(0, 0, 0, 0)
        self.place = 0
        """The place of what happens now."""
        self._last: dict[Key, When] = {}
        self._moments: dict[Group, tuple[list[int], list[int]]] = {}
        self._reads: tuple[list[int], list[int | None]] = ([], [])

    def begin(self, released: Released, controls: Sequence[Control]) -> None:
        """A batch begins, whose watermarks rise at these moments."""
        self._places = [control[0] for control in controls]
        self.made.clear()
        self._last.clear()
        self._moments.clear()
        followed, risen = released.followed, released.followed.moments
        for group, number, bound in zip(risen.group.tolist(), risen.number.tolist(), risen.bound.tolist(), strict=True):
            bounds, numbers = self._moments.setdefault(followed.groups.known[group], ([], []))
            bounds.append(bound)
            numbers.append(number)
        numbers, reads = self._reads = ([-1], [self.time.read])
        for number, (_, kind, *what) in enumerate(controls):
            if kind == TICK and (reads[-1] is None or what[0] > reads[-1]):
                numbers.append(number)
                reads.append(what[0])

    def _give(self, at: int, source: Source, row: Row) -> None:
        self.made.append((self.now, self.place, at, source, row))

    # -- key by key ------------------------------------------------------------------------------------------------

    def one_by_one(self, key: Key, group: Group, elements: Iterable[tuple[int, int, int, Row]]) -> None:
        """A key's elements, call by call: each (moment, time, rank, row)."""
        for moment, at, rank, row in elements:
            known = self._known.get(key)
            if known is not None:
                self.settle(known, at)
            self._happens(key, When(moment, at, ELEMENT, rank))
            self._element(at, key, group, row)

    def settle(self, known: Known, upto: int) -> None:
        """What was to happen to a key before that moment."""
        while self._known.get(known.key) is known:
            at, name = min(((timer.moment, name) for name, timer in known.timers.items()), default=(upto, ""))
            forgotten = known.latest + (self.ttl or 0)
            if known.forgetting is not None and forgotten < min(at, upto):
                self._drop(known)
            elif at < upto:
                self._is_due(known, name, at)
                self._schedule.voided()
                self._fire(known, name, at)
            else:
                return

    def rest(self) -> None:
        """What else is due at the end of the batch."""
        for group, (bounds, _) in self._moments.items():
            self.time.marks[group] = bounds[-1] + self.grace
        self._happen(list(self._moments))
        self.time.read = self._reads[1][-1]

    def _take(self, group: Group, happening: Happening) -> None:
        if happening.kind == TIMER and not self.is_in_turn:
            known, name = happening.what
            self._is_due(known, name, happening.at)
        super()._take(group, happening)

    def _is_due(self, known: Known, name: str, at: int) -> None:
        last = self._last.get(known.key)
        moment = self.moment(known.group, at)
        when = When(moment if last is None else max(moment, last.moment), at, TIMER, (known.sorts_as, name))
        if last is not None and when < last:
            when = last._replace(after=last.after + 1)
        self._happens(known.key, when)

    def moment(self, group: Group, at: int) -> int:
        """The number of the control at which the bound of a group came to lie beyond that."""
        bounds, numbers = self._moments[group]
        return numbers[min(bisect_right(bounds, at), len(numbers) - 1)]

    def _happens(self, key: Key, when: When) -> None:
        self.now = self._last[key] = when
        self.place = self._places[when.moment]
        numbers, reads = self._reads
        self.time.read = reads[bisect_right(numbers, when.moment) - 1]

    def _wake(self, known: Known, name: str, kind: str, moment: int | None) -> None:
        if not self.is_in_turn and moment is not None and kind != EVENT:
            raise ProgramError(
                "C332",
                f"{self._kind.__name__} set the timer {name!r} on the clock, which its own code does not show",
                why="keys are computed one after the other unless the class calls wake_after: a tick meets all",
                fix="call context.wake_after in a method of the class",
            )
        super()._wake(known, name, kind, moment)

    # -- many elements at once ---------------------------------------------------------------------------------------

    def known(self, key: Key, group: Group, at: int) -> Known:
        """What is remembered of a key that gets elements from then on; anew, where that is nothing."""
        found = self._known.get(key)
        if found is not None:
            if found.forgetting is None or found.latest + (self.ttl or 0) >= at:
                return found
            self.settle(found, at)
        return self._known.get(key) or Known(key, self._sorts_as(key), group, self.state_type(), at)

    def keep(self, known: Known, last: When, timers: Iterable[tuple[str, int | None]]) -> None:
        """Remember a key after its elements, of which the last happened then, with these timers set or cancelled."""
        self._last[known.key] = last
        known.latest = max(known.latest, last.at)
        self._known[known.key] = known
        for name, moment in timers:
            self._wake(known, name, EVENT, moment)
        self._forget_later(known)

    def drop(self, known: Known, last: When) -> None:
        """Forget a key after its elements."""
        self._last[known.key] = last
        self._drop(known)

    def due_of(self, entry: Sequence[Any]) -> tuple[int | None, int | None]:
        """Of a saved key: the least time that a timer or forgetting waits for, and up to which clock none is due."""
        _, _, latest, timers, forgetting = entry
        events = [moment for _, kind, moment, _, _ in timers if kind == EVENT]
        if forgetting is not None:
            events.append(latest + (self.ttl or 0))
        clocks = [LEAST if read is None else read + moment - 1 for _, kind, moment, read, _ in timers if kind != EVENT]
        return min(events, default=None), min(clocks, default=None)

    # -- in turn -----------------------------------------------------------------------------------------------------

    def in_turn(self, released: Released, controls: Sequence[Control], rows: Sequence[Row]) -> None:
        """All events one after the other, as a device would."""
        groups, moments = released.followed.groups.known, released.followed.moments
        listed = zip(released.moment.tolist(), released.rows.at.tolist(), released.group.tolist(), rows, strict=True)
        elements = iter([*listed, (len(controls) + 1, 0, 0, ())])
        risen = iter(
            [*zip(moments.number.tolist(), moments.group.tolist(), moments.bound.tolist(), strict=True), (-1,)]
        )
        moment, at, group, row = next(elements)
        number_risen, *rise = next(risen)
        places = released.rows.place.tolist()
        rank = 0
        for number in range(len(controls) + 1):
            while self.arrives and moment == number:
                self.place = places[rank]
                self._touched[groups[group]] = None
                self._element(at, self._key_of(row), groups[group], row)
                rank += 1
                moment, at, group, row = next(elements)
            if number == len(controls):
                break
            place, kind, *what = controls[number]
            moved = []
            while number_risen == number:
                name = groups[rise[0]]
                moved.append(name)
                self.time.marks[name] = rise[1] + self.grace
                number_risen, *rise = next(risen)
            if kind == TICK:
                self.time.read = what[0] if self.time.read is None else max(self.time.read, what[0])
            while moment == number and not self.arrives:
                self._number += 1
                self._schedule.add(groups[group], Happening(at, ELEMENT, (rank,), self._number, row))
                rank += 1
                moment, at, group, row = next(elements)
            self.place = place
            self.due(moved)
            if kind == TICK and event_at(place) != TOLD_AGAIN:
                self.clock(self.time.read or 0)
