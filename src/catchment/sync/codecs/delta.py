"""`delta`: rows by column, numbers as the differences that a steady motion leaves, in pure Python.

Promises: what comes back is what went in, except that a float with a `step` is the multiple of it that is nearest (ties
to even, −0 becomes 0), and an integer with a whole `step` likewise; to encode that again changes nothing. NaN,
infinities and numbers beyond ±2⁵⁰ steps come back bit by bit. Null is null. Knows columns; `integers` knows lists of
integers, and `delta_numpy` reads the same bytes many at a time.

    format(1)   rows   for each column: kind(1) [null bitmap] [digits] [escapes] body

>>> from catchment.program.types import Column, FLOAT, INSTANT
>>> fix = Schema("Fix", (Column("at", INSTANT), Column("lat_deg", FLOAT, step=1e-6)))
>>> track = [(1_700_000_000_000_000 + n * 1_000_000, 48.1 + n * 1e-5) for n in range(100)]
>>> len(DeltaCodec().encode(fix, track)), DeltaCodec().decode(fix, DeltaCodec().encode(fix, track))[1]
(25, (1700000001000000, 48.10001))
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from catchment.errors import PeerError, ProgramError
from catchment.program.resolution import per_unit
from catchment.program.types import Column, Row, ScalarType, Schema
from catchment.sync.codecs.integers import pack, unpack
from catchment.sync.codecs.reader import MalformedError, Reader, varint
from catchment.sync.codecs.shapes import INT64_MAX, INT64_MIN, SCALARS, wire_type
from catchment.sync.frame import ROWS_MAX

FORMAT = 1
STEPS_MAX = 2**50
"""Beyond so many steps a float could not tell neighbours apart with certainty, so it is kept as it is."""
DIGITS_MAX = 9

NOTHING, INTEGERS, STEPS, DECIMALS, DOUBLES, DICTIONARY, OBJECTS = range(7)
"""The kinds of a column's body."""
HAS_NULLS = 0x80

_DOUBLE = struct.Struct("<d")
_PACKER = msgspec.msgpack.Encoder()
_POWERS = [10.0**digits for digits in range(DIGITS_MAX + 1)]


