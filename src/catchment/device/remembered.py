"""What a device remembers between two starts, besides the elements that wait: as values, and how they are kept.

Everything here is written in the transaction that stores what it led to. Knows no clock and no disk.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Standing(msgspec.Struct):
    """Where everything but the engines stands: small, and written whole each time."""

    positions: dict[str, bytes] = {}
    """Of sensors, by source step."""
    fed: dict[str, int] = {}
    """Per stream of results, the id of the last one that entered the program."""
    keeper: bytes = b""
    """The timekeeper's memory."""
    told: dict[str, bool | float] = {}
    """What the program said last of the device's surroundings."""


class State(msgspec.Struct):
    """A snapshot."""

    engines: dict[str, Any]
    standing: Standing


class Since(msgspec.Struct):
    """What entered the engines after it, and where everything stood then."""

    entries: bytes
    standing: Standing


class StoredPlan(msgspec.Struct):
    """The plan that the snapshot is of, and what the gateway calls it."""

    document: bytes
    tag: str


def encode(value: State | Since | StoredPlan) -> bytes:
    """As bytes."""
    return msgspec.msgpack.encode(value)


def state_of(data: bytes) -> State:
    """A snapshot's value."""
    return msgspec.msgpack.decode(data, type=State)


def since_of(data: bytes) -> Since:
    """The value of what was taken in since."""
    return msgspec.msgpack.decode(data, type=Since)


def plan_of(data: bytes) -> StoredPlan:
    """The value of a stored plan."""
    return msgspec.msgpack.decode(data, type=StoredPlan)
