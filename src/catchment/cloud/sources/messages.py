"""A message's value as a row of the record that it is read as: JSON or MessagePack, fields by name.

Decoded by C code that is made for the record, which names the field that does not fit. What a message holds beyond the
record is not looked at. Knows formats and types; must not know where messages come from.

>>> from catchment.program.types import INSTANT, INT, Column
>>> sale = Schema("Sale", (Column("at", INSTANT), Column("cents", INT, nullable=True)))
>>> read = reader(sale, "json")
>>> read(b'{"at": "1970-01-01T00:00:01Z", "cents": 5}'), read(b'{"at": 7, "shop": "corner"}')
((1000000, 5), (7, None))
>>> read(b'{"at": 7, "cents": "five"}')
Traceback (most recent call last):
    ...
msgspec.ValidationError: Expected `int | null`, got `str` - at `$.cents`
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from catchment.program.types import DataType, ListType, RecordType, Row, ScalarType, Schema

JSON, MSGPACK = "json", "msgpack"
FORMATS = (JSON, MSGPACK)
_INT = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_SCALARS: dict[str, Any] = {
    "null": None,
    "bool": bool,
    "int": _INT,
    "float": float,
    "str": str,
    "bytes": bytes,
    "instant": _INT | datetime.datetime,
    "duration": _INT,
}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_Made = Callable[[Any], Any]


def reader(schema: Schema, form: str, given: frozenset[str] = frozenset()) -> Callable[[bytes], Row]:
    """From a value to its row, with None for the fields in `given`, which come from elsewhere.

    Raises `msgspec.MsgspecError`, or `UnicodeDecodeError`, for a value that is no such row.
    """
    kind = _struct(schema, given)
    decode = (msgspec.json.Decoder if form == JSON else msgspec.msgpack.Decoder)(kind).decode
    made = _row(schema, given)

    def read(value: bytes) -> Row:
        row: Row = made(decode(value))
        return row

    return read


def _struct(schema: Schema, given: frozenset[str] = frozenset()) -> Any:
    fields: list[Any] = []
    for field in schema.fields:
        if field.name in given:
            fields.append((field.name, Any, None))  # whatever it says: it is not taken from there
            continue
        kind = _type(field.type)
        nullable = kind | None if field.nullable and kind is not None else kind
        if field.has_default:
            fields.append((field.name, nullable, field.default))
        elif field.nullable:
            fields.append((field.name, nullable, None))
        else:
            fields.append((field.name, nullable))
    return msgspec.defstruct(schema.name, fields, frozen=True, kw_only=True)


def _type(kind: DataType) -> Any:
    match kind:
        case ListType(element):
            return tuple[_type(element), ...]  # type: ignore[misc]  # made for a record that is data here
        case RecordType(schema):
            return _struct(schema)
        case ScalarType(name):
            return _SCALARS[name]


def _row(schema: Schema, given: frozenset[str] = frozenset()) -> _Made:
    """From the decoded object to a row: what is more than a plain value is changed, and nothing else is touched."""
    own = [(place, field) for place, field in enumerate(schema.fields) if field.name not in given]
    changes = [(place, made) for place, field in own if (made := _change(field.type)) is not None]

    def plain(found: Any) -> Row:
        return msgspec.structs.astuple(found)

    def changed(found: Any) -> Row:
        row = list(msgspec.structs.astuple(found))
        for place, made in changes:
            if row[place] is not None:
                row[place] = made(row[place])
        return tuple(row)

    return changed if changes else plain


def _change(kind: DataType) -> _Made | None:
    match kind:
        case ScalarType("instant"):
            return _instant
        case ListType(element) if (made := _change(element)) is not None:
            each = made
            return lambda found: tuple([each(item) for item in found])
        case RecordType(schema):
            return _row(schema)
        case _:
            return None


def _instant(found: int | datetime.datetime) -> int:
    """Microseconds since 1970; a moment without a zone is UTC."""
    if isinstance(found, int):
        return found
    aware = found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // _MICROSECOND
