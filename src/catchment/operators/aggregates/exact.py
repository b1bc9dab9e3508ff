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
from fractions import Fraction
from operator import add, sub
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Bind, plain_whole
from catchment.operators.inlined import defined
from catchment.program.resolution import per_unit, unscale
from catchment.program.row_error import OVERFLOW, RowError

_NAN, _UP, _DOWN, _LARGE = range(4)
Odd = list[int]
"""How many values were NaN, infinite, infinite downward, or too large."""
_NONE_ODD = [None]


class _Exact(Aggregate):
    """The summary is [how many, their sum in steps, (of variance: the sum of their squares,) the odd ones]."""

    removable = True
    squares = False

    def __init__(self, step: float | None) -> None:
        """Of floats with that step; None: of whole numbers."""
        self.step = step
        self._inverse = per_unit(step) if step is not None else None
        bindings: dict[str, Any] = {}

        def bind(name: str, thing: Any) -> str:
            bindings[name] = thing
            return name

        lines = self.source("summary", "value", bind)
        self.add = defined("add", "summary, value, at, order", [*lines, "return summary"], bindings)

    def empty(self) -> list[Any]:
        return [0, 0, 0, None] if self.squares else [0, 0, None]

    def source(self, summary: str, value: str, bind: Bind) -> list[str]:
        lines = [f"exact = {summary}"]
        if self.step is None:
            steps = value
        else:
            steps = "steps"
            # `scale`, for one step.
            scaled = f"{value} * {self._inverse!r}" if self._inverse is not None else f"{value} / {self.step!r}"
            lines += [
                "try:",
                f"    steps = {bind('round', round)}({scaled})",
                "except (ValueError, OverflowError):",
                f"    steps = {bind('odd', self._odd)}(exact, {value})",
            ]
        lines += ["exact[0] += 1", f"exact[1] += {steps}"]
        return [*lines, f"exact[2] += {steps} * {steps}"] if self.squares else lines

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
        if left[-1] is None and right[-1] is None:
            return list(map(add, left[:-1], right)) + _NONE_ODD
        return [*map(add, left[:-1], right), _combined(left[-1], right[-1], 1)]

    def remove(self, summary: list[Any], part: list[Any]) -> list[Any]:
        if part[-1] is None:
            return [*map(sub, summary[:-1], part), summary[-1]]
        return [*map(sub, summary[:-1], part), _combined(summary[-1], part[-1], -1)]

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
            return math.inf if steps > 0 else -math.inf

    def quotient(self, whole: int, by: int, power: int = 1) -> float:
        """So many steps (or squares of them) divided, in the field's unit: the float nearest to it."""
        try:
            if self.step is None:
                return float(whole / by)
            if self._inverse is not None:
                return float(whole / (by * int(self._inverse) ** power))
            return float(Fraction(whole, by) * Fraction(self.step) ** power)
        except OverflowError:
            return math.inf if whole > 0 else -math.inf

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
