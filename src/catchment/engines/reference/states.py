"""Stateful streams: after each element of a key, the aggregates of all so far, or an author's fold of them."""

from __future__ import annotations

from catchment.engines.reference.aggregates import Member, member, results
from catchment.engines.reference.definition import Given, Place, call, record_of, time_of
from catchment.engines.reference.events import Arrival
from catchment.engines.reference.waiting import Waiting
from catchment.engines.reference.windows import give_or_fail
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.row_error import RowError
from catchment.program.types import Row


def running(place: Place, arrivals: list[Arrival]) -> Given:
    """`state`: the aggregates of all elements of the key so far."""
    step = place.vertex.step
    assert isinstance(step, steps.Running)
    waiting = Waiting(place, arrivals, step.closing, step.scope, step.keys)
    of_key: dict[Row, list[Member]] = {}
    for when, taken in waiting.released(step.order):
        at = taken.element.at
        try:
            seen = member(place, step.aggregates, at, taken.element.row)
        except RowError as error:
            waiting.fail(when, error, taken.element.row)
            continue
        members = of_key.setdefault(taken.key, [])
        members.append(seen)
        values, failure = results(step.aggregates, members)
        give_or_fail(waiting, when, taken.group, at, (*taken.key, at, *values), failure)
    return waiting.outputs()


def fold(place: Place, arrivals: list[Arrival]) -> Given:
    """`fold`: `state = function(state, element)`; an element on which it fails leaves the state as it was."""
    step = place.vertex.step
    assert isinstance(step, steps.Fold)
    waiting = Waiting(place, arrivals, step.closing, step.scope, step.keys)
    function = declared(step.function)
    state_type, element_type = function.annotations
    states: dict[Row, Row] = {}
    for when, taken in waiting.released(step.order):
        before = state_type.of(states.get(taken.key, step.initial))
        try:
            after = record_of(call(function.body, before, element_type.of(taken.element.row)), step.record)
        except RowError as error:
            waiting.fail(when, error, taken.element.row)
            continue
        states[taken.key] = after
        waiting.give(when, taken.group, time_of(after, step.record, taken.element.at), after)
    return waiting.outputs()
