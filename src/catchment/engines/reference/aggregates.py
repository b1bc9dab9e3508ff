"""Aggregates, each from the full list of its values: exact arithmetic, no running totals.

This is the section "Aggregates" of docs/reference/semantics.md. Values come in order, with the times of their elements.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from catchment.engines.reference.definition import Place, call
from catchment.engines.reference.events import ordering
from catchment.engines.reference.functions import whole
from catchment.program.aggregate import AggregateCall, NamedAggregate
from catchment.program.function import declared
from catchment.program.resolution import per_unit, scale, unscale
from catchment.program.returned import conform
from catchment.program.row_error import RowError
from catchment.program.types import Row
from catchment.program.window import Span


class Member(NamedTuple):
    """An element that is aggregated: its time and, for each aggregate, its value (lifted, for a user's)."""

    at: int
    values: tuple[Any, ...]


def member(place: Place, aggregates: Sequence[NamedAggregate], at: int, row: Row) -> Member:
    """The element as aggregates see it; fails where one of their expressions does."""
    values = []
    for aggregate in aggregates:
        value = place.value(aggregate.call.args[0], row) if aggregate.call.args else None
        if aggregate.call.function == "user" and value is not None:
            value = call(users(aggregate.call).lift, value)
        values.append(value)
    return Member(at, tuple(values))


def results(
    aggregates: Sequence[NamedAggregate], members: Sequence[Member], span: Span | None = None
) -> tuple[Row, RowError | None]:
    """The aggregates of the members, null for each that fails, and the first failure. `span` is a window of time."""
    found: list[Any] = []
    failure: RowError | None = None
    for position, aggregate in enumerate(aggregates):
        try:
            found.append(_result(aggregate, [(m.at, m.values[position]) for m in members], span))
        except RowError as error:
            failure = failure or error
            found.append(None)
    return tuple(found), failure


def _result(aggregate: NamedAggregate, timed: list[tuple[int, Any]], span: Span | None) -> Any:
    call_ = aggregate.call
    known = [(at, value) for at, value in timed if value is not None]
    values = [value for _, value in known]
    match call_.function:
        case "count":
            return len(timed)
        case "first":
            return timed[0][1] if timed else None
        case "last":
            return timed[-1][1] if timed else None
        case "collect":
            return tuple(values)
        case "count_distinct":
            return len({ordering(value) for value in values})
        case "top":
            return _most_frequent(values, call_.k)
        case "dft":
            return _magnitudes(known, call_.k, span)
    if not values:
        return None
    match call_.function:
        case "min":
            return min(values, key=ordering)
        case "max":
            return max(values, key=ordering)
        case "user":
            return _of_user(aggregate, values)
        case name:
            return _NUMERIC[name](values, call_.step)


Number = int | float


def _sum(values: list[Number], step: float | None) -> Number:
    if isinstance(values[0], int):
        return whole(sum(map(int, values)))
    if not all(map(math.isfinite, values)):
        return _not_finite(values)
    steps = _whole_steps(values, step)
    return _nearest(sum(map(Fraction, values), Fraction(0))) if steps is None else _unscaled(sum(steps), step)


def _mean(values: list[Number], step: float | None) -> float:
    if not all(map(math.isfinite, values)):
        return _not_finite(values)
    steps = _whole_steps(values, step)
    if steps is None:
        return _nearest(sum(map(Fraction, values), Fraction(0)) / len(values))
    return _unscaled(sum(steps), step) / len(values)


def _variance(values: list[Number], step: float | None) -> float:
    """The mean square of the distances from the mean: of whole steps, where there is a step."""
    if not all(map(math.isfinite, values)):
        return math.nan
    steps = _whole_steps(values, step)
    numbers = list(map(Fraction, values if steps is None else steps))
    mean = sum(numbers, Fraction(0)) / len(numbers)
    square = sum(((number - mean) ** 2 for number in numbers), Fraction(0)) / len(numbers)
    return _nearest(square if steps is None else square * _unit(step) ** 2)


_NUMERIC: dict[str, Callable[[list[Number], float | None], Number]] = {
    "sum": _sum,
    "mean": _mean,
    "variance": _variance,
}


def _not_finite(values: list[Number]) -> float:
    """What adding them gives, in whichever order: an infinity, or NaN of a NaN or of both infinities."""
    infinities = {value for value in values if not math.isfinite(value)}
    return infinities.pop() if infinities in ({math.inf}, {-math.inf}) else math.nan


def _whole_steps(values: list[Number], step: float | None) -> list[int] | None:
    """Floats of a field with a step, each as its number of steps; None for others, and where one is too large."""
    if step is None or isinstance(values[0], int):
        return None
    try:
        return [scale(value, step) for value in values]
    except OverflowError:
        return None


def _unit(step: float | None) -> Fraction:
    assert step is not None
    inverse = per_unit(step)
    return Fraction(step) if inverse is None else 1 / Fraction(inverse)


def _unscaled(steps: int, step: float | None) -> float:
    assert step is not None
    try:
        return unscale(steps, step)
    except OverflowError:
        return math.inf if steps > 0 else -math.inf


def _nearest(value: Fraction) -> float:
    """The float nearest to it; infinite beyond the floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _most_frequent(values: list[Any], k: int) -> tuple[Any, ...]:
    one = {ordering(value): value for value in reversed(values)}
    counts = {order: sum(ordering(value) == order for value in values) for order in one}
    ranked = sorted(one, key=lambda order: (-counts[order], order))
    return tuple(one[order] for order in ranked[:k])


def _magnitudes(known: list[tuple[int, Any]], bins: int, span: Span | None) -> tuple[float, ...]:
    if not known:
        return ()
    if not all(math.isfinite(value) for _, value in known):
        return (math.nan,) * bins
    size = len(known) if span is None else span.end - span.start
    places = [index if span is None else at - span.start for index, (at, _) in enumerate(known)]
    found = []
    for b in range(bins):
        # The turn is reduced exactly first: a sine of a large angle is a poor one.
        turns = [Fraction(b * place % size, size) for place in places]
        terms = [float(value) * cmath.exp(-2j * math.pi * float(t)) for (_, value), t in zip(known, turns, strict=True)]
        found.append(math.hypot(*(_nearest(sum(map(Fraction, part), Fraction(0))) for part in _parts(terms))))
    return tuple(found)


def _parts(terms: list[complex]) -> tuple[list[float], list[float]]:
    return [term.real for term in terms], [term.imag for term in terms]


def users(call_: AggregateCall) -> Any:
    """The user's aggregate, as it was when the program was declared."""
    kind = declared(call_.reference or "")
    aggregate = object.__new__(kind)
    vars(aggregate).update(call_.parameters or {})
    return aggregate


def _of_user(aggregate: NamedAggregate, lifted: list[Any]) -> Any:
    its = users(aggregate.call)
    summary = functools.reduce(lambda left, right: call(its.merge, left, right), lifted)
    return conform(call(its.lower, summary), aggregate.type, aggregate.nullable)
