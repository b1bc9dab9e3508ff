"""One entry of the log, of each kind that an engine sees.

An entry is one device upload (columnar, still encoded), or a short notice: a tick, a promise without data, a device's
presence, owner or clock. Event time is fixed here: an element of an upload happened at *its event-time column +
`shift_us`*, and that sum never changes, whatever better offset is found later. Nothing here knows a disk or a socket.

>>> tick(now=60_000_000, reached={"fixes": Reached(55_000_000, 59_000_000)}).promise_us
55000000
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec

NO_INSTANT = -(1 << 63)
"""Where an instant is not known or was not promised: older than everything."""


class Kind(IntEnum):
    """What an entry is."""

    DATA = 1
    """Elements of a stream, with a promise."""
    TICK = 2
    """Time passed: the gateway's clock, and the combined progress of the partition's sources."""
    PRESENCE = 3
    """A device came or went."""
    JOINED = 4
    """A device is heard for the first time, or changed hands."""
    PROMISE = 5
    """A device's promise for a stream that has no data to send."""
    CLOCK = 6
    """The offset that places a session's readings, decided: a later, better one is a new segment."""
    FORGOTTEN = 7
    """A device is to be forgotten, or its user (`count` is 1): what the cloud remembers goes."""
    EMPTIED = 8
    """What a forgotten device sent: it keeps its place and its length, and says nothing."""


class Online(IntEnum):
    """What a presence entry says, in its `count`."""

    OFFLINE = 0
    ONLINE = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry. Fields that a kind does not use keep their defaults."""

    kind: int
    device: str = ""
    user: str = ""
    """The owner, from the enrolment; never what the device says."""
    stream: str = ""
    schema: str = ""
    """The fingerprint that the payload was written with, in hex."""
    codec: str = ""
    session: str = ""
    """One boot of the device, in hex: what its readings are relative to."""
    gaps: str = ""
    """Numbers that will never come, as a JSON list of [row, skipped, rows]; nearly always empty."""
    epoch: int = 0
    """The order of the epoch among those of (device, stream), counted by the gateway from first contact."""
    epoch_counter: int = 0
    epoch_nonce: int = 0
    """8 bytes, little-endian, as a signed number."""
    first: int = 0
    count: int = 0
    """Rows in the payload."""
    upto: int = 0
    """The number after the last that this entry accounts for: the high-water mark once it is durable."""
    shift_us: int = 0
    """Add this to the event-time column as encoded; zero where the author's data is to stay as it is."""
    clock_segment: int = 0
    clock_offset_us: int = 0
    clock_error_us: int = 0
    wall_us: int = NO_INSTANT
    """What the device's wall clock claimed as (wall - reading)."""
    base_us: int = NO_INSTANT
    """The instant of the first element; since when, for a presence."""
    span_us: int = 0
    promise_us: int = NO_INSTANT
    """Nothing older than this is unsent, of this device and stream (of this partition, on a tick)."""
    lost_refused: int = 0
    lost_dropped: int = 0
    lost_thinned: int = 0
    received_us: int
    """The gateway's clock when it logged the entry; `now` of a tick."""
    payload: bytes = b""


class Reached(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the sources of a stream have promised: all of them, and those that are online."""

    all_us: int
    online_us: int


def tick(*, now: int, reached: Mapping[str, Reached]) -> Entry:
    """Time passed: the gateway's clock, and per stream the combined progress of the partition's sources."""
    return Entry(
        kind=Kind.TICK,
        received_us=now,
        promise_us=min([one.all_us for one in reached.values()], default=NO_INSTANT),
        payload=msgspec.msgpack.encode(reached, order="sorted"),
    )


def presence(*, device: str, user: str, online: bool, since: int, now: int) -> Entry:
    """A device came or went."""
    count = Online.ONLINE if online else Online.OFFLINE
    return Entry(kind=Kind.PRESENCE, device=device, user=user, count=count, base_us=since, received_us=now)


def joined(*, device: str, user: str, now: int) -> Entry:
    """A device is heard for the first time, or changed hands."""
    return Entry(kind=Kind.JOINED, device=device, user=user, received_us=now)


def forgotten(*, device: str, user: str, all_of_user: bool, now: int) -> Entry:
    """A device is to be forgotten, and all that is kept of its user too if so said; `user` is the enrolment's."""
    return Entry(kind=Kind.FORGOTTEN, device=device, user=user, count=int(all_of_user), received_us=now)


def reached_of(entry: Entry) -> dict[str, Reached]:
    """What a tick says per stream.

    >>> reached_of(tick(now=9, reached={"fixes": Reached(5, 7)}))
    {'fixes': Reached(all_us=5, online_us=7)}
    """
    return msgspec.msgpack.decode(entry.payload, type=dict[str, Reached])
