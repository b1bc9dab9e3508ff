"""The device parts of a plan, running: what enters at their source steps, and what they give to sync streams.

Promises: what was given is there to be taken with `given`, in order, each with the moment that it happened at; the same
entries give the same, so that a restored copy which is fed them again stands where this one stands. Knows plans and the
edge engine. Must not know clocks, sensors, outboxes or the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from catchment.engines.edge import EdgeEngine
from catchment.plan.graph import Vertex
from catchment.plan.history import Failure, Source
from catchment.plan.physical import Plan, SyncStream
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.sampling import INFERRED
from catchment.program.site import DEVICE
from catchment.program.types import Row, Schema
from catchment.sync.codecs.packed import pack_row, unpack_row

FAILURES_KEPT = 100


class Given(NamedTuple):
    """An element for a sync stream."""

    at_us: int
    row: Row


class Element(msgspec.Struct, array_like=True, tag_field="kind", tag="e"):
    """An element at a source step."""

    step: str
    at_us: int
    row: bytes


class Progress(msgspec.Struct, array_like=True, tag_field="kind", tag="p"):
    """A promise at a source step."""

    step: str
    at_us: int


class Tick(msgspec.Struct, array_like=True, tag_field="kind", tag="t"):
    """The device's own clock."""

    now_us: int


Entry: TypeAlias = Element | Progress | Tick


class Failures(NamedTuple):
    """What was quarantined: how many elements in all, and the latest of them."""

    total: int
    latest: tuple[Failure, ...]


