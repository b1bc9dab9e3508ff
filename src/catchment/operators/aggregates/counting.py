"""`count`: how many elements, null or not."""

from __future__ import annotations

from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Bind, Order


class Count(Aggregate):
    """The summary is the number."""

    takes_null = True
    removable = True

    def empty(self) -> int:
        return 0

    def add(self, summary: int, value: Any, at: int, order: Order) -> int:
        return summary + 1

    def source(self, summary: str, value: str, bind: Bind) -> list[str]:
        return [f"{summary} += 1"]

    def merge(self, left: int, right: int) -> int:
        return left + right

    def remove(self, summary: int, part: int) -> int:
        return summary - part

    def result(self, summary: int) -> int:
        return summary
