"""A table for a record: its columns from the schema, and what a later result takes the place of.

Knows SQL's types for a record's; must not know connections.

>>> from catchment.program.types import INSTANT, STR, Column
>>> schema = Schema("Trip", (Column("user", STR, key=True), Column("at", INSTANT, event_time=True)))
>>> print(create("trip", schema, ("user",)))
CREATE TABLE IF NOT EXISTS "trip" ("user" text NOT NULL, "at" timestamptz NOT NULL, PRIMARY KEY ("user"))
"""

from __future__ import annotations

from catchment.program.sinks import REVISION, identity, is_revised
from catchment.program.types import DataType, ScalarType, Schema

MARKS = "catchment_mark"
MARKS_COLUMNS = (
    "program text, sink text, part integer, store text NOT NULL, generation bigint NOT NULL, number bigint NOT NULL, "
    "log text NOT NULL, PRIMARY KEY (program, sink, part)"
)
"""One row per sink and part: everything up to `number` is in the table."""
_TYPES = {
    "bool": "boolean",
    "int": "bigint",
    "float": "double precision",
    "str": "text",
    "bytes": "bytea",
    "instant": "timestamptz",
    "duration": "interval",
}
_CATALOGUE = {"boolean", "bigint", "double precision", "text", "bytea", "interval", "jsonb"}


def sql_type(kind: DataType) -> str:
    """The type of a column; what is nested is JSON."""
    return _TYPES.get(kind.name, "text") if isinstance(kind, ScalarType) else "jsonb"


def catalogue_type(kind: DataType) -> str:
    """The same as information_schema says it."""
    found = sql_type(kind)
    return found if found in _CATALOGUE else "timestamp with time zone"


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it.

    >>> quoted("public.trip"), quoted('od"d')
    ('"public"."trip"', '"od""d"')
    """
    return ".".join('"' + word.replace('"', '""') + '"' for word in name.split("."))


def beside(table: str, name: str) -> str:
    """Another table in the same schema.

    >>> beside("fleet.trip", "catchment_mark"), beside("trip", "catchment_mark")
    ('fleet.catchment_mark', 'catchment_mark')
    """
    return f"{table.rpartition('.')[0]}.{name}" if "." in table else name


def replaces_by(schema: Schema, keep: str) -> tuple[str, ...]:
    """The fields by which a result takes the place of an earlier one; none where every result is a row of its own."""
    if keep == "latest":
        return schema.keys
    return identity(schema) if is_revised(schema) else ()


def create(table: str, schema: Schema, by: tuple[str, ...]) -> str:
    """Makes the table if it is not there."""
    columns = [
        f"{quoted(column.name)} {sql_type(column.type)}{'' if column.nullable else ' NOT NULL'}"
        for column in schema.fields
    ]
    if by:
        columns.append(f"PRIMARY KEY ({', '.join(map(quoted, by))})")
    return f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({', '.join(columns)})"


def merge(table: str, staged: str, schema: Schema, by: tuple[str, ...]) -> str:
    """Takes rows over from `staged`, where `_n` numbers them: the newest of each key, unless the table has a newer."""
    names = ", ".join(quoted(column.name) for column in schema.fields)
    keys = ", ".join(map(quoted, by))
    others = [column.name for column in schema.fields if column.name not in by]
    newest = _newest(schema, by)
    order = "".join(f"{quoted(name)} DESC, " for name in newest)
    statement = (
        f"INSERT INTO {quoted(table)} AS kept ({names}) SELECT {names} FROM (SELECT DISTINCT ON ({keys}) * "
        f"FROM {quoted(staged)} ORDER BY {keys}, {order}_n DESC) AS newest ORDER BY {keys} ON CONFLICT ({keys}) DO "
    )
    if not others:
        return f"{statement}NOTHING"
    changes = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
    if not newest:
        return f"{statement}UPDATE SET {changes}"
    new = ", ".join(f"excluded.{quoted(name)}" for name in newest)
    old = ", ".join(f"kept.{quoted(name)}" for name in newest)
    return f"{statement}UPDATE SET {changes} WHERE ({new}) >= ({old})"


def _newest(schema: Schema, by: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that say which of two rows of a key is newer: when it happened, then its revision."""
    event_time = schema.event_time
    ordered = (event_time, REVISION) if is_revised(schema) else (event_time,)
    nullable = {column.name for column in schema.fields if column.nullable}
    return tuple(name for name in ordered if name is not None and name not in by and name not in nullable)
