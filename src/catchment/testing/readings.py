"""Readings as an author writes them, a record or a mapping, made rows of a schema.

>>> from catchment.program.types import FLOAT, STR, Column
>>> fix = Schema("Fix", (Column("user", STR), Column("speed_mps", FLOAT, nullable=True)))
>>> row_of(fix, {"user": "ada", "speed_mps": 3}), row_of(fix, {"user": "ada"})
(('ada', 3.0), ('ada', None))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from catchment.errors import ProgramError, author_line
from catchment.program.record import Record
from catchment.program.returned import conform
from catchment.program.row_error import RowError
from catchment.program.types import Column, Row, Schema

Reading: TypeAlias = Record | Mapping[str, Any]
"""A record, or a mapping of its fields, which may leave out those that have a default or may be null."""


def row_of(schema: Schema, reading: Reading) -> Row:
    """The reading as a row of that schema."""
    if isinstance(reading, Record):
        given = reading.schema
        if given.fingerprint != schema.fingerprint:
            raise _misfit(schema, f"it is a {given.name}")
        fields: Mapping[str, Any] = dict(zip(given.names, reading.row(), strict=True))
    else:
        fields = reading
    stray = next((name for name in fields if name not in schema.names), None)
    if stray is not None:
        raise _misfit(schema, f"{schema.name} has no field {stray!r}")
    return tuple(_field(schema, column, fields) for column in schema.fields)


def _field(schema: Schema, column: Column, fields: Mapping[str, Any]) -> Any:
    if column.name not in fields and not column.has_default and not column.nullable:
        raise _misfit(schema, f"it lacks {column.name}")
    try:
        return conform(fields.get(column.name, column.default), column.type, column.nullable)
    except RowError as error:
        raise _misfit(schema, f"{column.name} is {error.detail}") from None


def _misfit(schema: Schema, reason: str) -> ProgramError:
    return ProgramError(
        "T702",
        f"a reading does not fit {schema.name}",
        why=f"{reason}; its fields are: {', '.join(f'{c.name}: {c.type}' for c in schema.fields)}",
        fix=f"give a {schema.name}, or a mapping with these fields",
        at=author_line(),
    )
