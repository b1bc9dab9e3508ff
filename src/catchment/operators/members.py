"""The known sources of a group, arranged so that the least promise of those in one state is at hand.

Promises only rise, so an entry of a heap may be too low and never too high: it is corrected when it comes to the top.
A source has at most one entry in each heap, so a heap is no larger than its group.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import Any, TypeAlias

from catchment.plan.history import Source

Group: TypeAlias = Any
"""The value of the key's stamped field that a group of sources has in common; None where there is one group."""

NEVER = -(1 << 100)
"""Before every instant: the promise of a source that made none, and the watermark of a group of which too little is
known."""

BUSY, QUIET, AWAY = 0, 1, 2


class Member:
    """A known source at a port."""

    __slots__ = ("group", "heard", "number", "promise", "seats", "source", "state")

    def __init__(self, source: Source, group: Sources, number: int) -> None:
        self.source = source
        self.group = group
        self.number = number
        self.promise = NEVER
        self.heard: int | None = None
        self.state = BUSY
        self.seats = 0  # in which of the heaps it has an entry, as bits


_Heap: TypeAlias = list[tuple[int, int, Member]]


class Side:
    """A group's sources at one port: a heap for each state that they may be in."""

    __slots__ = ("heaps", "size")

    def __init__(self) -> None:
        self.heaps: tuple[_Heap, _Heap, _Heap] = ([], [], [])
        self.size = 0

    def seat(self, member: Member) -> None:
        """Let the member be found among those in its state."""
        bit = 1 << member.state
        if not member.seats & bit:
            member.seats |= bit
            heappush(self.heaps[member.state], (member.promise, member.number, member))

    def least(self, state: int) -> int | None:
        """The least promise of those in that state."""
        heap = self.heaps[state]
        while heap:
            promise, number, member = heap[0]
            if member.state != state:
                heappop(heap)
                member.seats &= ~(1 << state)
            elif member.promise != promise:
                heapreplace(heap, (member.promise, number, member))
            else:
                return promise
        return None


class Sources:
    """All known sources of a group, by port."""

    __slots__ = ("floating", "name", "sides")

    def __init__(self, name: Group, ports: int) -> None:
        self.name = name
        self.sides = [Side() for _ in range(ports)]
        self.floating = 0  # how many of its sources follow the clock
