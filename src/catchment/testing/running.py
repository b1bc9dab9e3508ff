"""Run a program, or one step, on an engine with a history; what it gave is there to be looked at afterwards.

>>> from catchment.program.record import Field, Record, event_time, key
>>> from catchment.program.types import Instant
>>> from catchment.testing.alone import alone
>>> class Fix(Record):
...     user: Field[str] = key(stamp="user")
...     at: Field[Instant] = event_time()
...     speed_mps: Field[float]
>>> fast = alone(lambda fixes: fixes.where(Fix.speed_mps > 20), fixes=Fix)
>>> run(fast, [Fix(user="ada", at=Instant(1), speed_mps=12.0), Fix(user="ada", at=Instant(2), speed_mps=31.0)])["alone"]
[{'user': 'ada', 'at': 2, 'speed_mps': 31.0}]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from catchment.errors import ProgramError, author_line
from catchment.plan.graph import Graph, Port, graph_of
from catchment.plan.history import Entry, Failure, Outcome, Result
from catchment.program import steps
from catchment.program.program import Program
from catchment.program.record import Record
from catchment.program.types import Schema
from catchment.testing.engines import Restart, begin, feed
from catchment.testing.history import History
from catchment.testing.readings import Reading

R = TypeVar("R", bound=Record)


def run(
    program: Program | Graph,
    history: History | Iterable[Entry | Restart] | Iterable[Reading],
    *,
    engine: str = "reference",
) -> Ran:
    """Run it. Instead of a history, readings alone: they are sent one after the other, and then all sources end."""
    graph = program if isinstance(program, Graph) else graph_of(program)
    running = begin(engine, graph)
    entries: list[Any] = list(history)
    if not isinstance(history, History) and entries and not isinstance(entries[0], Entry | Restart):
        entries = list(History(graph).send(*entries).end())
    feed(running, entries)
    return Ran(graph, running.outcome(None))


class Ran:
    """What a run gave: by the name of a stream, of a sink or of a delivery (or by a step's id), as mappings."""

    def __init__(self, graph: Graph, outcome: Outcome) -> None:
        self.graph = graph
        self.outcome = outcome

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        return self._mappings(port_of(self.graph, name))

    def records(self, name: str, record: type[R]) -> list[R]:
        """The elements of a stream as records of that class."""
        return [record.of(result.row) for result in self.results(name)]

    def results(self, name: str) -> tuple[Result, ...]:
        """The elements of a stream with their numbers, times and sources."""
        return self.outcome.results[port_of(self.graph, name)]

    def late(self, name: str, side: int = 0) -> list[dict[str, Any]]:
        """The elements that came too late for the step that makes a stream; of a pair, of its left (0) or right (1)."""
        return self._mappings(late_port_of(self.graph, name, side))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What was quarantined."""
        return self.outcome.failures

    def _mappings(self, port: Port) -> list[dict[str, Any]]:
        names = schema_of(self.graph, port).names
        return [dict(zip(names, result.row, strict=True)) for result in self.outcome.results[port]]


def schema_of(graph: Graph, port: Port) -> Schema:
    """The schema of a port."""
    return graph.vertex(port[0]).schemas[port[1]]


def port_of(graph: Graph, name: str) -> Port:
    """The port that a name stands for: a stream, a step, or what was delivered or sunk of it."""
    for stream, port in graph.streams:
        if stream == name:
            return port
    for vertex in graph.vertices:
        if name == vertex.id or (name == vertex.stream and isinstance(vertex.step, steps.Deliver | steps.Sink)):
            return vertex.id, 0
    known = dict.fromkeys([*(stream for stream, _ in graph.streams), *(vertex.stream for vertex in graph.vertices)])
    raise ProgramError(
        "T710",
        f"there is no stream {name!r} to look at",
        why=f"the program has: {', '.join(known)}",
        fix="name one of them, or the id of a step",
        at=author_line(),
    )


def late_port_of(graph: Graph, name: str, side: int = 0) -> Port:
    """The late port of the step that makes the stream of that name."""
    port = port_of(graph, name)
    vertex = graph.vertex(port[0])
    while len(vertex.inputs) == 1 and not isinstance(vertex.step, steps.LATE_PORTS):
        vertex = graph.vertex(vertex.inputs[0][0])
    if steps.LATE + side < len(vertex.schemas):
        return vertex.id, steps.LATE + side
    raise ProgramError(
        "T711",
        f"{name} has no late elements",
        why="only steps that wait for progress can be too late: windows, joins, state and process",
        fix="ask for the late elements of a stream that such a step makes",
        at=author_line(),
    )
