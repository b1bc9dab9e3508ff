"""`delta` payloads straight to numpy columns, many frames at a time: the cloud's way to read what devices wrote.

Promises: the same values as `DeltaCodec.decode`, or the same refusal; the work per element is a handful of vector
operations, whatever the number of frames. Columns that nobody wants are stepped over, whatever stands in them. Knows
the bytes of `delta`; other codecs' rows are turned into columns one by one. Imports numpy, so nothing on a device does.

>>> from catchment.program.types import Column as Field, FLOAT, INSTANT
>>> from catchment.sync.codecs.delta import DeltaCodec
>>> fix = Schema("Fix", (Field("at", INSTANT), Field("lat_deg", FLOAT, step=0.1)))
>>> payloads = [DeltaCodec().encode(fix, [(5, 0.1), (6, 0.2)]), DeltaCodec().encode(fix, [(9, 0.3)])]
>>> frames = read_frames(fix, [("delta", payload) for payload in payloads])
>>> frames.counts.tolist(), frames.columns[0].values.tolist(), frames.columns[1].values.tolist()
([2, 1], [5, 6, 9], [0.1, 0.2, 0.3])
>>> [column.values.tolist() for column in read_frames(fix, [("delta", payloads[0])], wanted={"lat_deg"}).columns]
[[0.1, 0.2]]
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from catchment.program.types import Schema
from catchment.sync.codecs.codec import codec
from catchment.sync.codecs.compress import compression
from catchment.sync.codecs.delta import (
    DECIMALS,
    DICTIONARY,
    DOUBLES,
    HAS_NULLS,
    INTEGERS,
    NOTHING,
    OBJECTS,
    STEPS,
    STEPS_MAX,
    Plan,
    plans_of,
    read_count,
    read_digits,
    read_escapes,
    unreadable,
)
from catchment.sync.codecs.integers import Head, read_head
from catchment.sync.codecs.reader import MASK, MalformedError, Reader
from catchment.sync.codecs.shapes import INT64_MAX

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one field over all frames.

    Where `valid` is an array, rows that it denies are null and hold a zero. With `words`, the values are places in
    that list.
    """

    values: Array
    valid: Array | None = None
    words: list[Any] | None = None

    def objects(self) -> list[Any]:
        """The values as Python's, null as None."""
        values: list[Any] = self.values.tolist()
        if self.words is not None:
            words = self.words
            values = [words[place] for place in values] if words else [None] * len(values)
        if self.valid is None:
            return values
        return [value if there else None for value, there in zip(values, self.valid.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Frames:
    """The rows of many frames, one frame after the other."""

    counts: Array
    """Rows of each frame."""
    columns: list[Column]
    """One for each field of the schema that is wanted, in its order."""


def read_frames(schema: Schema, frames: Sequence[tuple[str, bytes]], *, wanted: Container[str] | None = None) -> Frames:
    """The columns of frames, each given as its codec's name and its payload: of all fields, or of those `wanted`."""
    parsed: list[_Frame] = []
    plans = plans_of(schema)
    takes = [wanted is None or field.name in wanted for field in schema.fields]
    read = [plan for plan, taken in zip(plans, takes, strict=True) if taken]
    try:
        for name, payload in frames:
            bare, _, packing = name.partition("/")
            if bare == "delta":
                parsed.append(_parse(plans, takes, compression(packing).decompress(payload) if packing else payload))
            else:
                # Rounding to steps is delta's own: other codecs' values pass through it untouched, as escapes or bits.
                parsed.append(_from_rows(schema, takes, codec(name).decode(schema, payload)))
        columns = [_column(plan, parsed, place) for place, plan in enumerate(read)]
    except (MalformedError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(schema, error) from None
    return Frames(np.array([frame.count for frame in parsed], np.int64), columns)


# -- what stands where -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Piece:
    """One column of one frame: where its planes are, and what else was read."""

    count: int
    """Values that are not null."""
    kind: int
    bitmap: bytes | None = None
    head: Head | None = None
    planes_at: int = 0
    digits: int = 0
    escapes: list[tuple[int, float]] | None = None
    words: list[Any] | None = None


@dataclass(slots=True)
class _Frame:
    count: int
    data: bytes
    pieces: list[_Piece]


_FITS = {
    "null": {NOTHING},
    "bool": {INTEGERS},
    "int": {INTEGERS},
    "instant": {INTEGERS},
    "duration": {INTEGERS},
    "float": {STEPS, DECIMALS, DOUBLES},
    "str": {DICTIONARY, OBJECTS},
    "bytes": {DICTIONARY, OBJECTS},
    "": {OBJECTS},
}


def _parse(plans: Sequence[Plan], takes: Sequence[bool], data: bytes) -> _Frame:
    reader = Reader(data)
    count = read_count(reader)
    pieces = [_piece(plan, reader, count, taken) for plan, taken in zip(plans, takes, strict=True)]
    if reader.at != len(data):
        raise MalformedError(f"{len(data) - reader.at} bytes are left over")
    return _Frame(count, data, [piece for piece, taken in zip(pieces, takes, strict=True) if taken])


def _piece(plan: Plan, reader: Reader, count: int, taken: bool) -> _Piece:
    """The next column of a frame; of one that is not taken, only where it ends."""
    first = reader.byte()
    kind = first & ~HAS_NULLS
    if kind not in _FITS[plan.scalar] or (kind == STEPS and plan.step is None):
        raise MalformedError(f"kind {kind} does not suit the column")
    piece = _Piece(count, kind)
    if first & HAS_NULLS:
        if not plan.nullable:
            raise MalformedError("a column that is never null has nulls")
        piece.bitmap = reader.take((count + 7) // 8)
        # Bits beyond the last row are nobody's.
        used = int.from_bytes(piece.bitmap, "little") & ((1 << count) - 1)
        piece.count = used.bit_count()
    if kind in (DICTIONARY, OBJECTS):
        words = reader.take(reader.varint())
        piece.words = plan.decoder.decode(words) if taken else None
        if kind == OBJECTS:
            if taken and len(piece.words or ()) != piece.count:
                raise MalformedError(f"{len(piece.words or ())} values where {piece.count} are announced")
            return piece
    elif kind == NOTHING:
        return piece
    elif kind == STEPS:
        piece.escapes = read_escapes(reader, piece.count)
    elif kind == DECIMALS:
        piece.digits = read_digits(reader)
    piece.head = read_head(reader, piece.count)
    piece.planes_at = reader.at
    reader.take(piece.head.planes_count(piece.count) * piece.head.width)
    return piece


def _from_rows(schema: Schema, takes: Sequence[bool], rows: Sequence[tuple[Any, ...]]) -> _Frame:
    """Rows of another codec: every column that is taken as a list of objects."""
    pieces = []
    for place, field in enumerate(schema.fields):
        if not takes[place]:
            continue
        values = [row[place] for row in rows]
        bitmap = None
        if field.nullable and None in values:
            bits = np.packbits([value is not None for value in values], bitorder="little")
            bitmap, values = bits.tobytes(), [value for value in values if value is not None]
        pieces.append(_Piece(len(values), OBJECTS, bitmap, words=values))
    return _Frame(len(rows), b"", pieces)


# -- columns -----------------------------------------------------------------------------------------------------


def _column(plan: Plan, frames: Sequence[_Frame], place: int) -> Column:
    pieces = [frame.pieces[place] for frame in frames]
    valid = _valid(frames, pieces)
    words: list[Any] | None = None
    match plan.scalar:
        case "null":
            values: Array = np.zeros(sum(piece.count for piece in pieces), np.int64)
            words = []
        case "bool":
            values = _booleans(frames, pieces)
        case "int" | "instant" | "duration":
            values = _numbers(frames, pieces, plan.whole_step)
        case "float":
            values = _floats(plan, frames, pieces)
        case _:
            words, values = _words(frames, pieces)
    if valid is not None:
        spread = np.zeros(len(valid), values.dtype)
        spread[valid] = values
        values = spread
    return Column(values, valid, words)


def _valid(frames: Sequence[_Frame], pieces: Sequence[_Piece]) -> Array | None:
    if all(piece.bitmap is None for piece in pieces):
        return None
    masks = [
        np.ones(frame.count, bool)
        if piece.bitmap is None
        else np.unpackbits(np.frombuffer(piece.bitmap, np.uint8), count=frame.count, bitorder="little").astype(bool)
        for frame, piece in zip(frames, pieces, strict=True)
    ]
    return np.concatenate(masks)


def _integers(frames: Sequence[_Frame], pieces: Sequence[_Piece]) -> Array:
    """The 64-bit integers of all pieces that have planes, and zeros for the others."""
    total = sum(piece.count for piece in pieces)
    starts, counts, orders, bases, units = [], [], [], [], []
    # Of each plane, the bytes of all pieces, with zeros where a piece has none.
    planes: list[list[bytes]] = [
        [] for _ in range(max((p.head.width for p in pieces if p.head is not None), default=0))
    ]
    firsts: list[tuple[int, int]] = []
    at = 0
    for frame, piece in zip(frames, pieces, strict=True):
        head, start = piece.head, at
        count = piece.count
        at += count
        width = 0 if head is None else head.width
        for plane in planes[width:]:
            plane.append(bytes(count))
        if head is None or not count:
            continue
        size, begin, data = head.planes_count(count), piece.planes_at, frame.data
        none = bytes(count - size)
        for plane in planes[:width]:
            plane += (none, data[begin : begin + size])
            begin += size
        if head.order == 2:
            firsts.append((start + 1, head.first_difference & MASK))
        starts.append(start)
        counts.append(count)
        orders.append(head.order)
        bases.append(head.base & MASK)
        units.append(head.unit)
    if not starts:
        return np.zeros(total, np.int64)
    zigzag = np.zeros(total, np.uint64)
    for which, plane in enumerate(planes):
        zigzag |= np.frombuffer(b"".join(plane), np.uint8).astype(np.uint64) << np.uint64(8 * which)
    values = (zigzag >> np.uint64(1)) ^ (np.uint64(0) - (zigzag & np.uint64(1)))
    if firsts:
        where, first = zip(*firsts, strict=True)
        values[list(where)] = np.array(first, np.uint64)
    spans = np.array(starts), np.array(counts), np.array(orders)
    covered = at == int(spans[1].sum())
    rows = None if covered else np.concatenate([np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)])
    dense = values if rows is None else values[rows]
    for least in (2, 1):
        dense = _summed(dense, spans[1], spans[2] >= least)
    dense = np.repeat(np.array(bases, np.uint64), spans[1]) + np.repeat(np.array(units, np.uint64), spans[1]) * dense
    if rows is None:
        return dense.view(np.int64)
    values[:] = 0
    values[rows] = dense
    return values.view(np.int64)


def _summed(values: Array, counts: Array, which: Array) -> Array:
    """Running sums, each span on its own, of the spans that want them. Sums wrap like the encoder's differences."""
    if not which.any():
        return values
    sums = np.cumsum(values, dtype=np.uint64)
    starts = np.cumsum(counts) - counts
    sums -= np.repeat(sums[starts] - values[starts], counts)
    return sums if which.all() else np.where(np.repeat(which, counts), sums, values)


def _numbers(frames: Sequence[_Frame], pieces: Sequence[_Piece], whole_step: int = 1) -> Array:
    values = _integers(frames, pieces)
    if whole_step > 1:
        if len(values) and (values.max() > INT64_MAX // whole_step or values.min() < -(2**63 // whole_step)):
            raise MalformedError("an integer exceeds 64 bits")
        values = values * whole_step
    _put_objects(values, pieces)
    return values


def _booleans(frames: Sequence[_Frame], pieces: Sequence[_Piece]) -> Array:
    values = _numbers(frames, pieces)
    if len(values) and (values.min() < 0 or values.max() > 1):
        raise MalformedError("a boolean is neither 0 nor 1")
    return values.astype(bool)


def _floats(plan: Plan, frames: Sequence[_Frame], pieces: Sequence[_Piece]) -> Array:
    integers = _integers(frames, pieces)
    counts = np.array([piece.count for piece in pieces], np.int64)
    kinds = np.repeat(np.array([piece.kind for piece in pieces], np.int64), counts)
    small = integers[(kinds == STEPS) | (kinds == DECIMALS)]
    if len(small) and (small.max() > STEPS_MAX or small.min() < -STEPS_MAX):
        raise MalformedError("a number of steps is out of range")
    scaled = integers.astype(np.float64)
    values = scaled / plan.inverse if plan.inverse is not None else scaled * (plan.step or 1.0)
    if (kinds == DECIMALS).any():
        powers = np.repeat(np.array([10.0**piece.digits for piece in pieces]), counts)
        values = np.where(kinds == DECIMALS, scaled / powers, values)
    doubles = kinds == DOUBLES
    values[doubles] = integers[doubles].view(np.float64)
    start = 0
    for piece in pieces:
        for place, value in piece.escapes or ():
            values[start + place] = value
        start += piece.count
    _put_objects(values, pieces)
    return values


def _words(frames: Sequence[_Frame], pieces: Sequence[_Piece]) -> tuple[list[Any], Array]:
    """All frames' words in one list, and each value's place in it."""
    places = _integers(frames, pieces)
    words: list[Any] = []
    start = 0
    for piece in pieces:
        mine = places[start : start + piece.count]
        if piece.kind == OBJECTS:
            mine[:] = np.arange(piece.count)
        elif piece.count and (mine.min() < 0 or mine.max() >= len(piece.words or ())):
            raise MalformedError("a word is not in the dictionary")
        mine += len(words)
        words.extend(piece.words or ())
        start += piece.count
    return words, places


def _put_objects(values: Array, pieces: Sequence[_Piece]) -> None:
    """Values of frames whose codec gave them as they are."""
    start = 0
    for piece in pieces:
        if piece.kind == OBJECTS:
            values[start : start + piece.count] = piece.words
        start += piece.count
