"""`map` and `flat_map`: a declared function of each element, which gives one or many.

What it raises, and what it returns against its declaration, fails the row; one that gives many gives all or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from catchment.operators.chain import Chain
from catchment.operators.stateless import Stateless, calling
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.returned import conform
from catchment.program.row_error import FUNCTION_RESULT, RowError
from catchment.program.types import RecordType, Row, Schema


class Map(Stateless):
    """A declared function."""

    def __init__(self, step: steps.Map, given: Schema) -> None:
        super().__init__(given)
        self._step = step
        self._function = declared(step.function)

    def write(self, chain: Chain) -> None:
        of = self._function.annotations[0].of
        body = calling(self._function.body)
        record = self._step.record
        if self._step.many:
            many = records(record)
            chain.flat_map(lambda row: many(body(of(row))), record)
        else:
            one = record_of(record)
            chain.map(lambda row: one(body(of(row))), record)


def record_of(record: Schema) -> Callable[[Any], Row]:
    """A returned record as a plain row, or a failure where it is none."""
    kind = RecordType(record)

    def one(returned: Any) -> Row:
        row: Row = conform(returned, kind, nullable=False)
        return row

    return one


def records(record: Schema) -> Callable[[Any], list[Row]]:
    """Returned records as plain rows, all of them or a failure. An author may also `yield` them."""
    one = record_of(record)
    listed = calling(list)

    def many(returned: Any) -> list[Row]:
        if not isinstance(returned, Iterable):
            raise RowError(FUNCTION_RESULT, f"{returned!r}, where many {record.name} were declared")
        return [one(each) for each in listed(returned)]

    return many
