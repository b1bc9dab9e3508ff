"""The vectorised engine as tests run engines: fed entry by entry, in batches cut at random, restored at each cut."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from catchment.engines.spark.events import PRESENCE, PROGRESS, TICK, Arrived
from catchment.engines.spark.front import entering
from catchment.engines.spark.rows import Rows
from catchment.engines.spark.vector.engine import VectorEngine
from catchment.engines.spark.vector.flow import kinds_of
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Element, Entry, Failure, Outcome, Presence, Progress, Result, Source, Tick
from catchment.program import steps
from catchment.program.types import Row, Schema

OUTPUT = "{}|{}"


class Batches:
    """A graph on the vectorised engine. `cut` says how likely a batch ends after an entry."""

    def __init__(self, graph: Graph, cut: float = 0.2, seed: int = 0) -> None:
        self.graph = graph
        self._chance = random.Random(seed)
        self._cut = cut
        self._fed: list[Entry] = []
        ports = [(v.id, port) for v in graph.vertices for port in range(len(v.schemas))]
        self._ports = {OUTPUT.format(*port): port for port in ports}
        self._results: dict[Port, list[Result]] = {port: [] for port in ports}
        self._failures: list[Failure] = []
        self.engine = VectorEngine(graph, self._ports)

    def feed(self, entry: Entry) -> None:
        self._fed.append(entry)
        if self._chance.random() < self._cut:
            self.flush()

    def restart(self) -> None:
        self.flush()

    def outcome(self, watch: Collection[Port] | None) -> Outcome:
        self.flush()
        kept = self._results if watch is None else {port: self._results[port] for port in watch}
        return Outcome({port: tuple(found) for port, found in kept.items()}, tuple(self._failures))

    def flush(self) -> None:
        """Run what was fed as a batch, and go on in a fresh engine from its snapshot as bytes."""
        if not self._fed:
            return
        results, failed = self.engine.run(entering(arrived(self.graph, self._fed), _sources(self.graph)))
        self._fed.clear()
        for name, rows in results.items():
            into = self._results[self._ports[name]]
            into += [Result(len(into) + n, at, Source(d, o), row) for n, (at, d, o, row) in enumerate(rows)]
        self._failures += [Failure(*each) for each in failed]
        saved = msgspec.msgpack.encode(self.engine.snapshot())
        self.engine = VectorEngine(self.graph, self._ports)
        self.engine.restore(msgspec.msgpack.decode(saved))


def arrived(graph: Graph, entries: Sequence[Entry]) -> Arrived:
    """Entries as a stretch of the log, one place each."""
    found = Arrived(len(entries))
    kinds = {vertex.id: kinds_of(vertex.schemas[0]) for vertex in graph.vertices}
    elements: dict[str, list[tuple[int, Source, Row]]] = {}
    places: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        match entry:
            case Element(step, at, source, row):
                elements.setdefault(step, []).append((at, source, row))
                places.setdefault(step, []).append(place)
            case Progress(step, source, at):
                found.said.append((place, PROGRESS, step, *source, at))
            case Presence(source, since):
                found.said.append((place, PRESENCE, *source, since))
            case Tick(now):
                found.said.append((place, TICK, now))
    for step, given in elements.items():
        rows = found.rows[step] = Rows.of(given, kinds[step])
        rows.place = np.array(places[step], np.int64)
    return found


def _sources(graph: Graph) -> dict[str, Schema]:
    return {vertex.id: vertex.schemas[0] for vertex in graph.vertices if isinstance(vertex.step, steps.SOURCES)}
