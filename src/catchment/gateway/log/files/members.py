"""Who shares a log: the gateways that are alive, and which partitions each of them should write.

Every gateway leaves a sign of life in the log's directory and works out the same assignment from the same
signs. Where two see different signs for a moment, both may want a partition: the lease decides, and fencing keeps it
right. So this is about balance, never about safety.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from catchment.gateway.log.files.disk import Disk

MEMBER_US = 5_000_000
"""A gateway that has not given a sign of life for this long is taken for dead."""


class Member(msgspec.Struct, frozen=True):
    """A gateway's sign of life."""

    name: str
    address: str
    expires_us: int


def announce(disk: Disk, *, name: str, address: str, now_us: int) -> None:
    """Give a sign of life."""
    disk.make_directory("members")
    disk.replace(f"members/{name}.json", msgspec.json.encode(Member(name, address, now_us + MEMBER_US)))


def leave(disk: Disk, name: str) -> None:
    """Say that this gateway is going."""
    disk.delete(f"members/{name}.json")


def alive(disk: Disk, *, now_us: int) -> tuple[Member, ...]:
    """The gateways with a fresh sign of life, by name."""
    found: list[Member] = []
    for name in disk.list("members"):
        if name.endswith(".json"):
            try:
                member = msgspec.json.decode(disk.read(f"members/{name}", 0, 1 << 16), type=Member)
            except (FileNotFoundError, msgspec.DecodeError):
                # Gone between the two calls, or harmed: no sign of life either way, and the next one replaces it.
                continue
            if member.expires_us > now_us:
                found.append(member)
    return tuple(sorted(found, key=lambda member: member.name))


def assigned(names: Collection[str], partitions: int) -> dict[int, str]:
    """Which gateway should write each partition: in turn, by name.

    >>> assigned(["b", "a"], 4)
    {0: 'a', 1: 'b', 2: 'a', 3: 'b'}
    """
    ordered = sorted(names)
    return {partition: ordered[partition % len(ordered)] for partition in range(partitions)} if ordered else {}
