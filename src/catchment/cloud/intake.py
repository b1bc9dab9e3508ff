"""Entries of the log as what arrives at a part: what speaks of time, and uploads, many of which become columns at once.

The gateway's word stands: stamped fields take the device and user of the enrolment, and an element that claims
otherwise is refused with its reason. Event time was fixed when the entry was logged; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from catchment.engines.spark.events import (
    FORGET,
    NUMBERS,
    PRESENCE,
    TEXTS,
    TICK,
    Arrived,
    Said,
    Uploads,
    by_place,
)
from catchment.engines.spark.rows import Array, Column, Rows, column_of, taken
from catchment.errors import CatchmentError
from catchment.gateway.log.entry import Kind, Online
from catchment.plan.history import Source
from catchment.plan.physical import Part, Plan
from catchment.program.types import Schema
from catchment.sync.codecs.delta_numpy import Frames, read_frames

if TYPE_CHECKING:
    import pyarrow as pa

KEPT = (
    *("device", "user", "stream", "schema", "codec", "epoch", "first", "count"),
    *("shift_us", "base_us", "payload"),
)
"""What is kept of an upload that cannot be read: all that it takes to read it once it can be."""
_SAYING = (Kind.TICK, Kind.PRESENCE, Kind.JOINED, Kind.FORGOTTEN)


class Intake:
    """Reads entries for the sync streams that arrive at one part."""

    def __init__(self, plan: Plan, part: Part) -> None:
        self._schemas = plan.schemas
        self._streams = {
            f"{plan.program}/{name}": (plan.sync(name).target, plan.schemas[plan.sync(name).schema])
            for name in part.inputs
        }
        self.entrances = {stream: step for stream, (step, _) in self._streams.items()}
        """The source step that the elements of each stream enter at."""

    def read(self, batch: pa.RecordBatch) -> Arrived:
        """What the entries of a batch say, in their order, as `read_arrow` gives them; uploads stay as they came."""
        kind, count = (_numbers(batch, name) for name in ("kind", "count"))
        stream = _texts(batch, "stream")
        is_wanted = np.array([word in self._streams for word in stream.words or ()], np.bool_)[stream.values]
        is_upload = is_wanted & ((kind == Kind.DATA) | (kind == Kind.PROMISE))
        elements = np.where(is_upload & (kind == Kind.DATA), count, 0)
        # An upload has a place for each element, and one for its promise behind them.
        ends = np.cumsum(elements + 1)
        place = ends - elements - 1
        arrived = Arrived(int(ends[-1]) if len(ends) else 0)
        which = np.flatnonzero(is_upload)
        if len(which):
            uploads = batch.take(which)
            numbers = {"place": place[which], "count": elements[which]}
            arrived.uploads = Uploads(
                {**numbers, **{name: _numbers(uploads, name) for name in NUMBERS[2:]}},
                {name: _texts(uploads, name) for name in TEXTS},
                Column(np.arange(len(which)), None, uploads.column("payload").to_pylist()),
            )
        for entry in np.flatnonzero(np.isin(kind, _SAYING)).tolist():
            arrived.said.append(_said(batch, int(kind[entry]), entry, int(place[entry])))
        return arrived

    def open(self, arrived: Arrived) -> Arrived:
        """The same with its uploads opened: their elements and promises by source step, and what is refused."""
        uploads = arrived.uploads
        if uploads is None:
            return arrived
        opened = Arrived(arrived.count, dict(arrived.rows), [], list(arrived.refused))
        opened.said = by_place([*arrived.said, *uploads.promises(self.entrances)])
        stream, schema = uploads.texts["stream"], uploads.texts["schema"]
        streams, schemas = stream.words or [], schema.words or []
        written_as = stream.values * len(schemas) + schema.values
        rows: dict[str, list[Rows]] = {}
        for code in np.unique(written_as[uploads.numbers["count"] > 0]).tolist():
            which = np.flatnonzero((written_as == code) & (uploads.numbers["count"] > 0))
            name = streams[code // len(schemas)]
            made = self._rows(name, schemas[code % len(schemas)], uploads.take(which), opened)
            if made is not None:
                rows.setdefault(self._streams[name][0], []).append(made)
        for step, parts in rows.items():
            whole = Rows.concat(parts)
            opened.rows[step] = whole if len(parts) == 1 else whole.take(np.argsort(whole.place, kind="stable"))
        return opened

    def _rows(self, stream: str, written_as: str, uploads: Uploads, opened: Arrived) -> Rows | None:
        """The elements of uploads of one stream that were written with one schema; what cannot be read is refused."""

        def refuse(refused: Uploads, reason: str) -> None:
            values: dict[str, list[Any]] = {name: array.tolist() for name, array in refused.numbers.items()}
            values |= {name: column.objects() for name, column in refused.texts.items()}
            values["payload"] = refused.payloads.objects()
            for number, place in enumerate(values["place"]):
                what = {name: values[name][number] for name in KEPT}
                opened.refused.append((place, stream, reason, what))

        schema = self._streams[stream][1]
        written = self._schemas.get(written_as)
        reason = f"schema {written_as} is not one that this program knows"
        if written is not None:
            reason = schema.difference(written) or ""
        if written is None or reason:
            refuse(uploads, reason)
            return None
        wanted = [name for name in written.names if name in schema.names]
        frames, uploads = _decoded(written, wanted, uploads, refuse)
        if frames is None:
            return None
        counts = frames.counts
        given = {
            name: _adapted(column, schema.adapts(written, name))
            for name, column in zip(wanted, frames.columns, strict=True)
        }
        total = int(counts.sum())
        fields = [
            given[field.name] if field.name in given else column_of([field.default] * total, field.type)
            for field in schema.fields
        ]
        upload = np.repeat(np.arange(len(uploads)), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        device, user = uploads.texts["device"], uploads.texts["user"]
        owners = user.words or []
        known, of = np.unique(device.values * len(owners) + user.values, return_inverse=True)
        names = device.words or []
        sources = [Source(names[code // len(owners)], owners[code % len(owners)] or None) for code in known.tolist()]
        place = uploads.numbers["place"][upload] + within
        rows = Rows(uploads.numbers["base_us"][upload], of[upload], place, sources, fields)
        shift = uploads.numbers["shift_us"][upload]
        refused = _refused(rows, schema, {"device": taken(device, upload), "user": taken(user, upload)})
        if refused:
            which = np.array(sorted(refused), np.int64)
            for number, row in zip(which.tolist(), rows.take(which).objects(), strict=True):
                opened.refused.append((int(rows.place[number]), stream, refused[number], row))
            kept = np.ones(total, np.bool_)
            kept[which] = False
            rows, upload, shift = rows.take(kept), upload[kept], shift[kept]
        for position, field in enumerate(schema.fields):
            if field.stamp is not None:
                rows.columns[position] = taken(uploads.texts[field.stamp], upload)
        return _timed(rows, schema, shift)


def _said(batch: pa.RecordBatch, kind: int, entry: int, place: int) -> Said:
    device, user, count, base_us, received_us = (
        batch.column(name)[entry].as_py() for name in ("device", "user", "count", "base_us", "received_us")
    )
    if kind == Kind.TICK:
        return (place, TICK, received_us)
    if kind == Kind.FORGOTTEN:
        return (place, FORGET, device, user or None, bool(count))
    is_there = kind == Kind.JOINED or count == Online.ONLINE
    return (place, PRESENCE, device, user or None, None if is_there else base_us)


def _numbers(batch: pa.RecordBatch, name: str) -> Array:
    found: Array = batch.column(name).to_numpy(zero_copy_only=False)
    return found.astype(np.int64, copy=False)


def _texts(batch: pa.RecordBatch, name: str) -> Column:
    column = batch.column(name)
    # The columns of a batch share their words.
    used, codes = np.unique(column.indices.to_numpy(zero_copy_only=False), return_inverse=True)
    return Column(codes, None, column.dictionary.take(used).to_pylist())


def _adapted(column: Column, adapt: Callable[[Any], Any] | None) -> Column:
    """The column with its nested values as the program has them now: they may have been written with fewer fields."""
    if adapt is None:
        return column
    return Column(column.values, column.valid, [adapt(word) for word in column.words or []])


def _decoded(written: Schema, wanted: Sequence[str], uploads: Uploads, refuse: Any) -> tuple[Frames | None, Uploads]:
    """The wanted columns of all uploads, but for those that cannot be read."""
    frames = list(zip(uploads.texts["codec"].objects(), uploads.payloads.objects(), strict=True))
    try:
        return read_frames(written, frames, wanted=wanted), uploads
    except CatchmentError:
        pass
    readable = []
    for number, frame in enumerate(frames):
        try:
            # What is wanted is what is judged, here too: whether one is refused must not hang on those beside it.
            read_frames(written, [frame], wanted=wanted)
        except CatchmentError as error:
            refuse(uploads.take(np.array([number])), str(error))
        else:
            readable.append(number)
    if not readable:
        return None, uploads
    return read_frames(written, [frames[number] for number in readable], wanted=wanted), uploads.take(
        np.array(readable)
    )


def _refused(rows: Rows, schema: Schema, stamps: dict[str, Column]) -> dict[int, str]:
    """The elements that claim to be of others than the gateway says, by number, with the reason."""
    refused: dict[int, str] = {}
    for field, column in zip(schema.fields, rows.columns, strict=True):
        if field.stamp is not None:
            said = stamps[field.stamp]
            for number, claimed in _claims(column, said):
                whose = (said.words or [])[int(said.values[number])]
                refused.setdefault(number, f"claims to be of {claimed}, and is of {whose}")
    return refused


def _claims(column: Column, said: Column) -> list[tuple[int, Any]]:
    """Rows that say something else than their upload's word, and what they say. Nothing is no claim."""
    words = column.words or []
    if not words:
        return []
    numbers = {word: number for number, word in enumerate(said.words or [])}
    claimed = np.array([numbers.get(word, -1) for word in words], np.int64)[column.values]
    is_nothing = np.array([word == "" for word in words], np.bool_)[column.values]
    wrong = (claimed != said.values) & ~is_nothing
    if column.valid is not None:
        wrong &= column.valid
    return [(int(number), words[column.values[number]]) for number in np.flatnonzero(wrong)]


def _timed(rows: Rows, schema: Schema, shift: Array) -> Rows:
    """Elements at their times: the event-time field, shifted as the gateway decided."""
    if schema.event_time is None:
        return rows
    position = schema.position(schema.event_time)
    field = rows.columns[position]
    at = field.values + shift
    rows.columns[position] = Column(at, field.valid)
    rows.at = at if field.valid is None else np.where(field.valid, at, rows.at)
    return rows
