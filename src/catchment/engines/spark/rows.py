"""Many elements as columns: what travels in packets and what vectorised steps take and give.

Texts, bytes and everything nested are places in a list of words, so a step that compares or groups them works on
integers. Knows numpy and MessagePack; nothing of steps, buckets or Spark.

>>> rows = Rows.of([(5, ("d", "ada"), ("ada", 1.5)), (7, ("d", "ada"), ("ada", None))], (STR, FLOAT))
>>> rows.columns[0].words, rows.columns[1].valid.tolist(), list(Rows.unpack(rows.pack()))[1]
(['ada'], [True, False], (7, 'd', 'ada', ('ada', None)))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from catchment.plan.history import Source
from catchment.program.types import FLOAT, STR, DataType, Row, ScalarType
from catchment.sync.codecs.delta_numpy import Column

Array: TypeAlias = NDArray[Any]

__all__ = ["FLOAT", "STR", "Array", "Column", "Rows", "column_of", "joined", "taken"]

_NUMBERS = {"int": np.int64, "instant": np.int64, "duration": np.int64, "float": np.float64, "bool": np.bool_}


@dataclass(slots=True)
class Rows:
    """Elements in order. `place` says where in its batch each happened; `source` is a place in `sources`."""

    at: Array
    source: Array
    place: Array
    sources: list[Source]
    columns: list[Column]

    def __len__(self) -> int:
        return len(self.at)

    @classmethod
    def of(cls, elements: Sequence[tuple[int, Any, Row]], kinds: Sequence[DataType]) -> Rows:
        """Of (time, source, row), with the types of the fields."""
        known: dict[Any, int] = {}
        codes = [known.setdefault(source, len(known)) for _, source, _ in elements]
        given = [row for _, _, row in elements]
        return cls(
            np.array([at for at, _, _ in elements], np.int64),
            np.array(codes, np.int64),
            np.arange(len(elements), dtype=np.int64),
            [Source(*source) for source in known],
            [column_of([row[number] for row in given], kind) for number, kind in enumerate(kinds)],
        )

    @classmethod
    def none(cls, kinds: Sequence[DataType]) -> Rows:
        """No elements."""
        return cls.of([], kinds)

    def take(self, which: Array) -> Rows:
        """Those elements, by number or by mask, in that order."""
        return Rows(
            self.at[which], self.source[which], self.place[which], self.sources, [taken(c, which) for c in self.columns]
        )

    def objects(self) -> list[Row]:
        """The rows as an engine that goes element by element takes them."""
        if not self.columns:
            return [()] * len(self)
        return list(zip(*[column.objects() for column in self.columns], strict=True))

    def __iter__(self) -> Iterator[tuple[int, str, str | None, Row]]:
        """Elements as (time, device, owner, row)."""
        sources = self.sources
        for at, source, row in zip(self.at.tolist(), self.source.tolist(), self.objects(), strict=True):
            yield at, *sources[source], row

    def pack(self, *, places: bool = False) -> bytes:
        """As bytes, without what no element uses; with the places if asked to."""
        return _ENCODER.encode(self.plain(places=places))

    def plain(self, *, places: bool = False) -> dict[str, Any]:
        """What `pack` writes."""
        used, codes = np.unique(self.source, return_inverse=True)
        return {
            "at": self.at.tobytes(),
            "source": codes.astype(np.int32).tobytes(),
            "sources": [self.sources[code] for code in used.tolist()],
            "place": self.place.tobytes() if places else None,
            "columns": [plain_column(column) for column in self.columns],
        }

    @classmethod
    def unpack(cls, packet: bytes) -> Rows:
        """What `pack` wrote."""
        return cls.from_plain(_DECODER.decode(packet))

    @classmethod
    def from_plain(cls, saved: dict[str, Any]) -> Rows:
        """What `plain` gave."""
        at = np.frombuffer(saved["at"], np.int64)
        place = saved["place"]
        return cls(
            at,
            np.frombuffer(saved["source"], np.int32).astype(np.int64),
            np.arange(len(at), dtype=np.int64) if place is None else np.frombuffer(place, np.int64),
            [Source(*source) for source in saved["sources"]],
            [column_from_plain(column) for column in saved["columns"]],
        )

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        known: dict[Source, int] = {}
        codes = []
        for part in parts:
            renumbered = np.array([known.setdefault(source, len(known)) for source in part.sources], np.int64)
            codes.append(renumbered[part.source] if len(part) else part.source)
        return cls(
            np.concatenate([part.at for part in parts]),
            np.concatenate(codes),
            np.concatenate([part.place for part in parts]),
            list(known),
            [joined(columns) for columns in zip(*[part.columns for part in parts], strict=True)],
        )


def column_of(values: Sequence[Any], kind: DataType) -> Column:
    """Values of a field, null as None."""
    valid = None
    if None in values:
        valid = np.array([value is not None for value in values], np.bool_)
    dtype = _NUMBERS.get(kind.name) if isinstance(kind, ScalarType) else None
    if dtype is None:
        words: list[Any] = []
        if kind == STR:
            known: dict[Any, int] = {}
            codes = [0 if value is None else known.setdefault(value, len(known)) for value in values]
            words = list(known)
        else:
            codes = []
            for value in values:
                codes.append(len(words) if value is not None else 0)
                if value is not None:
                    words.append(value)
        return Column(np.array(codes, np.int64), valid, words)
    given = values if valid is None else [False if value is None else value for value in values]
    return Column(np.array(given, dtype), valid)


def taken(column: Column, which: Array) -> Column:
    """Some of a column's values."""
    return Column(column.values[which], None if column.valid is None else column.valid[which], column.words)


