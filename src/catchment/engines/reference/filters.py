"""`changes` and `moved`: keep an element that is different enough from the last one kept of its key."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from catchment.engines.reference.definition import Given, Place
from catchment.engines.reference.events import Arrival, Element
from catchment.engines.reference.functions import STRICT, same
from catchment.engines.reference.stateless import each
from catchment.program import steps
from catchment.program.types import Row


def _kept(
    place: Place,
    arrivals: list[Arrival],
    keys: tuple[str, ...],
    look: Callable[[Row], Any],
    differs: Callable[..., bool],
) -> Given:
    last: dict[Row, Any] = {}

    def compute(element: Element) -> list[Element]:
        key = tuple(element.row[place.inputs[0].position(name)] for name in keys)
        seen = look(element.row)
        if key in last and not differs(last[key], seen):
            return []
        last[key] = seen
        return [element]

    return each(place, arrivals, compute)


def changes(place: Place, arrivals: list[Arrival]) -> Given:
    """Keep an element when one of the values differs; null is the same as null, and NaN as NaN."""
    step = place.vertex.step
    assert isinstance(step, steps.Changes)
    return _kept(
        place,
        arrivals,
        step.keys,
        look=lambda row: [place.value(node, row) for node in step.values],
        differs=lambda before, now: not all(map(_same_values, before, now)),
    )


def _same_values(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same_values, left, right))
    return same(left, right)


def moved(place: Place, arrivals: list[Arrival]) -> Given:
    """Keep an element when it lies farther than `by_m` from the last kept; what has no place is no move."""
    step = place.vertex.step
    assert isinstance(step, steps.Moved)

    def look(row: Row) -> tuple[float, float] | None:
        degrees = [place.value(node, row) for node in (step.lat_deg, step.lon_deg)]
        if any(value is None or not math.isfinite(value) for value in degrees):
            return None
        return float(degrees[0]), float(degrees[1])

    def differs(before: tuple[float, float] | None, now: tuple[float, float] | None) -> bool:
        if now is None:
            return False
        return before is None or STRICT["distance_m"](*before, *now) > step.by_m

    return _kept(place, arrivals, step.keys, look, differs)
