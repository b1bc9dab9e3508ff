"""Histories for tests: what devices send, promise and leave unsaid, on a clock that moves only when it is told to.

Readings are given as records or as mappings. A source is punctual unless told otherwise: with each reading it promises
the reading's own time, as a device does that sends at once. Time passes only where the test says so (`quiet`, `tick`,
`jump`): without a tick, nothing is idle and nobody is away for long.

>>> from catchment.program.record import Field, Record, event_time, key
>>> from catchment.testing.alone import alone
>>> class Fix(Record):
...     user: Field[str] = key(stamp="user")
...     at: Field[Instant] = event_time()
>>> history = History(alone(lambda fixes: fixes, fixes=Fix))
>>> _ = history.send({"user": "ada", "at": 5}).quiet(Duration(60))
>>> for entry in history:
...     print(entry)
Element(step='fixes/append', at=5, source=Source(device='ada-1', owner='ada'), row=('ada', 5))
Progress(step='fixes/append', source=Source(device='ada-1', owner='ada'), at=5)
Tick(now=5)
Tick(now=65)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from catchment.errors import ProgramError, author_line
from catchment.plan.graph import Graph, Vertex, graph_of
from catchment.plan.history import Element, Entry, Presence, Progress, Source, Tick
from catchment.program import steps
from catchment.program.program import Program
from catchment.program.types import Duration, Instant, Row
from catchment.testing.engines import RESTART, Restart
from catchment.testing.readings import Reading, row_of

END = Instant(253_402_300_799_999_999)
"""The last microsecond of the year 9999: who has promised it has nothing more to say."""


class History:
    """A history under construction, for one program. Iterating it gives its entries so far.

    A source step is named by its stream, its record or its id; it need not be named where there is only one. A device
    is called `ada-1` if the reading says that its user is ada, and `device-1` if it says nothing.
    """

    def __init__(self, program: Program | Graph) -> None:
        self.graph = program if isinstance(program, Graph) else graph_of(program)
        self.now = Instant(0)
        self._entries: list[Entry | Restart] = []
        self._owners: dict[str, str | None] = {}
        self._sent_to: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Entry | Restart]:
        return iter(self._entries)

    def send(
        self,
        *readings: Reading,
        to: str | None = None,
        device: str | None = None,
        owner: str | None = None,
        promise: bool = True,
    ) -> Self:
        """Readings arrive; with each, its source promises that nothing older is still to come."""
        vertex = self.source_step(to)
        for reading in readings:
            row = row_of(vertex.schemas[0], reading)
            source = self._source(vertex, row, device, owner)
            at = self._time(vertex, row)
            self._entries.append(Element(vertex.id, at, source, row))
            if promise:
                self._entries.append(Progress(vertex.id, source, at))
                self.now = max(self.now, at)
            sent_to = self._sent_to.setdefault(source.device, [])
            sent_to.extend([] if vertex.id in sent_to else [vertex.id])
        return self

    def late(self, *readings: Reading, to: str | None = None, device: str | None = None) -> Self:
        """Readings arrive from a source that has nothing new to promise: they may be older than what it sent before."""
        return self.send(*readings, to=to, device=device, promise=False)

    def promise(
        self, at: Instant | int, *, device: str | None = None, to: str | None = None, owner: str | None = None
    ) -> Self:
        """A device promises that nothing older than that is still to come, on one source step or on all it sends to.

        Without a device, every device that has sent something promises.
        """
        if owner is not None and device is not None:
            self._owners[device] = owner
        for name in [device] if device is not None else list(self._sent_to):
            known = self._sent_to.get(name, [v.id for v in self._source_steps()])
            for step in [self.source_step(to).id] if to is not None else known:
                self._entries.append(Progress(step, self._known(name), at))
        return self

    def end(self, *devices: str) -> Self:
        """Devices, or all of them, have nothing more to say: they promise all that is to come."""
        for device in devices or list(self._sent_to):
            self.promise(END, device=device)
        return self

    def quiet(self, duration: Duration | int) -> Self:
        """Nothing is heard for so long, while the clock goes on."""
        self.tick(self.now)
        return self.tick(Instant(self.now + duration))

    def tick(self, now: Instant | int) -> Self:
        """The clock reads that."""
        self.now = Instant(now)
        self._entries.append(Tick(now))
        return self

    def jump(self, by: Duration | int) -> Self:
        """The clock jumps, forward or back."""
        return self.tick(self.now + by)

    def offline(self, device: str, *, owner: str | None = None) -> Self:
        """The device goes away; what it has promised so far stands."""
        self._owners.setdefault(device, owner)
        self._entries.append(Presence(self._known(device), self.now))
        return self

    def online(self, device: str, *, owner: str | None = None) -> Self:
        """The device is there (again)."""
        self._owners.setdefault(device, owner)
        self._entries.append(Presence(self._known(device), None))
        return self

    def restart(self) -> Self:
        """The engine is stopped here, and a fresh one goes on from its snapshot."""
        self._entries.append(RESTART)
        return self

    def _source_steps(self) -> list[Vertex]:
        return [v for v in self.graph.vertices if isinstance(v.step, steps.SOURCES) and _is_outside(v)]

    def source_step(self, name: str | None = None) -> Vertex:
        """The source step that a name stands for, or the only one."""
        known = self._source_steps()
        found = [v for v in known if name is None or name in (v.id, v.stream, v.schemas[0].name)]
        if len(found) == 1:
            return found[0]
        raise ProgramError(
            "T701",
            f"{name or 'a reading'} {'could go to several sources' if found else 'goes to no source of the program'}",
            why=f"the program's sources are: {', '.join(v.id for v in found or known) or 'none'}",
            fix="name the source step: to=" + repr((found or known)[0].id if known else "stream"),
            at=author_line(),
        )

    def _source(self, vertex: Vertex, row: Row, device: str | None, owner: str | None) -> Source:
        stamped = {c.stamp: row[i] for i, c in enumerate(vertex.schemas[0].fields) if c.stamp is not None}
        user = owner or stamped.get("user") or self._owners.get(device or "")
        name = device or stamped.get("device") or (f"{user}-1" if user is not None else "device-1")
        self._owners[name] = user if user is not None else self._owners.get(name)
        return self._known(name)

    def _known(self, device: str) -> Source:
        return Source(device, self._owners.get(device))

    def _time(self, vertex: Vertex, row: Row) -> Instant:
        name = vertex.schemas[0].event_time
        return Instant(row[vertex.schemas[0].position(name)]) if name is not None else self.now


def _is_outside(vertex: Vertex) -> bool:
    """Whether readings come to it from outside: what feeds back comes from the program itself."""
    return not isinstance(vertex.step, steps.Feedback)
