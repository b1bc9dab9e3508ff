"""Events of a part as bytes: what travels from where the log is read to the bucket that holds a key's state.

A packet is MessagePack of a list of events, each a list that begins with its kind. Rows keep their types: ints have
64 bits, and tuples come back as tuples.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

ELEMENT, PROGRESS, PRESENCE, TICK, FAILURE = 0, 1, 2, 3, 4

Event: TypeAlias = tuple[Any, ...]
"""(ELEMENT, step, at, device, owner, row), (PROGRESS, step, device, owner, at), (PRESENCE, device, owner, since),
(TICK, now), or (FAILURE, step, reason, what) for what was quarantined before it reached a bucket."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder()


def pack(events: list[Event]) -> bytes:
    """Events as bytes.

    >>> unpack(pack([(TICK, 5), (ELEMENT, "s", 1, "d", None, ("ada", (1, 2)))]))
    [(3, 5), (0, 's', 1, 'd', None, ('ada', (1, 2)))]
    """
    return _ENCODER.encode(events)


def unpack(packet: bytes) -> list[Event]:
    """The events of a packet."""
    return [_tuples(event) for event in _DECODER.decode(packet)]


def _tuples(value: Any) -> Any:
    if type(value) is list:
        return tuple([_tuples(item) for item in value])
    return value
