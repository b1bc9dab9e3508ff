"""`none`: a payload that a person can read and any language can write. JSON, an array of rows.

Promises: lossless. What JSON's numbers cannot hold is a string in a defined form: an integer beyond ±(2^53−1) as
its decimal digits, a float that is not finite as "NaN", "Infinity" or "-Infinity", bytes as base64. A field's type
says which of them a string is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from catchment.errors import PeerError, ProgramError
from catchment.program.types import DataType, ListType, RecordType, Row, ScalarType, Schema
from catchment.sync.codecs.shapes import INT64_MAX, INT64_MIN, SCALARS, rows_type

_JSON_INTEGER_MAX = 2**53 - 1
_INFINITY = float("inf")
_FLOATS = {"NaN": float("nan"), "Infinity": _INFINITY, "-Infinity": -_INFINITY}

_Change: TypeAlias = Callable[[Any], Any]


class PlainCodec:
    """Rows as JSON arrays."""

    name = "none"

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        """The rows as a JSON array of arrays."""
        change = _compiled(schema)[0]
        try:
            return _ENCODER.encode(rows if change is None else [change(row) for row in rows])
        except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
            raise ProgramError(
                "S424",
                f"a row of {schema.name} cannot be encoded",
                why=str(error),
                fix="give each field a value of its declared type: text without lone surrogates, integers of 64 bits",
            ) from None

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        """The rows of a JSON array of arrays."""
        _, change, decoder = _compiled(schema)
        try:
            rows = decoder.decode(data)
            return rows if change is None else [change(row) for row in rows]
        except (msgspec.DecodeError, ValueError, KeyError, RecursionError) as error:
            raise PeerError(
                "S425",
                f"a payload is not rows of {schema.name}",
                why=f"{type(error).__name__}: {error}",
                fix=f"encode with the schema of fingerprint {schema.fingerprint}",
            ) from None


_ENCODER = msgspec.json.Encoder()
_WIRE = {**SCALARS, **dict.fromkeys(("int", "instant", "duration"), int | str), "float": float | str}


@lru_cache(maxsize=256)
def _compiled(schema: Schema) -> tuple[_Change | None, _Change | None, msgspec.json.Decoder[list[Row]]]:
    return _row(schema, _to_json), _row(schema, _from_json), msgspec.json.Decoder(rows_type(schema, _WIRE))


def _to_json(name: str) -> _Change | None:
    if name == "float":
        return _float_to_json
    return _int_to_json if SCALARS[name] == SCALARS["int"] else None


def _from_json(name: str) -> _Change | None:
    if name == "float":
        return lambda value: _FLOATS[value] if type(value) is str else value
    return _int_from_json if SCALARS[name] == SCALARS["int"] else None


def _float_to_json(value: float) -> float | str:
    if value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _int_to_json(value: int) -> int | str:
    if -_JSON_INTEGER_MAX <= value <= _JSON_INTEGER_MAX:
        return value
    if not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"{value} does not fit 64 bits")
    return str(value)


def _int_from_json(value: int | str) -> int:
    # Without the length check a megabyte of digits would keep int() busy.
    number = int(value) if len(str(value)) <= 20 else INT64_MAX + 1
    if not INT64_MIN <= number <= INT64_MAX:
        raise ValueError("an integer does not fit 64 bits")
    return number


def _row(schema: Schema, scalar: Callable[[str], _Change | None]) -> _Change | None:
    """What changes the values of a row, or None where nothing needs to."""
    changes = [_nullable(_value(column.type, scalar), column.nullable) for column in schema.fields]
    if not any(changes):
        return None
    return lambda row: tuple(
        [value if change is None else change(value) for value, change in zip(row, changes, strict=True)]
    )


def _value(kind: DataType, scalar: Callable[[str], _Change | None]) -> _Change | None:
    match kind:
        case ScalarType(name):
            return scalar(name)
        case ListType(element):
            change = _value(element, scalar)
            return None if change is None else lambda values: tuple([change(value) for value in values])
        case RecordType(schema):
            return _row(schema, scalar)


def _nullable(change: _Change | None, nullable: bool) -> _Change | None:
    if change is None or not nullable:
        return change
    return lambda value: None if value is None else change(value)
