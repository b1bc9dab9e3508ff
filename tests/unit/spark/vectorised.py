"""The vectorised engine as tests run engines: fed entry by entry, in batches cut at random, restored at each cut."""

from __future__ import annotations

import random
from collections.abc import Collection

import msgspec

from catchment.engines.spark.events import PRESENCE, PROGRESS, TICK
from catchment.engines.spark.rows import Rows
from catchment.engines.spark.vector.engine import VectorEngine
from catchment.engines.spark.vector.flow import Flow, kinds_of
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Element, Entry, Failure, Outcome, Presence, Progress, Result, Source, Tick
from catchment.program import steps

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
        results, failed = self.engine.run(self._flows())
        self._fed.clear()
        for name, rows in results.items():
            into = self._results[self._ports[name]]
            into += [Result(len(into) + n, at, Source(d, o), row) for n, (at, d, o, row) in enumerate(rows)]
        self._failures += [Failure(*each) for each in failed]
        saved = msgspec.msgpack.encode(self.engine.snapshot())
        self.engine = VectorEngine(self.graph, self._ports)
        self.engine.restore(msgspec.msgpack.decode(saved))

    def _flows(self) -> dict[str, Flow]:
        flows = {}
        for vertex in self.graph.vertices:
            if not isinstance(vertex.step, steps.SOURCES):
                continue
            elements, places, controls = [], [], []
            for place, entry in enumerate(self._fed):
                match entry:
                    case Element(step, at, source, row) if step == vertex.id:
                        elements.append((at, source, row))
                        places.append(place)
                    case Progress(step, source, at) if step == vertex.id:
                        controls.append((place, PROGRESS, *source, at))
                    case Presence(source, since):
                        controls.append((place, PRESENCE, *source, since))
                    case Tick(now):
                        controls.append((place, TICK, now))
            rows = Rows.of(elements, kinds_of(vertex.schemas[0]))
            rows.place = rows.place + places if places else rows.place
            rows.place[:] = places
            flows[vertex.id] = Flow(rows, controls)
        return flows
