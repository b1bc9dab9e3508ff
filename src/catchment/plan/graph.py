"""The dataflow graph of a program: steps and edges as frozen data, with stable ids made of the author's names.

An id is `stream/step`, with a number where a stream has several such steps: it survives edits elsewhere in the
program, so checkpoints and metrics keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from catchment.errors import InternalError, SourceLine
from catchment.program import steps
from catchment.program.program import Program
from catchment.program.reliability import Reliability
from catchment.program.site import Site
from catchment.program.stream import Declared
from catchment.program.sync import Sync
from catchment.program.types import Schema

Port: TypeAlias = tuple[str, int]
"""A step's id and the number of one of its outputs."""


class Line(msgspec.Struct, frozen=True):
    """The author's line that a step was written at."""

    file: str
    line: int

    def source(self) -> SourceLine:
        """As errors name it."""
        return SourceLine(self.file, self.line)


class Vertex(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step at a site: what it reads (one edge per input port) and the schema of each of its outputs."""

    id: str
    step: steps.Step
    inputs: tuple[Port, ...]
    schemas: tuple[Schema, ...]
    site: Site
    stream: str
    line: Line
    sync: tuple[Sync, ...] = ()
    """Policies for the next crossing downstream."""
    arriving: Sync | None = None
    """The policy for this step's own inputs that come from another site."""
    reliability: Reliability | None = None


class Graph(msgspec.Struct, frozen=True):
    """All vertices in an order in which each stands after its inputs, feedback aside.

    `loops` are the feedback edges: from a port back to the id of a `Feedback` step. `streams` says which port a stream
    that the author named comes from; a rewrite that leaves no such port takes the name out. `results` are the streams
    that no step reads: with sinks and deliveries, they are what the program is for, and no rewrite changes them.
    """

    program: str
    vertices: tuple[Vertex, ...]
    loops: tuple[tuple[Port, str], ...] = ()
    streams: tuple[tuple[str, Port], ...] = ()
    results: tuple[str, ...] = ()

    def vertex(self, name: str) -> Vertex:
        """The vertex of that id."""
        for vertex in self.vertices:
            if vertex.id == name:
                return vertex
        raise InternalError(
            "I300", f"{name} is not in the graph", why="an edge names a step that is gone", fix="report this as a bug"
        )

    def consumers(self, name: str) -> Iterator[tuple[Vertex, int]]:
        """Vertices that read an output of this one, with the input port they read it at."""
        for vertex in self.vertices:
            for port, (source, _) in enumerate(vertex.inputs):
                if source == name:
                    yield vertex, port

    def replace(self, changed: Iterable[Vertex], removed: Iterable[str] = ()) -> Graph:
        """The graph with vertices changed (by id) or removed."""
        new = {vertex.id: vertex for vertex in changed}
        gone = set(removed)
        kept = tuple(new.get(v.id, v) for v in self.vertices if v.id not in gone)
        return msgspec.structs.replace(self, vertices=kept)


def graph_of(program: Program) -> Graph:
    """The graph of a program: every step that its author made, whether or not anything reads it."""
    ids: dict[int, str] = {}
    used: dict[str, int] = {}
    vertices: dict[str, Vertex] = {}
    promised = {
        id(program.streams[name].declared): promise
        for name, promise in program.reliability.items()
        if name in program.streams
    }

    def visit(declared: Declared) -> str:
        known = ids.get(id(declared))
        if known is not None:
            return known
        inputs = tuple((visit(upstream), port) for upstream, port in declared.inputs)
        # A step outside any stream function belongs to, and runs with, what it reads first.
        first = vertices[inputs[0][0]] if inputs else None
        stream = declared.stream or (first.stream if first is not None else program.name)
        site = declared.site if declared.site is not None else (first.site if first is not None else Site.CLOUD)
        name = f"{stream}/{type(declared.step).__name__.lower()}"
        used[name] = used.get(name, 0) + 1
        name = ids[id(declared)] = name if used[name] == 1 else f"{name}.{used[name]}"
        vertices[name] = Vertex(
            id=name,
            step=declared.step,
            inputs=inputs,
            schemas=declared.schemas,
            site=site,
            stream=stream,
            line=Line(declared.at.file, declared.at.line),
            sync=tuple(declared.policies),
            reliability=promised.get(id(declared)),
        )
        return name

    streams = tuple((name, (visit(stream.declared), stream.port)) for name, stream in program.streams.items())
    for declared in (*program.outputs, *program.made.steps):
        visit(declared)
    loops = tuple(
        ((visit(end.declared), end.port), visit(start)) for start, end in program.loops.values() if end is not None
    )
    read = {source for vertex in vertices.values() for source in vertex.inputs}
    results = tuple(name for name, port in streams if port not in read)
    graph = Graph(program.name, tuple(vertices.values()), loops, streams, results)
    return graph.replace(_policies(graph, program.policies))


def _policies(graph: Graph, said: dict[str, Sync]) -> Iterator[Vertex]:
    """A stream's policy is for the inputs that it has from another site, and else for its result."""
    site = {vertex.id: vertex.site for vertex in graph.vertices}
    result = {name: port[0] for name, port in graph.streams}
    for name, policy in said.items():
        own = [vertex for vertex in graph.vertices if vertex.stream == name]
        fed = [v for v in own if any(site[upstream] != v.site for upstream, _ in v.inputs)]
        for vertex in fed:
            yield msgspec.structs.replace(vertex, arriving=policy)
        if not fed:
            last = graph.vertex(result[name])
            yield msgspec.structs.replace(last, sync=(*last.sync, policy))
