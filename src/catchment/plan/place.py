"""Placement: the graph cut into parts, one for each connected set of steps of a site, and what travels between them.

Respects `at=` and nothing else: where a step runs is the author's word. What comes from another site arrives at an
`Append` step made here, so that each part is a graph of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from catchment.plan.crossing import Crossing, crossings
from catchment.plan.graph import Graph, Line, Port, Vertex
from catchment.plan.physical import FORMAT, VERSION, Part, Plan, SyncStream
from catchment.plan.references import references
from catchment.program import steps
from catchment.program.types import Schema


def place(graph: Graph) -> Plan:
    """The physical plan of a checked graph."""
    crossed = crossings(graph)
    made = tuple(_arrival(graph, crossing) for crossing in crossed)
    cut = tuple(_cut(vertex, crossed) for vertex in graph.vertices)
    loops = tuple((_reached(source, start, crossed), start) for source, start in graph.loops)
    groups = _downstream(_connected((*made, *cut), loops), crossed)
    names = _names(groups, frozenset(vertex.id for vertex in made))
    part_of = {vertex.id: name for name, group in zip(names, groups, strict=True) for vertex in group}
    syncs = tuple(
        SyncStream(
            name=crossing.name,
            direction=crossing.direction,
            from_part=part_of[crossing.source[0]],
            source=crossing.source,
            to_part=part_of[arrival.id],
            target=arrival.id,
            schema=arrival.schemas[0].fingerprint,
            policy=crossing.policy,
            deliver=crossing.deliver,
        )
        for crossing, arrival in zip(crossed, made, strict=True)
    )
    carried: dict[str, Schema] = {arrival.schemas[0].fingerprint: arrival.schemas[0] for arrival in made}
    return Plan(
        format=FORMAT,
        version=VERSION,
        program=graph.program,
        parts=tuple(_part(name, group, loops, syncs) for name, group in zip(names, groups, strict=True)),
        syncs=syncs,
        streams=dict(graph.streams),
        schemas={name: carried[name] for name in sorted(carried)},
    )


def _arrival(graph: Graph, crossing: Crossing) -> Vertex:
    start = graph.vertex(crossing.source[0])
    schema = start.schemas[crossing.source[1]]
    return Vertex(
        id=f"{crossing.name}/sync",
        step=steps.Append(schema),
        inputs=(),
        schemas=(schema,),
        site=crossing.to_site,
        stream=start.stream,
        line=_portable(graph.vertex(crossing.targets[0]).line),
    )


def _reached(source: Port, target: str, crossed: Sequence[Crossing]) -> Port:
    """Where an edge comes from within the part that it ends in."""
    for crossing in crossed:
        if crossing.source == source and target in crossing.targets:
            return f"{crossing.name}/sync", 0
    return source


def _cut(vertex: Vertex, crossed: Sequence[Crossing]) -> Vertex:
    return msgspec.structs.replace(
        vertex,
        inputs=tuple(_reached(source, vertex.id, crossed) for source in vertex.inputs),
        line=_portable(vertex.line),
        sync=(),
        arriving=None,
    )


def _portable(line: Line) -> Line:
    """Without the folders of the machine that built the plan: the same program gives the same plan everywhere."""
    return Line(PurePath(line.file).name, line.line)


def _connected(vertices: Sequence[Vertex], loops: Sequence[tuple[Port, str]]) -> list[list[Vertex]]:
    """The vertices in groups that are joined by edges, in the order of the graph."""
    group: dict[str, list[Vertex]] = {vertex.id: [vertex] for vertex in vertices}
    joined = [(source, vertex.id) for vertex in vertices for source, _ in vertex.inputs]
    for one, other in (*joined, *((source, start) for (source, _), start in loops)):
        if group[one] is not group[other]:
            group[one].extend(group[other])
            for vertex in group[other]:
                group[vertex.id] = group[one]
    place = {vertex.id: number for number, vertex in enumerate(vertices)}
    distinct = {id(members): members for members in group.values()}
    return [sorted(members, key=lambda vertex: place[vertex.id]) for members in distinct.values()]


def _downstream(groups: Sequence[list[Vertex]], crossed: Sequence[Crossing]) -> list[list[Vertex]]:
    """The groups with each after those that feed it, but where they feed each other in a ring."""
    of = {vertex.id: number for number, group in enumerate(groups) for vertex in group}
    feeds: dict[int, list[int]] = {number: [] for number in range(len(groups))}
    for crossing in crossed:
        feeds[of[f"{crossing.name}/sync"]].append(of[crossing.source[0]])
    found: list[int] = []
    entered: set[int] = set()

    def visit(number: int) -> None:
        if number not in entered:
            entered.add(number)
            for upstream in feeds[number]:
                visit(upstream)
            found.append(number)

    for number in range(len(groups)):
        visit(number)
    return [groups[number] for number in found]


def _names(groups: Sequence[Sequence[Vertex]], arrivals: frozenset[str]) -> list[str]:
    """`stream@site`, by the first stream that a part makes itself; a number where that is not enough."""
    used: dict[str, int] = {}
    found = []
    for group in groups:
        first = next(vertex for vertex in group if vertex.id not in arrivals)
        name = f"{first.stream}@{first.site}"
        used[name] = used.get(name, 0) + 1
        found.append(name if used[name] == 1 else f"{name}.{used[name]}")
    return found


def _part(name: str, group: Sequence[Vertex], loops: Sequence[tuple[Port, str]], syncs: Sequence[SyncStream]) -> Part:
    arrived = {stream.target for stream in syncs}
    own = {vertex.id for vertex in group}
    return Part(
        name=name,
        site=group[0].site,
        vertices=tuple(group),
        loops=tuple(loop for loop in loops if loop[1] in own),
        inputs=tuple(stream.name for stream in syncs if stream.to_part == name),
        outputs=tuple(stream.name for stream in syncs if stream.from_part == name),
        sources=tuple(
            v.id
            for v in group
            if isinstance(v.step, steps.SOURCES) and not isinstance(v.step, steps.Feedback) and v.id not in arrived
        ),
        functions=tuple(sorted({reference for vertex in group for reference in references(vertex.step)})),
    )
