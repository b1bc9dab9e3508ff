"""A history through the edge engine, in virtual time: for tests, transcripts and replays.

`Virtual` is a graph that is fed entry by entry, and that can be stopped and gone on with from its snapshot; `run` takes
a whole history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import msgspec

from catchment.engines.edge.engine import EdgeEngine
from catchment.engines.edge.wiring import Edge
from catchment.plan.graph import Graph
from catchment.plan.history import Element, Entry, Failure, Outcome, Presence, Progress, Result, Source, Tick
from catchment.program.row_error import RowError
from catchment.program.types import Row


class Virtual:
    """A graph on the edge engine, whose every output (or those of `ports`) is kept.

    Steps whose output is kept are not fused with what follows; name the last ports only to run as a device would.
    """

    def __init__(self, graph: Graph, ports: Collection[Edge] | None = None) -> None:
        self._graph = graph
        known = [(vertex.id, port) for vertex in graph.vertices for port in range(len(vertex.schemas))]
        self._results: dict[Edge, list[Result]] = {edge: [] for edge in (known if ports is None else ports)}
        self._failures: list[Failure] = []
        self._order = {vertex.id: number for number, vertex in enumerate(graph.vertices)}
        self._failed: list[tuple[int, Failure]] = []
        self.engine = self._fresh()

    def feed(self, entry: Entry) -> None:
        """One more entry."""
        match entry:
            case Element(step, at, source, row):
                self.engine.element(step, at, source, row)
            case Progress(step, source, at):
                self.engine.progress(step, source, at)
            case Presence(source, since):
                self.engine.presence(source, since)
            case Tick(now):
                self.engine.tick(now)
        # Depth first is not the order of the definition where two steps fail on one entry.
        self._failures += [failure for _, failure in sorted(self._failed, key=lambda each: each[0])]
        self._failed.clear()

    def restart(self) -> None:
        """Go on in a fresh engine, which knows only what a snapshot of this one carries as bytes."""
        carried = msgspec.msgpack.encode(self.engine.snapshot())
        self.engine = self._fresh()
        self.engine.restore(msgspec.msgpack.decode(carried))

    def outcome(self, watch: Collection[Edge] | None = None) -> Outcome:
        """What was given so far, on these ports or on all that are kept. Failures are in the order of the graph."""
        kept = self._results if watch is None else {edge: self._results[edge] for edge in watch}
        return Outcome({edge: tuple(results) for edge, results in kept.items()}, tuple(self._failures))

    def _fresh(self) -> EdgeEngine:
        engine = EdgeEngine(self._graph, on_failure=self._fail)
        for edge in self._results:
            engine.on_output(edge, partial(self._take, self._results[edge]))
        return engine

    def _take(self, results: list[Result], number: int, at: int, source: Source, row: Row) -> None:
        results.append(Result(number, at, source, row))

    def _fail(self, step: str, error: RowError, row: Row) -> None:
        self._failed.append((self._order[step], Failure(step, error.reason, row)))


def run(graph: Graph, history: Iterable[Entry], ports: Collection[Edge] | None = None) -> Outcome:
    """What the ports give (every port of every vertex, if not told) and what is quarantined."""
    virtual = Virtual(graph, ports)
    for entry in history:
        virtual.feed(entry)
    return virtual.outcome()
