"""Several aggregates of the same elements as one: their expressions are compiled together, and so is adding.

The summary is the list of the aggregates' summaries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order
from catchment.operators.aggregates.choose import aggregate_of
from catchment.operators.aggregates.user import User
from catchment.operators.contents import Contents, Seen
from catchment.operators.expressions import compile_row
from catchment.operators.projection import functions_of
from catchment.program.aggregate import NamedAggregate
from catchment.program.nodes import Literal, Node
from catchment.program.row_error import RowError
from catchment.program.types import INT, Row, Schema


class Bundle(Contents):
    """Aggregates; `size` is that of a window of time, None elsewhere."""

    def __init__(self, named: tuple[NamedAggregate, ...], schema: Schema, size: int | None) -> None:
        self.aggregates = [aggregate_of(one, schema, size) for one in named]
        self.ordered = any(one.ordered for one in self.aggregates)
        self.bulky = any(one.bulky for one in self.aggregates)
        self.look = _looking(named, self.aggregates, schema)
        self.add = _adding(self.aggregates)
        self.removable = all(one.removable for one in self.aggregates)
        self._merges = [one.merge for one in self.aggregates]
        self._results = [one.result for one in self.aggregates]

    def empty(self) -> list[Any]:
        return [one.empty() for one in self.aggregates]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [merge(one, other) for merge, one, other in zip(self._merges, left, right, strict=True)]

    def remove(self, summary: list[Any], part: list[Any]) -> list[Any]:
        pairs = zip(self.aggregates, summary, part, strict=True)
        return [aggregate.remove(one, other) for aggregate, one, other in pairs]

    def results(self, summary: list[Any]) -> tuple[Row, RowError | None]:
        """The value of each aggregate, null for those that fail, and why the first one did."""
        try:
            return tuple([result(one) for result, one in zip(self._results, summary, strict=True)]), None
        except RowError:
            pass
        values: list[Any] = []
        first: RowError | None = None
        for result, one in zip(self._results, summary, strict=True):
            try:
                values.append(result(one))
            except RowError as error:
                first = first or error
                values.append(None)
        return tuple(values), first

    def rows(self, begins: Row, summary: list[Any]) -> tuple[list[Row], RowError | None]:
        values, failure = self.results(summary)
        return [begins + values], failure

    def save(self, summary: list[Any]) -> Any:
        return [aggregate.save(one) for aggregate, one in zip(self.aggregates, summary, strict=True)]

    def load(self, saved: Any) -> list[Any]:
        return [aggregate.load(one) for aggregate, one in zip(self.aggregates, saved, strict=True)]


def _looking(named: tuple[NamedAggregate, ...], aggregates: list[Aggregate], schema: Schema) -> Callable[[Row], Seen]:
    """The values that the aggregates are of."""
    nodes: list[Node] = [one.call.args[0] if one.call.args else Literal(0, INT) for one in named]
    values = compile_row(nodes, (schema,), functions_of(nodes))
    lifts = [one.lift if isinstance(one, User) else None for one in aggregates]
    if not any(lifts):
        return values

    def lifted(row: Row) -> Row:
        return tuple(
            [
                lift(value) if lift is not None and value is not None else value
                for lift, value in zip(lifts, values(row), strict=True)
            ]
        )

    return lifted


def _adding(aggregates: list[Aggregate]) -> Callable[[list[Any], Seen, int, Order], None]:
    """Generated, so that there is no loop over the aggregates for each element."""
    lines = ["def add(summary, seen, at, order):"]
    scope: dict[str, Any] = {}
    for index, aggregate in enumerate(aggregates):
        scope[f"add{index}"] = aggregate.add
        test = "" if aggregate.takes_null else f"if seen[{index}] is not None: "
        lines.append(f"    {test}summary[{index}] = add{index}(summary[{index}], seen[{index}], at, order)")
    exec(compile("\n".join(lines), "<aggregates>", "exec"), scope)
    add: Callable[[list[Any], Seen, int, Order], None] = scope["add"]
    return add
