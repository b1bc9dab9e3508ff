"""A whole history through the edge engine: virtual time, for tests and transcripts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from catchment.engines.edge.engine import EdgeEngine
from catchment.engines.edge.wiring import Edge
from catchment.plan.graph import Graph
from catchment.plan.history import Element, Entry, Failure, Outcome, Presence, Progress, Result, Source, Tick
from catchment.program.row_error import RowError
from catchment.program.types import Row


def run(graph: Graph, history: Iterable[Entry], ports: Iterable[Edge] | None = None) -> Outcome:
    """What the ports give (every port of every vertex, if not told) and what is quarantined.

    Failures come in the order of the definition: by entry, then by the order of the graph.
    """
    wanted = [(v.id, port) for v in graph.vertices for port in range(len(v.schemas))] if ports is None else [*ports]
    results: dict[Edge, list[Result]] = {edge: [] for edge in wanted}
    failures: list[Failure] = []
    order = {vertex.id: number for number, vertex in enumerate(graph.vertices)}
    failed: list[tuple[int, Failure]] = []

    def take(edge: Edge, number: int, at: int, source: Source, row: Row) -> None:
        results[edge].append(Result(number, at, source, row))

    def fail(step: str, error: RowError, row: Row) -> None:
        failed.append((order[step], Failure(step, error.reason, row)))

    engine = EdgeEngine(graph, on_failure=fail)
    for edge in wanted:
        engine.on_output(edge, partial(take, edge))
    for entry in history:
        feed(engine, entry)
        # Depth first is not the order of the definition where two steps fail on one entry.
        failures += [failure for _, failure in sorted(failed, key=lambda each: each[0])]
        failed.clear()
    return Outcome({edge: tuple(found) for edge, found in results.items()}, tuple(failures))


def feed(engine: EdgeEngine, entry: Entry) -> None:
    """One entry of a history."""
    match entry:
        case Element(step, at, source, row):
            engine.element(step, at, source, row)
        case Progress(step, source, at):
            engine.progress(step, source, at)
        case Presence(source, since):
            engine.presence(source, since)
        case Tick(now):
            engine.tick(now)
