"""Marks: what the log implies about each device, folded from its entries in order.

How far each (device, stream, epoch) is durable, in which order epochs were first met, who owns the device, whether it
is there, where its clock stands, what it promised. This is all that a gateway must remember of a device, however long
it was offline; it is written beside each new segment, so that a start reads one segment and not the whole log.
A fold and nothing else: no I/O, no clock.

>>> marks = Marks()
>>> marks.apply(Entry(kind=Kind.DATA, device="d", stream="fixes", count=3, upto=3, received_us=9, promise_us=5))
True
>>> marks.upto("d", "fixes", 0, 0), Marks.from_bytes(marks.to_bytes()) == marks
(3, True)
"""

from __future__ import annotations

import zlib

import msgspec

from catchment.gateway.log.entry import NO_INSTANT, Entry, Kind, Online


class EpochMark(msgspec.Struct, array_like=True, gc=False):
    """One epoch of a device on a stream: numbers below `upto` are durable."""

    counter: int
    nonce: int
    upto: int


class StreamMark(msgspec.Struct, array_like=True):
    """A stream of a device: its epochs by first contact, and the highest promise."""

    epochs: list[EpochMark] = []
    promise_us: int = NO_INSTANT


class ClockMark(msgspec.Struct, array_like=True, gc=False):
    """The decided offset of a segment of a session."""

    session: str
    segment: int
    offset_us: int
    error_us: int


class DeviceMark(msgspec.Struct, array_like=True):
    """A device: its owner, whether it is there and since when, its streams, its newest clocks (oldest first).

    `epochs` are those of all its streams, as (counter, nonce), by first contact: two starts of a device are told apart
    by them.
    """

    user: str = ""
    joined: bool = False
    online: bool = False
    since_us: int = NO_INSTANT
    streams: dict[str, StreamMark] = {}
    clocks: list[ClockMark] = []
    epochs: list[tuple[int, int]] = []


_DATA, _TICK = int(Kind.DATA), int(Kind.TICK)
_FORGOTTEN, _EMPTIED = int(Kind.FORGOTTEN), int(Kind.EMPTIED)
_PROMISING = (_DATA, int(Kind.PROMISE))
CLOCKS_KEPT = 16
"""Segments of clocks that are remembered per device; an upload of an older one is placed anew."""


class Marks(msgspec.Struct):
    """The fold. Mutable, because it changes with every upload; owned by the partition's one writer."""

    devices: dict[str, DeviceMark] = {}
    data_us: int = NO_INSTANT
    """When the last data or promise arrived."""
    tick_us: int = NO_INSTANT
    """When the last tick was logged."""

    def apply(self, entry: Entry) -> bool:
        """Take the next entry of the log into account; whether it changed who is a source of what."""
        kind = entry.kind
        if kind in _PROMISING:
            return self._advance(self._device(entry.device), entry)
        if kind == _TICK:
            self.tick_us = max(self.tick_us, entry.received_us)
            return False
        if kind == _EMPTIED:
            return False
        if kind == _FORGOTTEN:
            self.devices.pop(entry.device, None)
            return False
        device = self._device(entry.device)
        match kind:
            case Kind.PRESENCE:
                device.online = entry.count == Online.ONLINE
                device.since_us = entry.base_us
                return True
            case Kind.JOINED:
                device.user, device.joined = entry.user, True
            case Kind.CLOCK:
                _place(device, entry)
            case _:
                # A newer gateway's kind: it is in the log for readers that know it, and changes no mark.
                pass
        return False

    def _device(self, name: str) -> DeviceMark:
        device = self.devices.get(name)
        if device is None:
            device = self.devices[name] = DeviceMark()
        return device

    def _advance(self, device: DeviceMark, entry: Entry) -> bool:
        stream = device.streams.get(entry.stream)
        is_new = stream is None
        if stream is None:
            stream = device.streams[entry.stream] = StreamMark()
        if entry.received_us > self.data_us:
            self.data_us = entry.received_us
        if entry.promise_us > stream.promise_us:
            stream.promise_us = entry.promise_us
        if entry.kind == _DATA:
            mark = _find(stream, entry.epoch_counter, entry.epoch_nonce)
            if mark is None:
                mark = EpochMark(entry.epoch_counter, entry.epoch_nonce, 0)
                stream.epochs.append(mark)
                if (mark.counter, mark.nonce) not in device.epochs:
                    device.epochs.append((mark.counter, mark.nonce))
            if entry.upto > mark.upto:
                mark.upto = entry.upto
        return is_new

    def upto(self, device: str, stream: str, counter: int, nonce: int) -> int:
        """Of that epoch, every number below this is durable."""
        known = self.devices.get(device)
        mark = None
        if known is not None and stream in known.streams:
            mark = _find(known.streams[stream], counter, nonce)
        return 0 if mark is None else mark.upto

    def to_bytes(self) -> bytes:
        """The snapshot, with its checksum."""
        body = msgspec.msgpack.encode(self)
        return zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Marks:
        """The marks of a snapshot; `ValueError` if it is none."""
        if zlib.crc32(data[4:]) != int.from_bytes(data[:4], "little"):
            raise ValueError("the checksum of these marks is wrong")
        return msgspec.msgpack.decode(data[4:], type=cls)


def _find(stream: StreamMark, counter: int, nonce: int) -> EpochMark | None:
    # From the newest, which is the one asked for nearly always.
    for mark in reversed(stream.epochs):
        if mark.counter == counter and mark.nonce == nonce:
            return mark
    return None


def _place(device: DeviceMark, entry: Entry) -> None:
    placed = ClockMark(entry.session, entry.clock_segment, entry.clock_offset_us, entry.clock_error_us)
    device.clocks = [*device.clocks[1 - CLOCKS_KEPT :], placed]
