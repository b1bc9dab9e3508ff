"""A consumer of the log, as the cloud is one: it reads exact ranges, remembers how far it came, confirms, and checks.

Everything that the log promises its readers is checked entry by entry, as it is read: numbers of an epoch follow each
other, epochs follow each other, elements come once and in order, event times are spaced as the boot clock read them,
nothing is older than what was promised, losses only grow, a tick says the least of what its sources promised.

Knows the log's entries and the readings that simulated devices make. What should be there is the ledger's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from catchment.errors import CatchmentError
from catchment.gateway.log import NO_INSTANT, Entry, Kind, reached_of
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.reader import LogReader
from catchment.program.types import Schema
from catchment.sim.broken import Broken
from catchment.sim.ledger import Name
from catchment.sync.codecs import codec


class Arrival(NamedTuple):
    """An element as it stands in the log."""

    serial: int
    at_us: int
    """Its event time."""
    reading_us: int
    order: int
    """When it was read, among all elements."""
    error_us: int
    """What its provenance says of its event time."""
    is_bridged: bool


@dataclass(slots=True)
class _Epoch:
    order: int
    upto: int = 0
    lost: int = 0
    skipped: int = 0


@dataclass(slots=True)
class _Stream:
    epochs: dict[tuple[int, int], _Epoch] = field(default_factory=dict)
    promise_us: int = NO_INSTANT
    promised: dict[tuple[str, int], int] = field(default_factory=dict)
    """Per session and segment of its clock."""


class Consumer:
    """One reader of all partitions. `name` is what it confirms under."""

    def __init__(self, name: str, disk: Disk, schema: Schema, *, safe_end: Callable[[int], int]) -> None:
        self.name = name
        self.arrived: dict[Name, list[Arrival]] = {}
        self.entries = 0
        self.ticks = 0
        self.is_behind = False
        """Whether a partition seemed to end before what was read of it already."""
        self._disk = disk
        self._schema = schema
        self._safe_end = safe_end
        self._reader: LogReader | None = None
        self._at: dict[int, int] = {}
        self._streams: dict[tuple[int, str, str], _Stream] = {}
        self._elements = 0
        self.trouble: CatchmentError | None = None
        """Why it could not read, if it could not."""

    def restart(self) -> None:
        """Forget all but the positions."""
        self._reader = None

    def read(self) -> None:
        """Take in what is new."""
        self.trouble, self.is_behind = None, False
        try:
            if self._reader is None:
                self._reader = LogReader(self._disk)
            for partition in range(self._reader.partitions):
                self._read(self._reader, partition)
        except CatchmentError as error:
            self.trouble = error

    def confirm(self) -> None:
        """Say that all that was read may be deleted."""
        if self._reader is not None:
            for partition, at in self._at.items():
                self._reader.confirm(self.name, partition, at)

    def lost(self, device: str, stream: str) -> int:
        """Elements that the device reported as given up, over all its epochs."""
        return sum([epoch.lost for epoch in self._epochs(device, stream)])

    def skipped(self, device: str, stream: str) -> int:
        """Numbers that were left out, over all its epochs."""
        return sum([epoch.skipped for epoch in self._epochs(device, stream)])

    def _epochs(self, device: str, stream: str) -> list[_Epoch]:
        streams = [found for (_, of, name), found in self._streams.items() if (of, name) == (device, stream)]
        return [epoch for found in streams for epoch in found.epochs.values()]

    def _read(self, reader: LogReader, partition: int) -> None:
        start, end = self._at.get(partition, 0), reader.end(partition)
        if end <= start:
            # It may seem to end earlier after a power cut, until a writer has looked at its tail; see `is_behind`.
            self.is_behind = self.is_behind or end < start
            return
        if end > self._safe_end(partition):
            raise Broken(
                "readers see what a power cut would take",
                f"partition {partition} shows {end} and is safe to {self._safe_end(partition)}",
            )
        for offset, entry in reader.read(partition, start, end):
            self._take(partition, offset, entry)
            self._at[partition] = offset + 1
        self._at[partition] = end

    def _take(self, partition: int, offset: int, entry: Entry) -> None:
        self.entries += 1
        match entry.kind:
            case Kind.DATA:
                self._data(partition, offset, entry)
            case Kind.PROMISE:
                self._promise(self._stream(partition, entry), entry)
            case Kind.TICK:
                self._tick(partition, offset, entry)

    def _stream(self, partition: int, entry: Entry) -> _Stream:
        return self._streams.setdefault((partition, entry.device, entry.stream), _Stream())

    def _data(self, partition: int, offset: int, entry: Entry) -> None:
        where = f"offset {offset} of partition {partition}, {entry.device}/{entry.stream}"
        stream = self._stream(partition, entry)
        key = (entry.epoch_counter, entry.epoch_nonce)
        epoch = stream.epochs.get(key)
        if epoch is None:
            if entry.epoch != len(stream.epochs):
                raise Broken("epochs are numbered by first contact", f"{where}: {entry.epoch} is the {key} epoch's")
            epoch = stream.epochs[key] = _Epoch(entry.epoch)
        elif epoch.order != len(stream.epochs) - 1:
            raise Broken("an earlier epoch has ended", f"{where}: epoch {epoch.order} goes on after a later one")
        if entry.epoch != epoch.order:
            raise Broken("an epoch keeps its order", f"{where}: it was {epoch.order} and is {entry.epoch}")
        if entry.first != epoch.upto:
            raise Broken("numbers follow each other", f"{where}: {entry.first} comes after {epoch.upto}")
        epoch.upto = entry.upto
        epoch.skipped += entry.upto - entry.first - entry.count
        lost = entry.lost_refused + entry.lost_dropped + entry.lost_thinned
        if lost < epoch.lost:
            raise Broken("losses only grow", f"{where}: {lost} after {epoch.lost}")
        epoch.lost = lost
        if entry.count:
            self._rows(where, stream, entry)
        self._promise(stream, entry)

    def _rows(self, where: str, stream: _Stream, entry: Entry) -> None:
        rows = codec(entry.codec).decode(self._schema, entry.payload)
        if len(rows) != entry.count:
            raise Broken("an upload holds what it says", f"{where}: {len(rows)} rows of {entry.count}")
        segment = (entry.session, entry.clock_segment)
        promised_us = stream.promised.get(segment, NO_INSTANT)
        for at_us, serial, copy, reading_us in rows:
            at_us += entry.shift_us
            name = Name(entry.device, entry.stream, copy)
            found = self.arrived.setdefault(name, [])
            if found and serial <= found[-1].serial:
                what = (
                    "an element comes once" if any(a.serial == serial for a in found) else "elements keep their order"
                )
                raise Broken(what, f"{where}: {name} has {serial} after {found[-1].serial}")
            if entry.session and at_us != reading_us + entry.clock_offset_us:
                raise Broken(
                    "event times are spaced as the boot clock read them",
                    f"{where}: reading {reading_us} + {entry.clock_offset_us} is not {at_us}",
                )
            if at_us < promised_us:
                raise Broken("nothing is older than promised", f"{where}: {at_us} after a promise of {promised_us}")
            self._elements += 1
            found.append(
                Arrival(serial, at_us, reading_us, self._elements, entry.clock_error_us, entry.clock_error_us > 1 << 26)
            )

    def _promise(self, stream: _Stream, entry: Entry) -> None:
        if entry.promise_us > NO_INSTANT:
            stream.promise_us = max(stream.promise_us, entry.promise_us)
            if entry.kind == Kind.DATA:
                segment = (entry.session, entry.clock_segment)
                stream.promised[segment] = max(entry.promise_us, stream.promised.get(segment, NO_INSTANT))

    def _tick(self, partition: int, offset: int, entry: Entry) -> None:
        self.ticks += 1
        least: dict[str, int] = {}
        for (of, _, stream), found in self._streams.items():
            if of == partition:
                least[stream] = min(found.promise_us, least.get(stream, found.promise_us))
        for stream, reached in reached_of(entry).items():
            # It may say less, of what was written just before it: never more.
            if stream not in least or reached.all_us > least[stream]:
                raise Broken(
                    "a tick says no more than what was promised",
                    f"offset {offset} of partition {partition}: {stream} to {reached.all_us}, its sources {least}",
                )