def joined(columns: Iterable[Column]) -> Column:
    """Columns one after the other; equal words become one."""
    parts = list(columns)
    valid = None
    if any(part.valid is not None for part in parts):
        valid = np.concatenate([_validity(part) for part in parts])
    if parts[0].words is None:
        return Column(np.concatenate([part.values for part in parts]), valid)
    known: dict[Any, int] = {}
    words: list[Any] = []
    codes = []
    for part in parts:
        own = part.words or []
        if own and all(type(word) in (str, bytes) for word in own):
            for word in own:
                if word not in known:
                    known[word] = len(words)
                    words.append(word)
            renumbered = np.array([known[word] for word in own], np.int64)
        else:
            # Nested words that Python finds equal may differ: 0.0 and -0.0, 1 and True.
            renumbered = np.arange(len(words), len(words) + len(own), dtype=np.int64)
            words += own
        codes.append(renumbered[part.values] if own else np.zeros(len(part.values), np.int64))
    return Column(np.concatenate(codes), valid, words)


def _validity(column: Column) -> Array:
    return np.ones(len(column.values), np.bool_) if column.valid is None else column.valid


def plain_column(column: Column) -> list[Any]:
    """A column as plain data, with the words that it uses."""
    valid = None if column.valid is None else np.packbits(column.valid).tobytes()
    if column.words is None:
        return [column.values.dtype.str, column.values.tobytes(), valid, None]
    used, codes = np.unique(column.values, return_inverse=True)
    words = [column.words[code] for code in used.tolist()] if column.words else []
    return ["<i4", codes.astype("<i4").tobytes(), valid, words]


def column_from_plain(saved: list[Any]) -> Column:
    """What `plain_column` gave."""
    dtype, data, valid, words = saved
    values: Array = np.frombuffer(data, dtype)
    if words is not None:
        values = values.astype(np.int64)
        words = [tuples(word) for word in words]
    if valid is not None:
        valid = np.unpackbits(np.frombuffer(valid, np.uint8), count=len(values)).astype(np.bool_)
    return Column(values, valid, words)


def tuples(value: Any) -> Any:
    """Plain data as an engine has it: lists are tuples."""
    return tuple([tuples(item) for item in value]) if type(value) is list else value


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder()
