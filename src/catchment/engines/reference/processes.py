"""`process`: an author's own step per key, with its state, its timers in event time and on the clock, and forgetting.

What is due at a moment is one list, sorted by time: at one time elements, then timers, then keys to be forgotten. The
first of it happens, which may change the rest; then the list is made anew, until it is empty.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from catchment.engines.reference.definition import Given, Place, call, records_of, time_of
from catchment.engines.reference.events import Arrival, Tick, ordering
from catchment.engines.reference.waiting import Released, Waiting, in_order
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.process import Context, Process, State
from catchment.program.row_error import RowError
from catchment.program.types import Instant, Row


class Timer(NamedTuple):
    """A timer that was set: for a moment of event time, or for a delay after what the clock `read` (None: nothing)."""

    kind: str
    moment: int
    read: int | None
    set_at: int


@dataclass
class Remembered:
    """What the step knows of one key."""

    group: Any
    state: State
    latest: int
    timers: dict[str, Timer] = field(default_factory=dict)


class Due(NamedTuple):
    """Something that is to happen, sorted by its first three fields."""

    at: int
    kind: int
    place: tuple[Any, ...]
    what: Any


ELEMENT, TIMER, FORGET = 0, 1, 2


def processed(place: Place, arrivals: list[Arrival]) -> Given:
    """Run the process over the whole input."""
    return _Run(place, arrivals).outputs()


class _Run:
    def __init__(self, place: Place, arrivals: list[Arrival]) -> None:
        step = place.vertex.step
        assert isinstance(step, steps.Processed)
        self.step = step
        self.waiting = Waiting(place, arrivals, step.closing, step.scope, step.keys)
        self.kind: type[Process[Any, Any, Any]] = declared(step.process)
        self.process = self.kind(**step.parameters)
        self.keys: dict[Row, Remembered] = {}
        self.now: int | None = None
        self.first_tick: int | None = None

    def outputs(self) -> Given:
        released: dict[int, list[Released]] = {}
        for each in self.waiting.released(self.step.order):
            released.setdefault(each.when, []).append(each)
        for number, arrival in enumerate(self.waiting.arrivals):
            tick = arrival.event if isinstance(arrival.event, Tick) else None
            if tick is not None:
                self.now = tick.now if self.now is None else max(self.now, tick.now)
                self.first_tick = tick.now if self.first_tick is None else self.first_tick
            elements = released.get(number, [])
            if not self.waiting.is_moment(number):
                for each in elements:
                    self.on_element(number, each)
                continue
            self.what_progress_made_due(number, elements)
            if tick is not None:
                self.what_the_clock_made_due(number)
        return self.waiting.outputs()

    def what_progress_made_due(self, number: int, elements: list[Released]) -> None:
        pending = [Due(e.taken.element.at, ELEMENT, in_order(e.taken), e) for e in elements]
        while due := pending + self.timers_and_forgetting(number):
            first = min(due, key=lambda each: (each.at, each.kind, each.place))
            match first.kind:
                case 0:
                    pending.remove(first)
                    self.on_element(number, first.what)
                case 1:
                    self.on_timer(number, *first.what, at=first.at)
                case _:
                    del self.keys[first.what]

    def timers_and_forgetting(self, number: int) -> list[Due]:
        found = []
        for key, known in self.keys.items():
            passed = self.waiting.watermark(number, known.group) - self.waiting.grace
            for name, timer in known.timers.items():
                if timer.kind == "event" and timer.moment < passed:
                    found.append(Due(timer.moment, TIMER, (ordering(key), name), (key, name)))
            if self.step.ttl is not None and known.latest + self.step.ttl < passed:
                found.append(Due(known.latest + self.step.ttl, FORGET, (ordering(key),), key))
        return found

    def what_the_clock_made_due(self, number: int) -> None:
        assert self.now is not None
        assert self.first_tick is not None
        due = []
        for key, known in self.keys.items():
            for name, timer in known.timers.items():
                read = self.first_tick if timer.read is None else timer.read
                if timer.kind == "clock" and timer.set_at < number and read + timer.moment <= self.now:
                    due.append((read + timer.moment, ordering(key), name, key, timer))
        for _, _, name, key, timer in sorted(due, key=lambda each: each[:3]):
            # An earlier one may have replaced or cancelled it, or the key may be forgotten.
            if key in self.keys and self.keys[key].timers.get(name) is timer:
                self.on_timer(number, key, name, at=self.keys[key].latest)
                self.what_progress_made_due(number, [])

    def on_element(self, number: int, released: Released) -> None:
        taken = released.taken
        at = taken.element.at
        known = self.keys.get(taken.key) or Remembered(taken.group, self.kind.state_type(), at)
        element = self.kind.element_type.of(taken.element.row)
        context = Context(taken.key, Instant(at), self._now())
        if self.run(number, known, context, taken.element.row, self.process.on_element, element):
            known.latest = max(known.latest, at)
            if not context.forgotten:
                self.keys[taken.key] = known

    def on_timer(self, number: int, key: Row, name: str, *, at: int) -> None:
        known = self.keys[key]
        del known.timers[name]
        context = Context(key, Instant(at), self._now())
        self.run(number, known, context, (*key, name), self.process.on_timer, name)

    def run(self, number: int, known: Remembered, context: Context, row: Row, body: Any, given: Any) -> bool:
        """Make a call; True if it did not fail. One that fails changes nothing."""
        before = copy.deepcopy(known.state)
        record = self.step.record
        try:
            returned = call(body, given, known.state, context)
            rows = [] if returned is None else records_of(returned, record)
        except RowError as error:
            known.state = before
            self.waiting.fail(number, error, row)
            return False
        for result in rows:
            self.waiting.give(number, known.group, time_of(result, record, context.at), result)
        for name, kind, moment in context.wakes:
            known.timers.pop(name, None)
            if moment is not None:
                known.timers[name] = Timer(kind, moment, self.now, number)
        if context.forgotten:
            self.keys.pop(context.key, None)
        return True

    def _now(self) -> Instant | None:
        return None if self.now is None else Instant(self.now)
