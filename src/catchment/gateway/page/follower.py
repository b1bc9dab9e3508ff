"""What the log says of devices, followed for those who look: where each is, and what each stream's policies save.

The log is read behind its writer, in a thread, a bounded stretch at a time, and only while somebody looks. Any stream
whose elements have `lat_deg` and `lon_deg` gives places; its first text that is no key says how: a mode, a kind. Knows
the log and plans; nothing of what a program is about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from catchment.errors import CatchmentError
from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.reader import LogReader
from catchment.program.types import STR, Schema
from catchment.sync.codecs import codec

LOOK_BYTES_MAX = 2 << 20
BACK_BYTES_MAX = 8 << 20
"""A log that is longer is followed from its end."""
TRACK_POINTS = 240
DEVICES_MAX = 5_000
_ROW = msgspec.msgpack.Encoder()

Schemas = Callable[[str], Mapping[str, Schema]]
Point = tuple[float, float, str, int]
"""Latitude, longitude, how, and the moment in milliseconds."""


@dataclass(slots=True)
class Seen:
    """A device as the log has shown it."""

    user: str
    stream: str = ""
    points: deque[tuple[int, Point]] = field(default_factory=lambda: deque(maxlen=TRACK_POINTS))
    """Each with the number of the look that found it."""
    received_ms: int = 0


@dataclass(slots=True)
class Traffic:
    """A stream's elements before its policies, and what came of them after."""

    elements: int = 0
    filtered: int = 0
    """Elements that a policy left out: numbers that will never come."""
    plain_bytes: int = 0
    """What the elements take as MessagePack, one by one; those that were left out counted as the others on average."""
    sent_bytes: int = 0
    uploads: int = 0
    lost: int = 0


class Follower:
    """Reads on when it is told to."""

    def __init__(self, disk: Disk, schemas: Schemas) -> None:
        """`schemas` are those of a program's plan, by fingerprint."""
        self.devices: dict[str, Seen] = {}
        self.streams: dict[str, Traffic] = {}
        self.looks = 0
        self.skipped = False
        """Whether the log was longer than what is looked at."""
        self._disk = disk
        self._schemas = schemas
        self._reader: LogReader | None = None
        self._at: dict[int, int] = {}

    def look(self) -> None:
        """Take in what is new. Blocking: for a thread."""
        self.looks += 1
        try:
            if self._reader is None:
                self._reader = LogReader(self._disk)
            for partition in range(self._reader.partitions):
                self._read(self._reader, partition)
        except (CatchmentError, OSError):
            # The log is being trimmed, or taken over: the next look begins where it stands then.
            self._reader = None
            self._at.clear()

    def keep(self, devices: Collection[str]) -> None:
        """Let go of what is about any other: they were forgotten."""
        for name in [name for name in self.devices if name not in devices]:
            del self.devices[name]

    def since(self, look: int, user: str | None) -> dict[str, dict[str, Any]]:
        """The devices that moved after that look, of one user or of all, with their new points."""
        found: dict[str, dict[str, Any]] = {}
        for name, seen in list(self.devices.items()):
            if user is not None and seen.user != user:
                continue
            fresh = [point for number, point in list(seen.points) if number > look]
            if fresh:
                found[name] = {"user": seen.user, "stream": seen.stream, "points": fresh}
        return found

    def _read(self, reader: LogReader, partition: int) -> None:
        oldest, end = reader.start(partition), reader.end(partition)
        start = self._at.get(partition)
        if start is None or start < oldest:
            start = oldest if end - oldest <= BACK_BYTES_MAX else end
            self.skipped = self.skipped or start > oldest
        if end - start > BACK_BYTES_MAX:
            self.skipped, start = True, end
        upto = reader.boundary(partition, start, bytes_max=LOOK_BYTES_MAX, end=end) if end > start else end
        for _, entry in reader.read(partition, start, upto):
            if entry.kind == Kind.DATA:
                self._take(entry)
        self._at[partition] = upto

    def _take(self, entry: Entry) -> None:
        traffic = self.streams.setdefault(entry.stream, Traffic())
        schema = self._schemas(entry.stream.partition("/")[0]).get(entry.schema)
        if schema is None or not entry.count:
            return
        try:
            rows = codec(entry.codec).decode(schema, bytes(entry.payload))
        except CatchmentError:
            return  # it is quarantined where it is computed
        plain = sum([len(_ROW.encode(row)) for row in rows])
        left_out = max(0, entry.upto - entry.first - entry.count)
        traffic.elements += entry.count
        traffic.filtered += left_out
        traffic.plain_bytes += plain + plain * left_out // entry.count
        traffic.sent_bytes += len(entry.payload)
        traffic.uploads += 1
        traffic.lost = max(traffic.lost, entry.lost_dropped + entry.lost_refused + entry.lost_thinned)
        self._place(entry, schema, rows)

    def _place(self, entry: Entry, schema: Schema, rows: list[tuple[Any, ...]]) -> None:
        where = places(schema)
        seen = self.devices.get(entry.device)
        if seen is None:
            if len(self.devices) >= DEVICES_MAX:
                return
            seen = self.devices[entry.device] = Seen(entry.user)
        seen.user, seen.received_ms = entry.user, entry.received_us // 1000
        if where is None:
            return
        lat, lon, how, at = where
        seen.stream = entry.stream
        for row in rows[-TRACK_POINTS:]:
            if row[lat] is not None and row[lon] is not None:
                at_ms = (row[at] + entry.shift_us if at is not None else entry.base_us) // 1000
                said = str(row[how]) if how is not None and row[how] is not None else ""
                seen.points.append((self.looks, (row[lat], row[lon], said, at_ms)))


def places(schema: Schema) -> tuple[int, int, int | None, int | None] | None:
    """Where in a row its place, its mode and its moment are; None where it has no place."""
    if not {"lat_deg", "lon_deg"} <= set(schema.names):
        return None
    at = None if schema.event_time is None else schema.position(schema.event_time)
    texts = zip(count(), schema.fields)
    how = next((n for n, column in texts if column.type == STR and not column.key and column.stamp is None), None)
    return schema.position("lat_deg"), schema.position("lon_deg"), how, at
