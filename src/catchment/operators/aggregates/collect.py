"""`collect`: all values in order."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order, frozen

_Collected = list[tuple[Order, Any]]


class Collect(Aggregate):
    """The summary is the list of (what it sorts by, value), in no order."""

    ordered = True
    bulky = True

    def empty(self) -> _Collected:
        return []

    def add(self, summary: _Collected, value: Any, at: int, order: Order) -> _Collected:
        summary.append((order, value))
        return summary

    def merge(self, left: _Collected, right: _Collected) -> _Collected:
        return left + right

    def in_order(self, summary: _Collected) -> list[Any]:
        """The values in order."""
        return [value for _, value in sorted(summary, key=itemgetter(0))]

    def result(self, summary: _Collected) -> Any:
        return tuple(self.in_order(summary))

    def load(self, saved: Any) -> _Collected:
        return [frozen(pair) for pair in saved]
