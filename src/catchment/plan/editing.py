"""Changing a graph: vertices put in, replaced and taken out, and what read an old port led to a new one.

Promises that each vertex still stands after those that it reads, in an order as near as can be to the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from catchment.plan.graph import Graph, Port, Vertex
from catchment.program import steps


def edited(
    graph: Graph,
    *,
    put: Iterable[Vertex] = (),
    out: Iterable[str] = (),
    lead: Mapping[Port, Port] | None = None,
    unname: Iterable[Port] = (),
) -> Graph:
    """The graph with vertices put in (in the place of those of the same id) and taken out.

    Whatever read a port that `lead` knows, outside of what is put in, reads what it leads to. Names of the ports in
    `unname` go, for what these give is no longer what their authors named.
    """
    led = dict(lead or {})
    new = {vertex.id: vertex for vertex in put}
    gone = set(out)
    lost = set(unname)

    def follow(port: Port) -> Port:
        return led.get(port, port)

    kept = []
    for vertex in graph.vertices:
        if vertex.id in gone:
            continue
        if vertex.id in new:
            kept.append(new.pop(vertex.id))
        else:
            kept.append(msgspec.structs.replace(vertex, inputs=tuple(follow(port) for port in vertex.inputs)))
    return msgspec.structs.replace(
        graph,
        vertices=ordered([*kept, *new.values()]),
        loops=tuple((follow(port), start) for port, start in graph.loops),
        streams=tuple((name, follow(port)) for name, port in graph.streams if port not in lost),
    )


def ordered(vertices: Iterable[Vertex]) -> tuple[Vertex, ...]:
    """The vertices with each after those that it reads."""
    known = {vertex.id: vertex for vertex in vertices}
    found: dict[str, Vertex] = {}

    def visit(vertex: Vertex) -> None:
        if vertex.id not in found:
            for name, _ in vertex.inputs:
                visit(known[name])
            found[vertex.id] = vertex

    for vertex in known.values():
        visit(vertex)
    return tuple(found.values())


def flowing(graph: Graph) -> Graph:
    """The graph with the fields that reach each step following from those that are made above it."""
    known: dict[str, Vertex] = {}
    for vertex in graph.vertices:
        sides = tuple(known[name].schemas[port] for name, port in vertex.inputs)
        match vertex.step:
            case _ if isinstance(vertex.step, steps.SOURCES):
                schemas = vertex.schemas
            case _ if isinstance(vertex.step, steps.LATE_PORTS):
                schemas = (vertex.schemas[0], *sides)
            case steps.Select() | steps.Map():
                schemas = vertex.schemas
            case _:
                schemas = sides[:1]
        known[vertex.id] = msgspec.structs.replace(vertex, schemas=schemas)
    return msgspec.structs.replace(graph, vertices=tuple(known.values()))
