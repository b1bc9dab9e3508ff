"""Progress: the least promise of each stream's sources, as entries are logged, and the ticks that tell it.

A promise only rises, so the least of many is kept in a heap whose top is looked at again before it is believed: a new
entry costs nothing, a tick costs what has changed at the top. Two figures per stream: over all its sources, and over
those that are there, because a window may be told not to wait for devices that are away.
No I/O, no clock: instants are arguments.
"""

from __future__ import annotations

import heapq

from catchment.gateway.log.entry import NO_INSTANT, Entry, Kind, Online, Reached, tick
from catchment.gateway.log.marks import Marks


class _Least:
    """The least promise of a set of devices on one stream."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._in: set[str] = set()

    def add(self, device: str, promise_us: int) -> None:
        if device not in self._in:
            self._in.add(device)
            heapq.heappush(self._heap, (promise_us, device))

    def now(self, marks: Marks, stream: str, *, online: bool) -> int | None:
        heap = self._heap
        while heap:
            noted_us, device = heap[0]
            mark = marks.devices.get(device)
            if mark is None or stream not in mark.streams or (online and not mark.online):
                heapq.heappop(heap)
                self._in.discard(device)
                continue
            promise_us = mark.streams[stream].promise_us
            if promise_us == noted_us:
                return noted_us
            heapq.heapreplace(heap, (promise_us, device))
        return None


class Progress:
    """Follows the marks of one partition."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._all: dict[str, _Least] = {}
        self._online: dict[str, _Least] = {}
        for device, mark in marks.devices.items():
            for stream, stream_mark in mark.streams.items():
                self._add(device, stream, stream_mark.promise_us, mark.online)

    def apply(self, entry: Entry) -> None:
        """Take an entry into account that the marks have just taken into account."""
        mark = self._marks.devices.get(entry.device)
        if mark is None:
            return
        if entry.kind in (Kind.DATA, Kind.PROMISE):
            self._add(entry.device, entry.stream, mark.streams[entry.stream].promise_us, mark.online)
        elif entry.kind == Kind.PRESENCE and entry.count == Online.ONLINE:
            for stream, stream_mark in mark.streams.items():
                self._add(entry.device, stream, stream_mark.promise_us, True)

    def reached(self) -> dict[str, Reached]:
        """Per stream, how far its sources have promised; where none is there, they count as far as all have."""
        found: dict[str, Reached] = {}
        for stream, least in self._all.items():
            everyone = least.now(self._marks, stream, online=False)
            if everyone is None:
                continue
            there = self._online[stream].now(self._marks, stream, online=True)
            found[stream] = Reached(everyone, everyone if there is None else there)
        return found

    def _add(self, device: str, stream: str, promise_us: int, online: bool) -> None:
        if stream not in self._all:
            self._all[stream], self._online[stream] = _Least(), _Least()
        self._all[stream].add(device, promise_us)
        if online:
            self._online[stream].add(device, promise_us)


class Ticker:
    """When to tick: every `every_us` while a window may be open, which is until `horizon_us` after the last data."""

    def __init__(self, marks: Marks, *, every_us: int, horizon_us: int) -> None:
        self.progress = Progress(marks)
        self._marks = marks
        self._every_us = every_us
        self._horizon_us = horizon_us

    def due_us(self) -> int | None:
        """When the next tick is due; None while there is nothing that it could close."""
        data_us, tick_us = self._marks.data_us, self._marks.tick_us
        if data_us == NO_INSTANT or tick_us >= data_us + self._horizon_us:
            return None
        return (data_us if tick_us == NO_INSTANT else tick_us) + self._every_us

    def tick(self, *, now_us: int) -> Entry | None:
        """The tick, if one is due."""
        due_us = self.due_us()
        if due_us is None or now_us < due_us:
            return None
        return tick(now=now_us, reached=self.progress.reached())
