"""Rows made of expressions: the columns of a select or a pair, in the order of the record that they become.

A field that is not computed gets its default, and an int that becomes a float field is that float. The time of the
new element is its record's event-time field, or the time it came from where that is absent or null.

>>> from catchment.program.nodes import FieldRef
>>> from catchment.program.types import FLOAT, INT, Column
>>> given, wanted = Schema("A", (Column("n", INT),)), Schema("B", (Column("x", FLOAT), Column("y", INT, default=7)))
>>> compile_projection((Named("x", FieldRef("n"), INT),), (given,), wanted)((3,))
(3.0, 7)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from catchment.operators.expressions import Emitter, define
from catchment.program.function import declared
from catchment.program.nodes import Node, UserCall, walk
from catchment.program.steps import Named
from catchment.program.types import FLOAT, INT, Row, Schema


def functions_of(nodes: Iterable[Node]) -> dict[str, Callable[..., Any]]:
    """The declared functions that expressions call, by reference."""
    calls = {node.function for root in nodes for node in walk(root) if isinstance(node, UserCall)}
    return {reference: declared(reference).body for reference in calls}


def column_sources(emitter: Emitter, columns: tuple[Named, ...], record: Schema) -> list[str]:
    """The source of each field of the record, in order; they must run in that order."""
    computed = {column.name: column for column in columns}
    emitter.share(*(column.value for column in columns))
    sources = []
    for field in record.fields:
        column = computed.get(field.name)
        if column is None:
            sources.append(emitter.bind(f"default_{field.name}", field.default))
        elif column.type == INT and field.type == FLOAT:
            sources.append(emitter.promoted(column.value, FLOAT))
        else:
            sources.append(emitter.value(column.value))
    return sources


def compile_projection(columns: tuple[Named, ...], schemas: tuple[Schema, ...], record: Schema) -> Callable[..., Row]:
    """A function from a row (of a pair: from both rows) to the row of the record."""
    emitter = Emitter(schemas, functions_of(column.value for column in columns))
    sources = column_sources(emitter, columns, record)
    sides = "left, right" if len(schemas) == 2 else "row"
    made: Callable[..., Row] = define(sides, "(" + "".join(f"{source}, " for source in sources) + ")", emitter.bindings)
    return made


def time_position(record: Schema) -> int | None:
    """Where a record says when it happened."""
    return None if record.event_time is None else record.position(record.event_time)
