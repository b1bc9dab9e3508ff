"""A user's aggregate: made of `lift`, `merge` and `lower`, and where there is one, `remove`.

What fails in `lift` fails the element, and the caller sees to that. What fails in `merge` or `lower` fails the
result, so a summary that could not be merged remembers why until it is asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from catchment.operators.aggregates.aggregate import Aggregate, Order, StuckError, frozen
from catchment.operators.stateless import calling
from catchment.program.aggregate import AggregateCall
from catchment.program.function import declared
from catchment.program.returned import conform
from catchment.program.row_error import RowError
from catchment.program.types import DataType


class _Merged(NamedTuple):
    """A summary of so many values, or why there is none."""

    values: int
    summary: Any
    failure: RowError | None = None


class User(Aggregate):
    """The summary is what merging gave, or None of no values."""

    def __init__(self, call: AggregateCall, kind: DataType, nullable: bool) -> None:
        cls = declared(call.reference or "")
        its = object.__new__(cls)
        vars(its).update(call.parameters or {})
        self.lift = calling(its.lift)
        """What is added is what this gives of a value."""
        self._merge, self._lower = calling(its.merge), calling(its.lower)
        self._type, self._nullable = kind, nullable
        if hasattr(its, "remove"):
            self._remove = calling(its.remove)
            self.removable = True

    def empty(self) -> _Merged | None:
        return None

    def add(self, summary: _Merged | None, value: Any, at: int, order: Order) -> _Merged | None:
        return self.merge(summary, _Merged(1, value))

    def merge(self, left: _Merged | None, right: _Merged | None) -> _Merged | None:
        if left is None or right is None:
            return right if left is None else left
        count = left.values + right.values
        failure = left.failure or right.failure
        if failure is not None:
            return _Merged(count, None, failure)
        try:
            return _Merged(count, self._merge(left.summary, right.summary))
        except RowError as error:
            return _Merged(count, None, error)

    def remove(self, summary: _Merged | None, part: _Merged | None) -> _Merged | None:
        if not self.removable:
            raise StuckError
        if summary is None or part is None:
            return summary
        count = summary.values - part.values
        if not count:
            return None
        if summary.failure is not None:
            raise StuckError  # what failed may be leaving
        try:
            return _Merged(count, self._remove(summary.summary, part.summary))
        except RowError as error:
            raise StuckError from error

    def result(self, summary: _Merged | None) -> Any:
        if summary is None:
            return None
        if summary.failure is not None:
            raise summary.failure
        return conform(self._lower(summary.summary), self._type, self._nullable)

    def save(self, summary: _Merged | None) -> Any:
        if summary is None:
            return None
        failure = summary.failure
        return [summary.values, summary.summary, *([failure.reason, failure.detail] if failure is not None else [])]

    def load(self, saved: Any) -> _Merged | None:
        if saved is None:
            return None
        count, summary, *failure = saved
        return _Merged(count, frozen(summary), RowError(*failure) if failure else None)
