"""`sum`, `mean` and `variance` of floats without a step: compensated sums, and moments about the mean.

Both stay accurate however many values there are, and merge. Nothing is taken out of them again: subtracting a large
value from a float leaves its rounding error behind. NaN and infinities travel as IEEE addition has it.

>>> total = FloatSum()
>>> summary = total.empty()
>>> for value in (1e16, 1.0, -1e16): summary = total.add(summary, value, 0, None)
>>> total.result(summary)
1.0
"""

from __future__ import annotations

import math

from catchment.operators.aggregates.aggregate import Aggregate, Order

_Sum = list[float]


class FloatSum(Aggregate):
    """The summary is [how many, their sum, what its rounding lost]."""

    def empty(self) -> _Sum:
        return [0, 0.0, 0.0]

    def add(self, summary: _Sum, value: float, at: int, order: Order) -> _Sum:
        before = summary[1]
        after = before + value
        summary[0] += 1
        summary[1] = after
        summary[2] += (before - after) + value if abs(before) >= abs(value) else (value - after) + before
        return summary

    def merge(self, left: _Sum, right: _Sum) -> _Sum:
        merged = self.add([left[0], left[1], left[2] + right[2]], right[1], 0, None)
        merged[0] += right[0] - 1
        return merged

    def total(self, summary: _Sum) -> float:
        """The sum; what was lost is beside the point where it is not finite."""
        return summary[1] + summary[2] if math.isfinite(summary[1]) else summary[1]

    def result(self, summary: _Sum) -> float | None:
        return self.total(summary) if summary[0] else None


class FloatMean(FloatSum):
    """The arithmetic mean."""

    def result(self, summary: _Sum) -> float | None:
        return self.total(summary) / summary[0] if summary[0] else None


class FloatVariance(Aggregate):
    """The summary is [how many, their mean, the sum of the squares of their distances from it]."""

    def empty(self) -> list[float]:
        return [0, 0.0, 0.0]

    def add(self, summary: list[float], value: float, at: int, order: Order) -> list[float]:
        summary[0] += 1
        distance = value - summary[1]
        summary[1] += distance / summary[0]
        summary[2] += distance * (value - summary[1])
        return summary

    def merge(self, left: list[float], right: list[float]) -> list[float]:
        count = left[0] + right[0]
        if not left[0] or not right[0]:
            return [*(left if left[0] else right)]
        apart = right[1] - left[1]
        mean = left[1] + apart * (right[0] / count)
        return [count, mean, left[2] + right[2] + apart * apart * (left[0] * right[0] / count)]

    def result(self, summary: list[float]) -> float | None:
        if not summary[0]:
            return None
        # Of finite values it is never below zero; a NaN must not become a zero here.
        return summary[2] / summary[0] if math.isfinite(summary[1]) else math.nan
