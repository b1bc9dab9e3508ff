"""`count_distinct` and `top`: how often each value was there. NaN is one value, and -0.0 is 0.0."""

from __future__ import annotations

import math
from heapq import nsmallest
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order
from catchment.operators.ordering import sortable
from catchment.program.types import DataType

_Counts = dict[Any, int]


class _Frequency(Aggregate):
    """The summary is how often each value was there."""

    bulky = True
    removable = True

    def empty(self) -> _Counts:
        return {}

    def add(self, summary: _Counts, value: Any, at: int, order: Order) -> _Counts:
        if value != value:
            value = math.nan  # the one NaN that a dict finds again
        summary[value] = summary.get(value, 0) + 1
        return summary

    def merge(self, left: _Counts, right: _Counts) -> _Counts:
        merged = dict(left)
        for value, count in right.items():
            merged[value] = merged.get(value, 0) + count
        return merged

    def remove(self, summary: _Counts, part: _Counts) -> _Counts:
        rest = {value: count - part.get(value, 0) for value, count in summary.items()}
        return {value: count for value, count in rest.items() if count}

    def save(self, summary: _Counts) -> Any:
        return [[value, count] for value, count in summary.items()]

    def load(self, saved: Any) -> _Counts:
        return {math.nan if value != value else value: count for value, count in saved}


class CountDistinct(_Frequency):
    """How many different values."""

    def result(self, summary: _Counts) -> int:
        return len(summary)


class Top(_Frequency):
    """The k most frequent values; ties to the smaller value."""

    def __init__(self, k: int, kind: DataType) -> None:
        self._k = k
        self._sortable = sortable(kind)

    def result(self, summary: _Counts) -> tuple[Any, ...]:
        ranked = nsmallest(self._k, summary.items(), key=lambda item: (-item[1], self._sortable(item[0])))
        return tuple(value for value, _ in ranked)
