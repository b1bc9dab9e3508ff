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
    reliability: Reliability | None = None


class Graph(msgspec.Struct, frozen=True):
    """All vertices in an order in which each stands after its inputs, feedback aside.

    `loops` are the feedback edges: from a port back to the id of a `Feedback` step.
    """

    program: str
    vertices: tuple[Vertex, ...]
    loops: tuple[tuple[Port, str], ...] = ()

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
    """The graph of a program: every named stream and every output, whether or not anything reads it."""
    ids: dict[int, str] = {}
    used: dict[str, int] = {}
    vertices: list[Vertex] = []

    def visit(declared: Declared) -> str:
        known = ids.get(id(declared))
        if known is not None:
            return known
        inputs = tuple((visit(upstream), port) for upstream, port in declared.inputs)
        stream = declared.stream or program.name
        name = f"{stream}/{type(declared.step).__name__.lower()}"
        used[name] = used.get(name, 0) + 1
        ids[id(declared)] = name if used[name] == 1 else f"{name}.{used[name]}"
        site = declared.site if declared.site is not None else _site_of(inputs, vertices)
        vertices.append(
            Vertex(
                id=ids[id(declared)],
                step=declared.step,
                inputs=inputs,
                schemas=declared.schemas,
                site=site,
                stream=stream,
                line=Line(declared.at.file, declared.at.line),
                sync=tuple(declared.policies),
                reliability=_reliability(program, declared),
            )
        )
        return ids[id(declared)]

    for stream in program.streams.values():
        visit(stream.declared)
    for output in program.outputs:
        visit(output)
    loops = []
    for start, end in program.loops.values():
        if end is not None:
            loops.append(((visit(end.declared), end.port), visit(start)))
    return Graph(program.name, tuple(vertices), tuple(loops))


def _site_of(inputs: tuple[Port, ...], vertices: list[Vertex]) -> Site:
    """A step outside any stream function runs where its first input does."""
    for source, _ in inputs:
        for vertex in vertices:
            if vertex.id == source:
                return vertex.site
    return Site.CLOUD


def _reliability(program: Program, declared: Declared) -> Reliability | None:
    for name, stream in program.streams.items():
        if stream.declared is declared:
            return program.reliability.get(name)
    return None
