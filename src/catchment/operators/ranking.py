"""The k elements with the largest value: what `top(k, by)` holds of a window, and its rows, largest first.

Null is smallest and NaN largest; of equals the earlier in order comes first.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from catchment.operators.aggregates.aggregate import Order, frozen
from catchment.operators.contents import Contents, Seen
from catchment.operators.expressions import compile_expression
from catchment.operators.inlined import Inlined
from catchment.operators.ordering import sortable
from catchment.operators.projection import functions_of
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema
from catchment.program.typing import infer

_Entry = tuple[Any, Order, Row]
_value, _order = itemgetter(0), itemgetter(1)

# What the result's row begins with, after the key: window_start, window_end, revision and at.
_WINDOW_FIELDS = 4


class Ranking(Contents):
    """The summary is the list of (what the value sorts by, order, the fields given), best first."""

    ordered = True
    bulky = False

    def __init__(self, step: steps.TopK, schema: Schema) -> None:
        self._k = step.k
        value = compile_expression(step.by, (schema,), functions_of((step.by,)))
        sorts_as = sortable(infer(step.by, (schema,)).type)
        given = step.record.names[len(step.keys) + _WINDOW_FIELDS + 1 :]
        positions = [schema.position(name) for name in given]

        def look(row: Row) -> Seen:
            return sorts_as(value(row)), tuple([row[position] for position in positions])

        self.look = look
        self.add = self._add
        self.merge = self._merge
        self.inlined = Inlined(
            ["seen = look(row)"], True, ["seen"], ["add(summary, seen, at, order)"], {"look": look, "add": self._add}
        )

    def empty(self) -> list[_Entry]:
        return []

    def _add(self, summary: list[_Entry], seen: Seen, at: int, order: Order) -> None:
        value, fields = seen
        low, high = 0, len(summary)
        while low < high:
            middle = (low + high) // 2
            other, earlier, _ = summary[middle]
            if other > value or (other == value and earlier < order):
                low = middle + 1
            else:
                high = middle
        if low < self._k:
            summary.insert(low, (value, order, fields))
            del summary[self._k :]

    def _merge(self, left: list[_Entry], right: list[_Entry]) -> list[_Entry]:
        # Two stable sorts, since what a value sorts by cannot be negated.
        return sorted(sorted(left + right, key=_order), key=_value, reverse=True)[: self._k]

    def rows(self, begins: Row, summary: list[_Entry]) -> tuple[list[Row], RowError | None]:
        return [(*begins, rank, *fields) for rank, (_, _, fields) in enumerate(summary, start=1)], None

    def save(self, summary: list[_Entry]) -> Any:
        return [list(entry) for entry in summary]

    def load(self, saved: Any) -> list[_Entry]:
        return [frozen(entry) for entry in saved]