class DeltaCodec:
    """Rows as columns of differences."""

    name = "delta"

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        """The columns of the rows."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.fields)
        if len(columns) != len(schema.fields) or len(rows) > ROWS_MAX:
            raise _unwritable(schema, f"{len(rows)} rows of {len(columns)} values")
        try:
            bodies = [_encode(plan, column) for plan, column in zip(plans_of(schema), columns, strict=True)]
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise _unwritable(schema, f"{type(error).__name__}: {error}") from None
        return b"".join([bytes([FORMAT]), varint(len(rows)), *bodies])

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        """The rows of such columns."""
        try:
            reader = Reader(data)
            count = read_count(reader)
            columns = [_decode(plan, reader, count) for plan in plans_of(schema)]
            if reader.at != len(data):
                raise MalformedError(f"{len(data) - reader.at} bytes are left over")
            return list(zip(*columns, strict=True)) if columns else [()] * count
        except (MalformedError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise unreadable(schema, error) from None


class Plan(NamedTuple):
    """What the schema says of a column, looked up once."""

    scalar: str
    nullable: bool
    step: float | None
    inverse: float | None
    whole_step: int
    decoder: msgspec.msgpack.Decoder[Any]

    def scaled(self, values: Sequence[float]) -> list[int]:
        """`resolution.scale` of each value."""
        inverse, step = self.inverse, self.step or 1.0
        return [round(v * inverse) for v in values] if inverse is not None else [round(v / step) for v in values]

    def unscaled(self, values: Sequence[int]) -> list[float]:
        """`resolution.unscale` of each number of steps."""
        inverse, step = self.inverse, self.step or 1.0
        return [n / inverse for n in values] if inverse is not None else [n * step for n in values]


def _plan(column: Column) -> Plan:
    """How that column is encoded."""
    scalar = column.type.name if isinstance(column.type, ScalarType) else ""
    step = column.step if column.step is not None and 1e-18 <= column.step <= 1e18 else None
    whole = int(step) if step is not None and step == int(step) else 1
    decoder = msgspec.msgpack.Decoder(list[wire_type(column.type, SCALARS)])  # type: ignore[misc]
    return Plan(scalar, column.nullable, step, None if step is None else per_unit(step), whole, decoder)


def read_count(reader: Reader) -> int:
    """How many rows follow."""
    if reader.byte() != FORMAT:
        raise MalformedError("its format is unknown")
    count = reader.varint()
    if count > ROWS_MAX:
        raise MalformedError(f"{count} rows are more than {ROWS_MAX}")
    return count


def read_places(reader: Reader, count: int) -> list[int] | None:
    """Which of so many rows are not null, from their bitmap."""
    bitmap = reader.take((count + 7) // 8)
    return [row for row in range(count) if bitmap[row >> 3] >> (row & 7) & 1]


def read_escapes(reader: Reader, count: int) -> list[tuple[int, float]]:
    """Values that are kept as they are, with their places."""
    escapes = []
    place = -1
    for _ in range(reader.varint()):
        place += 1 + reader.varint()
        if place >= count:
            raise MalformedError(f"place {place} lies beyond {count} values")
        escapes.append((place, _DOUBLE.unpack(reader.take(8))[0]))
    return escapes


def unreadable(schema: Schema, error: Exception) -> PeerError:
    """What a payload that is none of this schema raises."""
    return PeerError(
        "S425",
        f"a payload is not rows of {schema.name}",
        why=f"{type(error).__name__}: {error}",
        fix=f"encode with the schema of fingerprint {schema.fingerprint}",
    )


@lru_cache(maxsize=256)
def plans_of(schema: Schema) -> tuple[Plan, ...]:
    """How each column of a schema is encoded."""
    return tuple([_plan(column) for column in schema.fields])


# -- encoding ----------------------------------------------------------------------------------------------------


def _encode(plan: Plan, column: Sequence[Any]) -> bytes:
    present = [value for value in column if value is not None] if plan.nullable else column
    flags, bitmap = 0, b""
    if len(present) < len(column):
        flags, bitmap = HAS_NULLS, _bitmap(column)
    kind, body = _encode_values(plan, present)
    return bytes([kind | flags]) + bitmap + body


def _encode_values(plan: Plan, values: Sequence[Any]) -> tuple[int, bytes]:
    match plan.scalar:
        case "null":
            return NOTHING, b""
        case "bool":
            return INTEGERS, pack([1 if value else 0 for value in values])
        case "int" | "instant" | "duration":
            return INTEGERS, pack([_whole(value, plan.whole_step) for value in values])
        case "float" if plan.step is not None:
            return _encode_steps(plan, [float(value) for value in values])
        case "float":
            return _encode_floats([float(value) for value in values])
        case "str" | "bytes" if len(set(values)) * 2 <= len(values):
            words = list(dict.fromkeys(values))
            places = {word: place for place, word in enumerate(words)}
            listed = _PACKER.encode(words)
            plan.decoder.decode(listed)  # what could not be read back must not be sent
            return DICTIONARY, varint(len(listed)) + listed + pack([places[value] for value in values])
        case _:
            packed = _PACKER.encode(list(values))
            plan.decoder.decode(packed)
            return OBJECTS, varint(len(packed)) + packed


def _whole(value: int, step: int) -> int:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"{value!r} is not an integer of 64 bits")
    if step == 1:
        return value
    steps, rest = divmod(value, step)
    up = rest * 2 > step or (rest * 2 == step and steps & 1)
    # At the very end of the range, the nearest multiple that fits.
    steps += up and (steps + 1) * step <= INT64_MAX
    return steps if steps * step >= INT64_MIN else steps + 1


def _encode_steps(plan: Plan, values: list[float]) -> tuple[int, bytes]:
    try:
        scaled = plan.scaled(values)
        if not scaled or (max(scaled) <= STEPS_MAX and min(scaled) >= -STEPS_MAX):
            return STEPS, b"\0" + pack(scaled)
    except (ValueError, OverflowError):
        # NaN and infinities have no number of steps.
        pass
    escapes = []
    scaled = []
    last = 0
    for place, value in enumerate(values):
        steps = plan.scaled([value])[0] if math.isfinite(value) and abs(value) < 1e300 else STEPS_MAX + 1
        if abs(steps) <= STEPS_MAX:
            last = steps
        else:
            escapes.append((place, value))
        scaled.append(last)
    return STEPS, _escaped(escapes) + pack(scaled)


def _encode_floats(values: list[float]) -> tuple[int, bytes]:
    """Floats that were written as decimals are integers over a power of ten; others are their bits."""
    for digits in range(DIGITS_MAX + 1):
        power = _POWERS[digits]
        scaled = [_decimal(value, power) for value in values]
        if None not in scaled:
            return DECIMALS, bytes([digits]) + pack([number for number in scaled if number is not None])
    return DOUBLES, pack(list(struct.unpack(f"<{len(values)}q", struct.pack(f"<{len(values)}d", *values))))


def _decimal(value: float, power: float) -> int | None:
    if not abs(value) * power <= STEPS_MAX:
        return None
    number = round(value * power)
    # Also −0.0 must come back as it was.
    same = number / power == value and (number != 0 or math.copysign(1.0, value) > 0)
    return number if same else None


def _escaped(escapes: list[tuple[int, float]]) -> bytes:
    parts = [varint(len(escapes))]
    before = -1
    for place, value in escapes:
        parts.append(varint(place - before - 1) + _DOUBLE.pack(value))
        before = place
    return b"".join(parts)


def _bitmap(column: Sequence[Any]) -> bytes:
    bits = bytearray((len(column) + 7) // 8)
    for row, value in enumerate(column):
        if value is not None:
            bits[row >> 3] |= 1 << (row & 7)
    return bytes(bits)


# -- decoding ----------------------------------------------------------------------------------------------------


def _decode(plan: Plan, reader: Reader, count: int) -> Sequence[Any]:
    first = reader.byte()
    places = read_places(reader, count) if first & HAS_NULLS else None
    if places is not None and not plan.nullable:
        raise MalformedError("a column that is never null has nulls")
    present = count if places is None else len(places)
    values = _READERS[plan.scalar](plan, first & ~HAS_NULLS, reader, present)
    if places is None:
        return values
    column: list[Any] = [None] * count
    for place, value in zip(places, values, strict=True):
        column[place] = value
    return column


def _decode_integers(plan: Plan, kind: int, reader: Reader, count: int) -> list[Any]:
    if kind != INTEGERS:
        raise MalformedError(f"kind {kind} is no column of integers")
    values = unpack(reader, count)
    if plan.whole_step > 1:
        values = [value * plan.whole_step for value in values]
        if values and (min(values) < INT64_MIN or max(values) > INT64_MAX):
            raise MalformedError("an integer exceeds 64 bits")
    return values


def _decode_bools(plan: Plan, kind: int, reader: Reader, count: int) -> list[Any]:
    values = _decode_integers(plan._replace(whole_step=1), kind, reader, count)
    if values and (min(values) < 0 or max(values) > 1):
        raise MalformedError("a boolean is neither 0 nor 1")
    return [value == 1 for value in values]


def _decode_floats(plan: Plan, kind: int, reader: Reader, count: int) -> list[Any]:
    match kind:
        case k if k == STEPS and plan.step is not None:
            escapes = read_escapes(reader, count)
            values = plan.unscaled(check_steps(unpack(reader, count)))
            for place, value in escapes:
                values[place] = value
            return values
        case k if k == DECIMALS:
            power = _POWERS[read_digits(reader)]
            return [number / power for number in check_steps(unpack(reader, count))]
        case k if k == DOUBLES:
            return list(struct.unpack(f"<{count}d", struct.pack(f"<{count}q", *unpack(reader, count))))
        case _:
            raise MalformedError(f"kind {kind} is no column of floats")


def read_digits(reader: Reader) -> int:
    """How many decimals the column has."""
    digits = reader.byte()
    if digits > DIGITS_MAX:
        raise MalformedError(f"{digits} digits are more than {DIGITS_MAX}")
    return digits


def check_steps(values: list[int]) -> list[int]:
    """The numbers of steps, none of which is beyond what an encoder writes."""
    if values and (min(values) < -STEPS_MAX or max(values) > STEPS_MAX):
        raise MalformedError("a number of steps is out of range")
    return values


def _decode_words(plan: Plan, kind: int, reader: Reader, count: int) -> list[Any]:
    if kind == DICTIONARY:
        words = plan.decoder.decode(reader.take(reader.varint()))
        places = unpack(reader, count)
        if places and (min(places) < 0 or max(places) >= len(words)):
            raise MalformedError("a word is not in the dictionary")
        return [words[place] for place in places]
    return _decode_objects(plan, kind, reader, count)


def _decode_objects(plan: Plan, kind: int, reader: Reader, count: int) -> list[Any]:
    if kind != OBJECTS:
        raise MalformedError(f"kind {kind} does not suit the column")
    values: list[Any] = plan.decoder.decode(reader.take(reader.varint()))
    if len(values) != count:
        raise MalformedError(f"{len(values)} values where {count} are announced")
    return values


def _decode_nothing(plan: Plan, kind: int, reader: Reader, count: int) -> list[Any]:
    if kind != NOTHING:
        raise MalformedError(f"kind {kind} is no column of nulls")
    return [None] * count


_READERS: dict[str, Callable[[Plan, int, Reader, int], list[Any]]] = {
    "null": _decode_nothing,
    "bool": _decode_bools,
    "int": _decode_integers,
    "instant": _decode_integers,
    "duration": _decode_integers,
    "float": _decode_floats,
    "str": _decode_words,
    "bytes": _decode_words,
    "": _decode_objects,
}


def _unwritable(schema: Schema, why: str) -> ProgramError:
    return ProgramError(
        "S424",
        f"a row of {schema.name} cannot be encoded",
        why=why,
        fix="give each field a value of its declared type: text without lone surrogates, integers of 64 bits",
    )
