"""Pairs: `zip` and `combine`, and how a pair becomes an element, which joins share."""

from __future__ import annotations

from catchment.engines.reference.definition import Given, Place, time_of
from catchment.engines.reference.events import Arrival
from catchment.engines.reference.waiting import Taken, Waiting
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row

Pairing = steps.Join | steps.Zip | steps.Combine


def give_pair(waiting: Waiting, step: Pairing, when: int, left: Taken | None, right: Taken | None) -> None:
    """The pair as an element, with nulls for a side that is not there; or its rows in quarantine."""
    place = waiting.place
    there = [side for side in (left, right) if side is not None]
    rows = [
        side.element.row if side is not None else (None,) * len(schema.fields)
        for side, schema in zip((left, right), place.inputs, strict=True)
    ]
    try:
        row = place.computed(step.columns, step.record, *rows)
    except RowError as error:
        both: Row = (*rows[0], *rows[1])
        waiting.fail(when, error, both)
        return
    later = max(side.element.at for side in there)
    waiting.give(when, there[0].group, time_of(row, step.record, later), row)


def zipped(place: Place, arrivals: list[Arrival]) -> Given:
    """The n-th element of the left with the n-th of the right, per key, when both are there."""
    step = place.vertex.step
    assert isinstance(step, steps.Zip)
    waiting = Waiting(place, arrivals, step.closing, step.scope, step.keys, step.right_keys)
    of_key: dict[Row, tuple[list[Taken], list[Taken]]] = {}
    for when, taken in waiting.released("event_time"):
        sides = of_key.setdefault(taken.key, ([], []))
        mine, theirs = sides[taken.port], sides[1 - taken.port]
        mine.append(taken)
        n = len(mine)
        if n <= len(theirs):
            give_pair(waiting, step, when, sides[0][n - 1], sides[1][n - 1])
    return waiting.outputs()


def combine(place: Place, arrivals: list[Arrival]) -> Given:
    """Whenever either side has a new element: the latest of both, per key."""
    step = place.vertex.step
    assert isinstance(step, steps.Combine)
    waiting = Waiting(place, arrivals, step.closing, step.scope, step.keys, step.right_keys)
    latest: dict[Row, dict[int, Taken]] = {}
    for when, taken in waiting.released("event_time"):
        sides = latest.setdefault(taken.key, {})
        sides[taken.port] = taken
        give_pair(waiting, step, when, sides.get(0), sides.get(1))
    return waiting.outputs()
