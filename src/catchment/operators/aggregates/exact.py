"""`sum`, `mean` and `variance` of whole numbers: of ints and durations, and of floats counted in steps. Exact.

The order of addition does not matter, and what was added can be taken out again. A float that is not finite is
counted apart: it makes the result while it is there. One too large to be counted by floats is counted by fractions.

>>> mean = ExactMean(0.1)
>>> summary = mean.empty()
>>> for value in (0.1, 0.2, 0.6): summary = mean.add(summary, value, 0, None)
>>> summary, mean.result(summary)
([3, 9, None], 0.3)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order, plain_whole
from catchment.program.resolution import per_unit, unscale
from catchment.program.row_error import OVERFLOW, RowError

_NAN, _UP, _DOWN, _LARGE = range(4)
Odd = list[int]
"""How many values were NaN, infinite, infinite downward, or too large."""


class _Exact(Aggregate):
    """The summary is [how many, their sum in steps, (of variance: the sum of their squares,) the odd ones]."""

    removable = True
    squares = False

    def __init__(self, step: float | None) -> None:
        """Of floats with that step; None: of whole numbers."""
        self.step = step
        self._inverse = per_unit(step) if step is not None else None
        self.add = self._adding()  # a closure, because it runs for each element

    def empty(self) -> list[Any]:
        return [0, 0, 0, None] if self.squares else [0, 0, None]

    def _adding(self) -> Callable[[list[Any], Any, int, Order], list[Any]]:
        steps_of, squares = self._counting(), self.squares

        def add_whole(summary: list[Any], value: int, at: int, order: Order) -> list[Any]:
            summary[0] += 1
            summary[1] += value
            if squares:
                summary[2] += value * value
            return summary

        def add_scaled(summary: list[Any], value: float, at: int, order: Order) -> list[Any]:
            try:
                steps = steps_of(value)
            except (ValueError, OverflowError):
                steps = self._odd(summary, value)
            summary[0] += 1
            summary[1] += steps
            if squares:
                summary[2] += steps * steps
            return summary

        return add_whole if self.step is None else add_scaled

    def _counting(self) -> Callable[[float], int]:
        """`scale`, for one step."""
        inverse, step = self._inverse, self.step
        if inverse is not None:
            return lambda value: round(value * inverse)
        return lambda value: round(value / step)  # type: ignore[operator]  # only called where there is a step

    def _odd(self, summary: list[Any], value: float) -> int:
        """Note a value that is not counted as the others are, and say for how many steps it counts."""
        odd: Odd = [*(summary[-1] or (0, 0, 0, 0))]
        kind = _LARGE if math.isfinite(value) else _NAN if value != value else _UP if value > 0 else _DOWN
        odd[kind] += 1
        summary[-1] = odd
        if kind != _LARGE:
            return 0
        unit = 1 / Fraction(self._inverse) if self._inverse is not None else Fraction(self.step or 1)
        return round(Fraction(value) / unit)

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        merged = [one + other for one, other in zip(left[:-1], right[:-1], strict=True)]
        merged.append(_combined(left[-1], right[-1], 1) if left[-1] or right[-1] else None)
        return merged

    def remove(self, summary: list[Any], part: list[Any]) -> list[Any]:
        rest = [one - other for one, other in zip(summary[:-1], part[:-1], strict=True)]
        rest.append(_combined(summary[-1], part[-1], -1) if part[-1] else summary[-1])
        return rest

    def not_finite(self, summary: list[Any]) -> float | None:
        """What IEEE addition gives where not all values are finite; None where they are."""
        odd: Odd | None = summary[-1]
        if odd is None or not any(odd[:_LARGE]):
            return None
        if odd[_NAN] or (odd[_UP] and odd[_DOWN]):
            return math.nan
        return math.inf if odd[_UP] else -math.inf

    def total(self, summary: list[Any]) -> int | float:
        """The sum in the field's unit."""
        steps: int = summary[1]
        if self.step is None:
            return steps
        if summary[-1] is not None and summary[-1][_LARGE]:
            return self.quotient(steps, 1)
        try:
            return unscale(steps, self.step)
        except OverflowError:
            return math.copysign(math.inf, steps)

    def quotient(self, whole: int, by: int, power: int = 1) -> float:
        """So many steps (or squares of them) divided, in the field's unit: the float nearest to it."""
        try:
            if self.step is None:
                return float(whole / by)
            if self._inverse is not None:
                return float(whole / (by * int(self._inverse) ** power))
            return float(Fraction(whole, by) * Fraction(self.step) ** power)
        except OverflowError:
            return math.copysign(math.inf, whole)

    def save(self, summary: list[Any]) -> list[Any]:
        return [*map(plain_whole, summary[:-1]), summary[-1]]

    def load(self, saved: list[Any]) -> list[Any]:
        return [*map(int, saved[:-1]), saved[-1]]


def _combined(left: Odd | None, right: Odd | None, sign: int) -> Odd | None:
    pairs = zip(left or (0, 0, 0, 0), right or (0, 0, 0, 0), strict=True)
    found = [one + sign * other for one, other in pairs]
    return found if any(found) else None


class ExactSum(_Exact):
    """The sum; of whole numbers it fails beyond 64 bits."""

    def result(self, summary: list[Any]) -> Any:
        if not summary[0]:
            return None
        if self.step is None:
            if -(2**63) <= summary[1] < 2**63:
                return summary[1]
            raise RowError(OVERFLOW)
        odd = self.not_finite(summary)
        return self.total(summary) if odd is None else odd


class ExactMean(_Exact):
    """The arithmetic mean."""

    def result(self, summary: list[Any]) -> float | None:
        count = summary[0]
        if not count:
            return None
        if self.step is None:
            return self.quotient(summary[1], count)
        odd = self.not_finite(summary)
        return self.total(summary) / count if odd is None else odd


class ExactVariance(_Exact):
    """The population variance."""

    squares = True

    def result(self, summary: list[Any]) -> float | None:
        count, total, squares, _ = summary
        if not count:
            return None
        if self.not_finite(summary) is not None:
            return math.nan
        return self.quotient(count * squares - total * total, count * count, 2)
