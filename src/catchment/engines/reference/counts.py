"""Windows of counts: after each `every` elements of a key, the last `size`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from catchment.engines.reference.aggregates import member, results
from catchment.engines.reference.definition import Given, Place
from catchment.engines.reference.events import Arrival, Element
from catchment.engines.reference.waiting import Taken, Waiting
from catchment.engines.reference.windows import give_or_fail, ranked
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row
from catchment.program.window import CountWindow

T = TypeVar("T")


class Counted(NamedTuple):
    """A window that is due: at which arrival, and the last elements with what was seen of each."""

    when: int
    last: list[tuple[Taken, Any]]

    @property
    def begins(self) -> Row:
        """What its result begins with: the key, the window, the revision and the time."""
        first, last = self.last[0][0], self.last[-1][0]
        return (*last.key, first.element.at, last.element.at + 1, 0, last.element.at)


def counted(waiting: Waiting, window: CountWindow, look: Callable[[Element], Any]) -> list[Counted]:
    """Every window, in the order in which they are given."""
    of_key: dict[Row, list[tuple[Taken, Any]]] = {}
    found = []
    for when, taken in waiting.released("event_time"):
        try:
            seen = look(taken.element)
        except RowError as error:
            waiting.fail(when, error, taken.element.row)
            continue
        elements = of_key.setdefault(taken.key, [])
        elements.append((taken, seen))
        if len(elements) % window.every == 0:
            found.append(Counted(when, elements[-window.size :]))
    return found


def aggregated(place: Place, arrivals: list[Arrival]) -> Given:
    """Aggregates of the last elements of a key."""
    step = place.vertex.step
    assert isinstance(step, steps.Aggregated)
    assert isinstance(step.window, CountWindow)
    waiting = Waiting(place, arrivals, step.window.closing, step.scope, step.keys)
    for window in counted(waiting, step.window, lambda e: member(place, step.aggregates, e.at, e.row)):
        last = window.last[-1][0]
        values, failure = results(step.aggregates, [seen for _, seen in window.last])
        give_or_fail(waiting, window.when, last.group, last.element.at, (*window.begins, *values), failure)
    return waiting.outputs()


def top(place: Place, arrivals: list[Arrival]) -> Given:
    """The k elements with the largest value among the last of a key."""
    step = place.vertex.step
    assert isinstance(step, steps.TopK)
    assert isinstance(step.window, CountWindow)
    waiting = Waiting(place, arrivals, step.window.closing, step.scope, step.keys)
    for window in counted(waiting, step.window, lambda e: place.value(step.by, e.row)):
        last = window.last[-1][0]
        candidates = [(rank, taken.element.row) for taken, rank in window.last]
        for row in ranked(place, step, window.begins, candidates):
            waiting.give(window.when, last.group, last.element.at, row)
    return waiting.outputs()
