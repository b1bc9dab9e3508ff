"""Entries of the log as what arrives at a part: many uploads become columns at once, with promises, presence and ticks.

The gateway's word stands: stamped fields take the device and user of the enrolment, and an element that claims
otherwise is refused with its reason. Event time was fixed when the entry was logged; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from catchment.engines.spark.events import FORGET, PRESENCE, PROGRESS, TICK, Arrived
from catchment.engines.spark.rows import Array, Column, Rows, column_of
from catchment.errors import CatchmentError
from catchment.gateway.log.entry import NO_INSTANT, Kind, Online
from catchment.plan.history import Source
from catchment.plan.physical import Part, Plan
from catchment.program.types import Schema
from catchment.sync.codecs.delta_numpy import Frames, read_frames

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class _Upload:
    """An entry with data: where its places begin, and what its frame needs."""

    place: int
    entry: int
    device: str
    user: str
    codec: str
    payload: bytes
    count: int
    shift_us: int
    base_us: int


class Intake:
    """Reads entries for the sync streams that arrive at one part."""

    def __init__(self, plan: Plan, part: Part) -> None:
        self._schemas = plan.schemas
        self._streams = {
            f"{plan.program}/{name}": (plan.sync(name).target, plan.schemas[plan.sync(name).schema])
            for name in part.inputs
        }

    def read(self, batch: pa.RecordBatch) -> Arrived:
        """What the entries of a batch say, in their order."""
        arrived = Arrived()
        columns = {name: batch.column(name).to_pylist() for name in _READ}
        uploads: dict[tuple[str, str], list[_Upload]] = {}
        for entry, kind in enumerate(columns["kind"]):
            place = arrived.count
            device, owner = columns["device"][entry], columns["user"][entry] or None
            if kind == Kind.TICK:
                arrived.said.append((place, TICK, columns["received_us"][entry]))
            elif kind == Kind.PRESENCE:
                there = columns["count"][entry] == Online.ONLINE
                arrived.said.append((place, PRESENCE, device, owner, None if there else columns["base_us"][entry]))
            elif kind == Kind.JOINED:
                arrived.said.append((place, PRESENCE, device, owner, None))
            elif kind == Kind.FORGOTTEN:
                arrived.said.append((place, FORGET, device, owner, bool(columns["count"][entry])))
            elif kind in (Kind.DATA, Kind.PROMISE) and columns["stream"][entry] in self._streams:
                stream = columns["stream"][entry]
                count = columns["count"][entry] if kind == Kind.DATA else 0
                if count:
                    what = (columns[name][entry] for name in ("codec", "payload", "count", "shift_us", "base_us"))
                    upload = _Upload(place, entry, device, columns["user"][entry], *what)
                    uploads.setdefault((stream, columns["schema"][entry]), []).append(upload)
                promise = columns["promise_us"][entry]
                if promise != NO_INSTANT:
                    step = self._streams[stream][0]
                    arrived.said.append((place + count, PROGRESS, step, device, owner, promise))
                arrived.count += count
            arrived.count += 1
        rows: dict[str, list[Rows]] = {}
        for (stream, schema), found in uploads.items():
            made = self._rows(stream, schema, found, arrived, columns)
            if made is not None:
                rows.setdefault(self._streams[stream][0], []).append(made)
        for step, parts in rows.items():
            whole = Rows.concat(parts)
            ordered = len(parts) == 1
            arrived.rows[step] = whole if ordered else whole.take(np.argsort(whole.place, kind="stable"))
        arrived.refused.sort(key=lambda each: each[0])
        return arrived

    def _rows(
        self, stream: str, written_as: str, uploads: list[_Upload], arrived: Arrived, columns: dict[str, list[Any]]
    ) -> Rows | None:
        """The elements of uploads of one stream, all written with one schema."""

        def refuse(upload: _Upload, reason: str) -> None:
            what = {name: columns[name][upload.entry] for name in KEPT}
            arrived.refused.append((upload.place, stream, reason, what))

        schema = self._streams[stream][1]
        written = self._schemas.get(written_as)
        reason = f"schema {written_as} is not one that this program knows"
        if written is not None:
            reason = schema.difference(written) or ""
        if written is None or reason:
            for upload in uploads:
                refuse(upload, reason)
            return None
        frames, uploads = _decoded(written, uploads, refuse)
        if frames is None:
            return None
        counts = frames.counts
        given = dict(zip(written.names, frames.columns, strict=True))
        total = int(counts.sum())
        fields = [
            given[field.name] if field.name in given else column_of([field.default] * total, field.type)
            for field in schema.fields
        ]
        frame = np.repeat(np.arange(len(uploads)), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        place = np.array([upload.place for upload in uploads], np.int64)[frame] + within
        sources = [Source(upload.device, upload.user or None) for upload in uploads]
        rows = Rows(np.array([each.base_us for each in uploads], np.int64)[frame], frame, place, sources, fields)
        rows = _vouched(rows, schema, uploads, stream, arrived)
        return _timed(rows, schema, np.array([upload.shift_us for upload in uploads], np.int64))


def _decoded(written: Schema, uploads: list[_Upload], refuse: Any) -> tuple[Frames | None, list[_Upload]]:
    """The columns of all uploads, but for those that cannot be read."""
    try:
        return read_frames(written, [(upload.codec, upload.payload) for upload in uploads]), uploads
    except CatchmentError:
        pass
    readable = []
    for upload in uploads:
        try:
            read_frames(written, [(upload.codec, upload.payload)])
        except CatchmentError as error:
            refuse(upload, str(error))
        else:
            readable.append(upload)
    if not readable:
        return None, []
    return read_frames(written, [(upload.codec, upload.payload) for upload in readable]), readable


def _vouched(rows: Rows, schema: Schema, uploads: Sequence[_Upload], stream: str, arrived: Arrived) -> Rows:
    """Stamped fields as the gateway vouches for them; elements that claim otherwise are refused."""
    refused: dict[int, str] = {}
    columns = list(rows.columns)
    for place, field in enumerate(schema.fields):
        if field.stamp is None:
            continue
        said = [upload.device if field.stamp == "device" else upload.user for upload in uploads]
        for number, claimed in _claims(rows.columns[place], rows.source, said):
            refused.setdefault(number, f"claims to be of {claimed}, and is of {said[int(rows.source[number])]}")
        numbers: dict[str, int] = {}
        codes = np.array([numbers.setdefault(word, len(numbers)) for word in said], np.int64)
        columns[place] = Column(codes[rows.source], None, list(numbers))
    stamped = Rows(rows.at, rows.source, rows.place, rows.sources, columns)
    if not refused:
        return stamped
    which = np.array(sorted(refused), np.int64)
    for number, row in zip(which.tolist(), rows.take(which).objects(), strict=True):
        arrived.refused.append((int(rows.place[number]), stream, refused[number], row))
    kept = np.ones(len(rows), np.bool_)
    kept[which] = False
    return stamped.take(kept)


def _claims(column: Column, frame: Array, said: Sequence[str]) -> list[tuple[int, Any]]:
    """Rows that say something else than their upload's word, and what they say."""
    words = column.words or []
    if not words:
        return []
    numbers: dict[Any, int] = {}
    word = np.array([numbers.setdefault(each, len(numbers)) for each in words], np.int64)[column.values]
    wanted = np.array([numbers.get(each, -1) for each in said], np.int64)[frame]
    wrong = (word != wanted) & (word != numbers.get("", -1))
    if column.valid is not None:
        wrong &= column.valid
    return [(int(number), words[column.values[number]]) for number in np.flatnonzero(wrong)]


def _timed(rows: Rows, schema: Schema, shift: Array) -> Rows:
    """Elements at their times: the event-time field, shifted as the gateway decided."""
    if schema.event_time is None:
        return rows
    position = schema.position(schema.event_time)
    field = rows.columns[position]
    at = field.values + shift[rows.source]
    rows.columns[position] = Column(at, field.valid)
    rows.at = at if field.valid is None else np.where(field.valid, at, rows.at)
    return rows


KEPT = (
    *("device", "user", "stream", "schema", "codec", "epoch", "first", "count"),
    *("shift_us", "base_us", "payload"),
)
"""What is kept of an upload that cannot be read: all that it takes to read it once it can be."""
_READ = (
    *("kind", "device", "user", "stream", "schema", "codec", "epoch", "first", "count"),
    *("shift_us", "base_us", "promise_us", "received_us", "payload"),
)
