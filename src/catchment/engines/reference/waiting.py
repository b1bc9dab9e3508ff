"""Steps that wait for progress: what is late, what is released when, and the order in which all of it leaves.

At each moment of the step (a progress, presence or tick event) leave: its results, then the progress of each group
whose promise rose, then the tick. Elements that are late leave as they arrive, by the late port of their input.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from catchment.engines.reference.definition import Given, Place, nothing
from catchment.engines.reference.events import Arrival, Element, Progress, Tick, ordering
from catchment.engines.reference.union import Ticks
from catchment.engines.reference.watermarks import NEVER, Moment, Watermarks, collapsed
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row
from catchment.program.window import Closing


class Taken(NamedTuple):
    """An element that a step took: by which port, as which of all arrivals, of which key and group."""

    port: int
    number: int
    element: Element
    key: Row
    group: Any


class Released(NamedTuple):
    """An element that an ordered step took, and the arrival at which it did."""

    when: int
    taken: Taken


def in_order(taken: Taken) -> tuple[Any, ...]:
    """Elements in order are sorted by (at, port, device, arrival)."""
    return taken.element.at, taken.port, taken.element.source.device, taken.number


class Waiting:
    """One step that waits, over all that arrives at it; `outputs` is what it gives once all was said."""

    def __init__(
        self, place: Place, arrivals: list[Arrival], closing: Closing, scope: steps.Scope, *keys: tuple[str, ...]
    ) -> None:
        self.place = place
        self.arrivals = arrivals
        self.grace = closing.grace
        self._scope = scope
        self._keys = keys
        stamped = [place.inputs[0].column(name).stamp for name in keys[0]]
        self._owner = next((i for i, stamp in enumerate(stamped) if stamp is not None), None)
        stamp = stamped[self._owner] if self._owner is not None else None
        group_of = lambda port, row: self._group(self._key(port, row))  # noqa: E731  it has a name only here
        self._marks = Watermarks(arrivals, len(keys), closing, scope, stamp, group_of)
        self._late: list[Taken] = []
        self._results: dict[int, list[Element]] = {}
        self._failures: list[tuple[int, RowError, Row]] = []

    def _key(self, port: int, row: Row) -> Row:
        return tuple(row[self.place.inputs[port].position(name)] for name in self._keys[port])

    def _group(self, key: Row) -> Any:
        return key[self._owner] if self._scope == "own" and self._owner is not None else None

    def elements(self) -> list[Taken]:
        """All elements, as they arrived."""
        found = []
        for number, arrival in enumerate(self.arrivals):
            if isinstance(arrival.event, Element):
                key = self._key(arrival.port, arrival.event.row)
                found.append(Taken(arrival.port, number, arrival.event, key, self._group(key)))
        return found

    def watermark(self, number: int, group: Any) -> Moment:
        """W of the group after that arrival."""
        return self._marks.at(number, group)

    def is_moment(self, number: int) -> bool:
        """Whether that arrival is one at which results fall due."""
        return not isinstance(self.arrivals[number].event, Element)

    def moments(self, after: int = -1) -> list[int]:
        """The arrivals at which results fall due, after the given one."""
        return [number for number in range(after + 1, len(self.arrivals)) if self.is_moment(number)]

    def due(self, group: Any, moment: int, after: int = -1, *, past: bool = False) -> int | None:
        """The first arrival (after the given one) at which W reaches the moment, or where `past`, exceeds it."""
        for number in self.moments(after):
            mark = self.watermark(number, group)
            if mark > moment or (mark == moment and not past):
                return number
        return None

    def released(self, order: steps.Order) -> list[Released]:
        """The elements that are taken, in the order in which they are; late ones leave."""
        if order == "arrival":
            return [Released(taken.number, taken) for taken in self.elements()]
        found = []
        for taken in self.elements():
            at = taken.element.at
            if at < self.watermark(taken.number, taken.group) - self.grace:
                self.leave_late(taken)
                continue
            when = self.due(taken.group, at + self.grace, after=taken.number, past=True)
            if when is not None:
                found.append(Released(when, taken))
        return sorted(found, key=lambda released: (released.when, in_order(released.taken)))

    def leave_late(self, taken: Taken) -> None:
        """The element leaves by the late port, as it came."""
        self._late.append(taken)

    def give(self, when: int, group: Any, at: int, row: Row) -> None:
        """One more result, after those given before for that arrival."""
        self._results.setdefault(when, []).append(Element(at, collapsed(group), row))

    def fail(self, when: int, error: RowError, row: Row) -> None:
        """One more row in quarantine."""
        self._failures.append((when, error, row))

    def outputs(self, reach: int = 0) -> Given:
        """All that was given, with the step's own progress and ticks."""
        given = nothing(self.place)
        promised: dict[Any, Moment] = {}
        ticks = Ticks(len(self._keys))
        late = {taken.number: taken for taken in self._late}
        for number, arrival in enumerate(self.arrivals):
            if number in late:
                given.send(arrival.round, late[number].element, steps.LATE + late[number].port)
            for result in self._results.get(number, ()):
                given.send(arrival.round, result)
            if not self.is_moment(number):
                continue
            for group, mark in sorted(self._marks.after[number].items(), key=lambda item: ordering(item[0])):
                promise = mark - self.grace - reach
                if promise > promised.get(group, NEVER):
                    promised[group] = promise
                    given.send(arrival.round, Progress(collapsed(group), int(promise)))
            if isinstance(arrival.event, Tick):
                tick = ticks.take(arrival.port, arrival.event.now)
                for port in range(len(given.ports) if tick is not None else 0):
                    given.send(arrival.round, tick, port)  # type: ignore[arg-type]
        for number, error, row in sorted(self._failures, key=lambda failure: failure[0]):
            given.fail(self.arrivals[number].round, error, row)
        return given
