"""Several aggregates of the same elements as one: their expressions are compiled together, and so is adding.

The summary is the list of the aggregates' summaries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate
from catchment.operators.aggregates.choose import aggregate_of
from catchment.operators.aggregates.user import User
from catchment.operators.contents import Contents
from catchment.operators.expressions import Emitter
from catchment.operators.inlined import Inlined, defined, indented
from catchment.operators.projection import functions_of
from catchment.program.aggregate import NamedAggregate
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


class Bundle(Contents):
    """Aggregates; `size` is that of a window of time, None elsewhere."""

    def __init__(self, named: tuple[NamedAggregate, ...], schema: Schema, size: int | None) -> None:
        self.aggregates = [aggregate_of(one, schema, size) for one in named]
        self.ordered = any(one.ordered for one in self.aggregates)
        self.bulky = any(one.bulky for one in self.aggregates)
        self.inlined = _inlined(named, self.aggregates, schema)
        self.look = self.inlined.looking()
        self.add = self.inlined.adding()
        self.removable = all(one.removable for one in self.aggregates)
        self.merge = _pairwise("merge", [one.merge for one in self.aggregates])
        self.remove = _pairwise("remove", [one.remove for one in self.aggregates])
        self._results = [one.result for one in self.aggregates]

    def empty(self) -> list[Any]:
        return [one.empty() for one in self.aggregates]

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


def _inlined(named: tuple[NamedAggregate, ...], aggregates: list[Aggregate], schema: Schema) -> Inlined:
    nodes = [one.call.args[0] for one in named if one.call.args]
    emitter = Emitter((schema,), functions_of(nodes))
    emitter.share(*nodes)
    look: list[str] = []
    seen: list[str] = []
    add: list[str] = []
    fails = False
    for index, (one, aggregate) in enumerate(zip(named, aggregates, strict=True)):
        value = f"v{index}"
        nullable = False
        if one.call.args:
            (node,) = one.call.args
            facts = emitter.analysis[node]
            nullable = facts.nullable
            fails = fails or facts.may_fail
            look.append(f"{value} = {emitter.value(node)}")
            seen.append(value)
            if isinstance(aggregate, User):
                lift = emitter.bind(f"lift{index}", aggregate.lift)
                look.append(f"if {value} is not None: {value} = {lift}({value})")
                fails = True
        lines = aggregate.source(f"summary[{index}]", value, emitter.bind)
        if lines is None:
            given = value if one.call.args else "None"
            lines = [
                f"summary[{index}] = {emitter.bind(f'add{index}', aggregate.add)}(summary[{index}], {given}, at, order)"
            ]
        if nullable and not aggregate.takes_null:
            lines = [f"if {value} is not None:", *indented(lines, 1)]
        add += lines
    return Inlined(look, fails, seen, add, emitter.bindings)


def _pairwise(name: str, functions: list[Callable[[Any, Any], Any]]) -> Callable[[list[Any], list[Any]], list[Any]]:
    """A function of two summaries that works on each aggregate's part."""
    bindings = {f"{name}{index}": function for index, function in enumerate(functions)}
    parts = ", ".join(f"{called}(left[{index}], right[{index}])" for index, called in enumerate(bindings))
    made: Callable[[list[Any], list[Any]], list[Any]] = defined(name, "left, right", [f"return [{parts}]"], bindings)
    return made
