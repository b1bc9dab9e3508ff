"""Rows of expressions, as columns: what a select makes of an element, or a join of a pair.

The columns are in the order of the record that they become, and fields that are not computed get their defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows, column_of
from catchment.engines.spark.vector_expressions import VectorExpressions
from catchment.operators.projection import time_position
from catchment.program import steps
from catchment.program.columns import outer_side
from catchment.program.nodes import FieldRef, Node, replace
from catchment.program.types import Column as Field
from catchment.program.types import Schema


@dataclass(frozen=True, slots=True)
class Projected:
    """The columns of a record, when it says that it happened, and why rows fail, by number."""

    columns: list[Column]
    at: Array
    reasons: dict[int, str]


class VectorProjection:
    """Computed columns over rows of a schema."""

    def __init__(self, columns: Sequence[steps.Named], given: Schema, record: Schema) -> None:
        self._record = record
        computed = {column.name: column for column in columns}
        self._order = [field.name for field in record.fields if field.name in computed]
        wanted = [record.column(name).type for name in self._order]
        self._expressions = VectorExpressions(given, [computed[name].value for name in self._order], wanted)
        self._time = time_position(record)

    def __call__(self, rows: Rows) -> Projected:
        """The columns of these."""
        computed = self._expressions(rows)
        found = dict(zip(self._order, computed.columns, strict=True))
        columns = [
            found[field.name] if field.name in found else column_of([field.default] * len(rows), field.type)
            for field in self._record.fields
        ]
        return Projected(columns, times(columns, self._time, rows.at), computed.reasons())


def times(columns: Sequence[Column], position: int | None, otherwise: Array) -> Array:
    """When computed elements happen: what their record says, or else."""
    if position is None:
        return otherwise
    field: Column = columns[position]
    return field.values if field.valid is None else np.where(field.valid, field.values, otherwise)


def pair_projection(
    step: steps.Join | steps.Zip | steps.Combine, given: Sequence[Schema], optional: Sequence[int]
) -> VectorProjection:
    """The projection of pairs, whose rows are the left row's fields followed by the right row's."""
    sides = [outer_side(schema, side in optional) for side, schema in enumerate(given)]
    fields: list[Field] = []
    names: list[dict[str, str]] = []
    for side, schema in enumerate(sides):
        names.append({column.name: f"{side}.{column.name}" for column in schema.fields})
        fields += [msgspec.structs.replace(column, name=names[side][column.name]) for column in schema.fields]
    both = Schema(f"{given[0].name}_{given[1].name}", tuple(fields))

    def named(node: Node) -> Node | None:
        return FieldRef(names[node.side][node.name]) if isinstance(node, FieldRef) else None

    columns = [steps.Named(each.name, replace(each.value, named), each.type, each.nullable) for each in step.columns]
    return VectorProjection(columns, both, step.record)
