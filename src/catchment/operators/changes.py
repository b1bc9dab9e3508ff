"""`changes`: keep an element when one of the values differs. Null is the same as null, and NaN as NaN."""

from __future__ import annotations

from typing import Any

from catchment.operators.expressions import compile_row
from catchment.operators.kept import Kept
from catchment.operators.projection import functions_of
from catchment.program import steps
from catchment.program.types import Row, Schema


class Changes(Kept):
    """What was seen are the values."""

    def __init__(self, step: steps.Changes, given: Schema) -> None:
        super().__init__(step.keys, given)
        self._values = compile_row(step.values, (given,), functions_of(step.values))

    def look(self, row: Row) -> Row:
        return self._values(row)

    def differs(self, before: Row, now: Row) -> bool:
        return before != now and not _same(before, now)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right or (left != left and right != right))
