"""`min` and `max`. NaN is the largest float."""

from __future__ import annotations

from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order


class _Extreme(Aggregate):
    """The summary is the value, or null of none."""

    def empty(self) -> Any:
        return None

    def add(self, summary: Any, value: Any, at: int, order: Order) -> Any:
        return value if summary is None or self.beats(value, summary) else summary

    def merge(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        return right if self.beats(right, left) else left

    def result(self, summary: Any) -> Any:
        return summary

    def beats(self, value: Any, other: Any) -> bool:
        """Whether the value is to be kept rather than the other."""
        raise AssertionError("one of the two below")


class Min(_Extreme):
    """The smallest."""

    def beats(self, value: Any, other: Any) -> bool:
        return bool(value < other or (other != other and value == value))


class Max(_Extreme):
    """The largest."""

    def beats(self, value: Any, other: Any) -> bool:
        return bool(value > other or (value != value and other == other))
