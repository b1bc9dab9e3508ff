"""The types that rows of a schema take on the wire, for msgspec to check while it decodes.

Promises: what decodes with `rows_decoder` is a list of tuples of exactly the schema's shape, checked in C. Knows the
schema; must not know a format's escapes beyond which scalars it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from catchment.program.types import DataType, ListType, RecordType, ScalarType, Schema

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
SCALARS: dict[str, Any] = {
    "bool": bool,
    "int": _Int64,
    "float": float,
    "str": str,
    "bytes": bytes,
    "instant": _Int64,
    "duration": _Int64,
    "null": type(None),
}
"""What each scalar is in memory."""


def wire_type(kind: DataType, scalars: Mapping[str, Any]) -> Any:
    """The msgspec type of a value, with that choice for each scalar."""
    match kind:
        case ScalarType(name):
            return scalars[name]
        case ListType(element):
            return tuple[wire_type(element, scalars), ...]  # type: ignore[misc]
        case RecordType(schema):
            return row_type(schema, scalars)


def row_type(schema: Schema, scalars: Mapping[str, Any]) -> Any:
    """The msgspec type of a row."""
    columns = [
        wire_type(column.type, scalars) | None if column.nullable else wire_type(column.type, scalars)
        for column in schema.fields
    ]
    return tuple[tuple(columns)] if columns else tuple[()]  # type: ignore[misc]


def rows_type(schema: Schema, scalars: Mapping[str, Any]) -> Any:
    """The msgspec type of a list of rows."""
    return list[row_type(schema, scalars)]  # type: ignore[misc]