class Parts:
    """See the module. What enters is noted until `forget_entries`."""

    def __init__(self, plan: Plan, source: Source) -> None:
        self.plan = plan
        self.source = source
        self.up: dict[str, SyncStream] = {}
        """The streams that these parts feed."""
        self.down: dict[str, SyncStream] = {}
        """The streams that feed these parts."""
        self.waits = False
        """Whether a step waits for time to pass, so that ticks mean something."""
        self._engines: dict[str, EdgeEngine] = {}
        self._engine_of: dict[str, EdgeEngine] = {}
        self._vertices: dict[str, Vertex] = {}
        self._entries: list[tuple[str, int, Row] | Entry] = []
        self._given: dict[str, list[Given]] = {}
        self._promised: dict[str, int] = {}
        self._told: dict[str, bool | float] = {}
        self._failed = 0
        self._failures: list[Failure] = []
        for part in plan.at(DEVICE):
            engine = self._engines[part.name] = EdgeEngine(plan.graph(part), on_failure=self._fail)
            outputs: dict[tuple[str, int], list[str]] = {}
            for name in part.outputs:
                stream = self.up[name] = plan.sync(name)
                outputs.setdefault(stream.source, []).append(name)
            for port, names in outputs.items():
                engine.on_output(port, partial(self._take, names), progress=partial(self._promise, names))
            self.down.update({name: plan.sync(name) for name in part.inputs})
            for vertex in part.vertices:
                self._vertices[vertex.id] = vertex
                self._engine_of[vertex.id] = engine
                self.waits = self.waits or isinstance(vertex.step, steps.LATE_PORTS)
                if isinstance(vertex.step, steps.Sink) and vertex.step.connector == steps.SURROUNDINGS:
                    schema = vertex.schemas[0]
                    places = {name: schema.position(name) for name in INFERRED if name in schema.names}
                    engine.on_output((vertex.id, 0), partial(self._tell, places))

    # -- what there is -------------------------------------------------------------------------------------------

    def sources(self) -> dict[str, steps.Step]:
        """The steps that draw from sensors, timers and programs outside."""
        return {name: self._vertices[name].step for part in self.plan.at(DEVICE) for name in part.sources}

    def schema(self, step: str) -> Schema:
        """What enters at a source step."""
        return self._vertices[step].schemas[0]

    def reach(self, step: str) -> frozenset[str]:
        """The streams that what enters there may come out at."""
        reached = {step}
        for part in self.plan.at(DEVICE):
            for vertex in part.vertices:
                if any(name in reached for name, _ in vertex.inputs):
                    reached.add(vertex.id)
        return frozenset(name for name, stream in self.up.items() if stream.source[0] in reached)

    # -- what enters ---------------------------------------------------------------------------------------------

    def element(self, step: str, at_us: int, row: Row) -> None:
        """An element enters at a source step."""
        self._entries.append((step, at_us, row))
        self._engine_of[step].element(step, at_us, self.source, row)

    def progress(self, step: str, at_us: int) -> None:
        """Nothing older will enter at that step."""
        if self.waits:
            self._entries.append(Progress(step, at_us))
        self._engine_of[step].progress(step, self.source, at_us)

    def tick(self, now_us: int) -> None:
        """The device's clock says so."""
        self._entries.append(Tick(now_us))
        for engine in self._engines.values():
            engine.tick(now_us)

    # -- what comes of it ----------------------------------------------------------------------------------------

    def given(self) -> dict[str, list[Given]]:
        """What was given since this was last asked, by stream."""
        given, self._given = self._given, {}
        return given

    def promised(self) -> dict[str, int]:
        """The promises that rose since this was last asked, by stream."""
        promised, self._promised = self._promised, {}
        return promised

    def told(self) -> dict[str, bool | float]:
        """What the program said of the device's surroundings since this was last asked."""
        told, self._told = self._told, {}
        return told

    def failures(self) -> Failures:
        """What was quarantined since this was last asked."""
        failed = Failures(self._failed, tuple(self._failures))
        self._failed, self._failures = 0, []
        return failed

    # -- what is remembered --------------------------------------------------------------------------------------

    def entries(self) -> bytes:
        """What entered and was not forgotten yet."""
        return _ENTRIES.encode([self._noted(entry) for entry in self._entries])

    def forget_entries(self) -> None:
        """What entered until now is stored, one way or the other."""
        self._entries = []

    def replay(self, entries: bytes) -> None:
        """Let the same enter again, whose outcome is stored already."""
        for entry in _ENTRIES_OF.decode(entries):
            match entry:
                case Element(step, at_us, packed):
                    row = unpack_row(self.schema(step), packed)
                    self._engine_of[step].element(step, at_us, self.source, row)
                case Progress(step, at_us):
                    self._engine_of[step].progress(step, self.source, at_us)
                case Tick(now_us):
                    for engine in self._engines.values():
                        engine.tick(now_us)
        self.given()
        self.promised()
        self.told()
        self.failures()

    def snapshot(self) -> dict[str, Any]:
        """All that the parts remember."""
        return {name: engine.snapshot() for name, engine in self._engines.items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Remember exactly that."""
        for name, engine in self._engines.items():
            engine.restore(snapshot[name])

    def inherit(self, former: Parts) -> list[str]:
        """Take over what the steps of another plan remember, where they are the same; returns those that begin anew."""
        states: dict[str, Any] = {}
        contexts: dict[str, Any] = {}
        for kept in former.snapshot().values():
            states |= kept["states"]
            contexts |= kept["time_context"]
        anew: list[str] = []
        for engine in self._engines.values():
            fresh = engine.snapshot()
            for name in fresh["states"]:
                if self._same(former, name):
                    fresh["states"][name], fresh["time_context"][name] = states[name], contexts[name]
                elif fresh["states"][name]:
                    anew.append(name)
            engine.restore(fresh)
        return anew

    def _same(self, former: Parts, name: str) -> bool:
        there = former._vertices.get(name)
        return there is not None and _meaning(there) == _meaning(self._vertices[name])

    def _noted(self, entry: tuple[str, int, Row] | Entry) -> Entry:
        if isinstance(entry, tuple):
            step, at_us, row = entry
            return Element(step, at_us, pack_row(self.schema(step), row))
        return entry

    def _take(self, streams: Iterable[str], number: int, at: int, source: Source, row: Row) -> None:
        for stream in streams:
            self._given.setdefault(stream, []).append(Given(at, row))

    def _promise(self, streams: Iterable[str], source: Source, at: int) -> None:
        for stream in streams:
            self._promised[stream] = max(at, self._promised.get(stream, at))

    def _tell(self, places: dict[str, int], number: int, at: int, source: Source, row: Row) -> None:
        self._told.update({name: row[place] for name, place in places.items() if row[place] is not None})

    def _fail(self, step: str, error: RowError, row: Row) -> None:
        self._failed += 1
        if len(self._failures) < FAILURES_KEPT:
            self._failures.append(Failure(step, str(error), row))


def _meaning(vertex: Vertex) -> tuple[object, ...]:
    """What a step does, whichever line it was written at."""
    return vertex.step, vertex.inputs, vertex.schemas


_ENTRIES = msgspec.msgpack.Encoder()
_ENTRIES_OF = msgspec.msgpack.Decoder(list[Entry])
