"""Steps that treat each element by itself, and pass all other events on as they are."""

from __future__ import annotations

from collections.abc import Callable

from catchment.engines.reference.definition import Given, Place, call, nothing, record_of, records_of, time_of
from catchment.engines.reference.events import Arrival, Element
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.row_error import RowError


def each(place: Place, arrivals: list[Arrival], compute: Callable[[Element], list[Element]]) -> Given:
    """An element gives what `compute` says, or is quarantined; any other event passes."""
    given = nothing(place)
    for arrival in arrivals:
        event = arrival.event
        if not isinstance(event, Element):
            given.send(arrival.round, event)
            continue
        try:
            computed = compute(event)
        except RowError as error:
            given.fail(arrival.round, error, event.row)
        else:
            for element in computed:
                given.send(arrival.round, element)
    return given


def passed(place: Place, arrivals: list[Arrival]) -> Given:
    """`key_by`, `deliver` and sinks: every element as it came. Sources too: the history is what arrives there."""
    return each(place, arrivals, lambda element: [element])


def where(place: Place, arrivals: list[Arrival]) -> Given:
    """Keep an element when the predicate is true: not false, not null."""
    step = place.vertex.step
    assert isinstance(step, steps.Where)
    return each(place, arrivals, lambda e: [e] if place.value(step.predicate, e.row) is True else [])


def select(place: Place, arrivals: list[Arrival]) -> Given:
    """New fields computed from the old."""
    step = place.vertex.step
    assert isinstance(step, steps.Select)

    def compute(element: Element) -> list[Element]:
        row = place.computed(step.columns, step.record, element.row)
        return [Element(time_of(row, step.record, element.at), element.source, row)]

    return each(place, arrivals, compute)


def mapped(place: Place, arrivals: list[Arrival]) -> Given:
    """A declared function of each element, giving one or many."""
    step = place.vertex.step
    assert isinstance(step, steps.Map)
    function = declared(step.function)

    def compute(element: Element) -> list[Element]:
        returned = call(function.body, function.annotations[0].of(element.row))
        rows = records_of(returned, step.record) if step.many else [record_of(returned, step.record)]
        return [Element(time_of(row, step.record, element.at), element.source, row) for row in rows]

    return each(place, arrivals, compute)


def subscribe(place: Place, arrivals: list[Arrival]) -> Given:
    """Call a declared function with each element; the element passes on, unless the call failed."""
    step = place.vertex.step
    assert isinstance(step, steps.Subscribe)
    function = declared(step.function)
    number = 0

    def compute(element: Element) -> list[Element]:
        nonlocal number
        number += 1
        record = function.annotations[0].of(element.row)
        place.effects.once(place.vertex.id, number, lambda: call(function.body, record))
        return [element]

    return each(place, arrivals, compute)
