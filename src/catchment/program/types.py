"""Types of values and schemas of records, as data that a plan can carry to another language.

A row on every engine is a plain tuple in the order of `Schema.fields`. Instants and durations are whole
microseconds, so that no engine rounds them. A schema's fingerprint names the shape that a frame was encoded
with; a field added with a default, in a nested record too, is the one compatible change (`Schema.reads`).

>>> fix = Schema("Fix", (Column("user", STR, key=True), Column("at", INSTANT, event_time=True)))
>>> newer = Schema("Fix", (*fix.fields, Column("speed_mps", FLOAT, default=0.0, has_default=True)))
>>> newer.reads(fix), fix.reads(newer)
(True, True)
>>> newer.adapt(fix)(("ada", 5))
('ada', 5, 0.0)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NewType, TypeAlias

import msgspec

from catchment.errors import ProgramError

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01T00:00:00Z."""
Duration = NewType("Duration", int)
"""Microseconds."""
Row: TypeAlias = tuple[Any, ...]


class ScalarType(msgspec.Struct, frozen=True, tag_field="kind", tag="scalar"):
    """One of bool, int (64 bits), float (64 bits), str, bytes, instant, duration, or null (of a bare NULL)."""

    name: str

    def __str__(self) -> str:
        return self.name


class ListType(msgspec.Struct, frozen=True, tag_field="kind", tag="list"):
    """A repeated value: a tuple on every engine."""

    element: DataType

    def __str__(self) -> str:
        return f"list[{self.element}]"


class RecordType(msgspec.Struct, frozen=True, tag_field="kind", tag="record"):
    """A nested record: a tuple on every engine."""

    schema: Schema

    def __str__(self) -> str:
        return self.schema.name


DataType: TypeAlias = ScalarType | ListType | RecordType

BOOL = ScalarType("bool")
INT = ScalarType("int")
FLOAT = ScalarType("float")
STR = ScalarType("str")
BYTES = ScalarType("bytes")
INSTANT = ScalarType("instant")
DURATION = ScalarType("duration")
NULL = ScalarType("null")


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field of a record.

    `step` is its resolution: what a codec may round to, and what makes its sums exact. `stamp` says who vouches
    for the value: "device" or "user" is written by the gateway from the enrolment, never believed from a payload.
    """

    name: str
    type: DataType
    nullable: bool = False
    key: bool = False
    event_time: bool = False
    step: float | None = None
    unit: str | None = None
    stamp: str | None = None
    default: Any = None
    has_default: bool = False


class Schema(msgspec.Struct, frozen=True):
    """The typed shape of a record: its name and its fields in order."""

    name: str
    fields: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Field names, in row order."""
        return tuple(column.name for column in self.fields)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key fields, in row order."""
        return tuple(column.name for column in self.fields if column.key)

    @property
    def event_time(self) -> str | None:
        """The name of the event-time field, if there is one."""
        return next((column.name for column in self.fields if column.event_time), None)

    def position(self, name: str) -> int:
        """Where the field stands in a row.

        >>> Schema("P", (Column("x", INT), Column("y", INT))).position("y")
        1
        """
        for index, column in enumerate(self.fields):
            if column.name == name:
                return index
        known = ", ".join(self.names) or "none"
        raise ProgramError(
            "C110",
            f"{self.name} has no field {name!r}",
            why=f"its fields are: {known}",
            fix=f"use one of them, or declare {name} on {self.name}",
        )

    def column(self, name: str) -> Column:
        """The field of that name."""
        return self.fields[self.position(name)]

    @property
    def fingerprint(self) -> str:
        """16 hex digits that name this shape: field names, types, nullability and steps, not comments or defaults."""
        # A step of 1000 comes back from a plan's JSON as 1000.0, and is the same step.
        steps = [None if c.step is None else float(c.step) for c in self.fields]
        shape = [
            (c.name, str(c.type), _nested(c.type), c.nullable, step) for c, step in zip(self.fields, steps, strict=True)
        ]
        return hashlib.sha256(msgspec.json.encode((self.name, shape))).hexdigest()[:16]

    def reads(self, written: Schema) -> bool:
        """Whether rows written with that schema can be read with this one."""
        return self.difference(written) is None

    def difference(self, written: Schema) -> str | None:
        """Why rows written with that schema cannot be read with this one, or None if they can."""
        theirs = {column.name: column for column in written.fields}
        for column in self.fields:
            other = theirs.get(column.name)
            if other is None:
                if not column.has_default:
                    return f"{column.name} is new and has no default"
            elif (changed := _changed(column.name, other.type, column.type)) is not None:
                return changed
            elif other.nullable and not column.nullable:
                return f"{column.name} may be null in what was written"
        return None

    def adapt(self, written: Schema) -> Callable[[Row], Row]:
        """A function from a row written with that schema to a row of this one."""
        reason = self.difference(written)
        if reason is not None:
            raise ProgramError(
                "C111",
                f"{self.name} cannot read rows of fingerprint {written.fingerprint}",
                why=reason,
                fix="give the new field a default, or use a new name for a field whose type changed",
            )
        return _reading(written, self) or _as_it_is

    def adapts(self, written: Schema, name: str) -> Callable[[Any], Any] | None:
        """What makes a value of that field of what it was written as, null aside; None where it stays as it is."""
        return _converting(written.column(name).type, self.column(name).type)


def _as_it_is(row: Row) -> Row:
    return row


def _reading(written: Schema, schema: Schema) -> Callable[[Row], Row] | None:
    """From rows of one schema to rows of another that reads it; None where they are the same rows."""
    where = {name: index for index, name in enumerate(written.names)}
    converting = [schema.adapts(written, name) if name in where else None for name in schema.names]
    if written.names == schema.names and not any(converting):
        return None
    picks = [
        (where.get(column.name), column.default, convert)
        for column, convert in zip(schema.fields, converting, strict=True)
    ]

    def read(row: Row) -> Row:
        values = []
        for index, default, convert in picks:
            value = default if index is None else row[index]
            values.append(value if convert is None or value is None else convert(value))
        return tuple(values)

    return read


def _converting(was: DataType, now: DataType) -> Callable[[Any], Any] | None:
    match was, now:
        case RecordType(old), RecordType(new):
            return _reading(old, new)
        case ListType(old), ListType(new) if (each := _converting(old, new)) is not None:
            convert = each  # elements of a list may be null too, as far as an engine is concerned
            return lambda values: tuple([None if value is None else convert(value) for value in values])
        case _:
            return None


def _changed(what: str, was: DataType, now: DataType) -> str | None:
    """Why a value of one type cannot be read as one of another; what only describes it (a unit, a step) may change."""
    match was, now:
        case ListType(old), ListType(new):
            return _changed(f"{what}[]", old, new)
        case RecordType(old), RecordType(new):
            inside = new.difference(old)
            return None if inside is None else f"{what}.{inside}"
        case _:
            return None if was == now else f"{what} was {was} and is {now}"


def _nested(kind: DataType) -> str:
    match kind:
        case RecordType(schema):
            return schema.fingerprint
        case ListType(element):
            return _nested(element)
        case _:
            return ""
