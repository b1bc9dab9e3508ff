"""`first` and `last`: the value of the earliest and of the latest element, null or not."""

from __future__ import annotations

from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order, frozen

_End = tuple[Order, Any] | None


class First(Aggregate):
    """The summary is (what it sorts by, value), or None of nothing."""

    ordered = True
    takes_null = True

    def empty(self) -> _End:
        return None

    def add(self, summary: _End, value: Any, at: int, order: Order) -> _End:
        return (order, value) if summary is None or self.beats(order, summary[0]) else summary

    def merge(self, left: _End, right: _End) -> _End:
        if left is None or right is None:
            return right if left is None else left
        return right if self.beats(right[0], left[0]) else left

    def result(self, summary: _End) -> Any:
        return None if summary is None else summary[1]

    def load(self, saved: Any) -> _End:
        end: _End = frozen(saved)
        return end

    def beats(self, order: Order, other: Order) -> bool:
        """Whether what sorts by `order` is nearer to this end."""
        return bool(order < other)


class Last(First):
    """The other end."""

    def beats(self, order: Order, other: Order) -> bool:
        return bool(order > other)
