"""Crossings: where an edge goes from one site to another, and the policy that it is carried by.

A policy binds to the next crossing downstream of the stream that carries it; that of a stream whose own input
crosses binds to that input. The nearest wins. Consumers at one site share a crossing where their policies agree, so
that a stream travels once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Port, Vertex
from catchment.program import steps
from catchment.program.site import Site
from catchment.program.sync import Sync

Direction: TypeAlias = Literal["up", "down"]
_HEIGHT = {Site.DEVICE: 0, Site.REGION: 1, Site.FLEET: 2, Site.CLOUD: 3}


class Crossing(msgspec.Struct, frozen=True):
    """A port whose elements travel to another site, the steps that they are for, and how."""

    name: str
    source: Port
    from_site: Site
    to_site: Site
    targets: tuple[str, ...]
    policy: Sync
    because: str
    deliver: steps.Deliver | None = None

    @property
    def direction(self) -> Direction:
        """Up goes away from the devices."""
        return "down" if goes_down(self.from_site, self.to_site) else "up"


def goes_down(start: Site, end: Site) -> bool:
    """Whether an edge between these sites goes toward the devices."""
    return _HEIGHT[end] < _HEIGHT[start]


def edges(graph: Graph) -> Iterator[tuple[Port, Vertex]]:
    """Every edge, feedback included: the port that it comes from and the vertex that it feeds."""
    for vertex in graph.vertices:
        for source in vertex.inputs:
            yield source, vertex
    for source, start in graph.loops:
        yield source, graph.vertex(start)


def crossings(graph: Graph) -> tuple[Crossing, ...]:
    """The crossings of a graph, in its order; refuses an edge for which two policies are said."""
    by_id = {vertex.id: vertex for vertex in graph.vertices}
    found: dict[tuple[Port, Site, Sync, steps.Deliver | None], Crossing] = {}
    used: dict[str, int] = {}
    for source, target in edges(graph):
        start = by_id[source[0]]
        if start.site == target.site:
            continue
        policy, because = _policy(by_id, start, target)
        deliver = target.step if isinstance(target.step, steps.Deliver) else None
        shared = (source, target.site, policy, deliver)
        if shared in found:
            known = found[shared]
            if target.id not in known.targets:
                found[shared] = msgspec.structs.replace(known, targets=(*known.targets, target.id))
            continue
        used[start.stream] = used.get(start.stream, 0) + 1
        name = start.stream if used[start.stream] == 1 else f"{start.stream}.{used[start.stream]}"
        found[shared] = Crossing(name, source, start.site, target.site, (target.id,), policy, because, deliver)
    return tuple(found.values())


def inert(graph: Graph) -> tuple[Vertex, ...]:
    """Vertices whose policy no crossing is carried by."""
    by_id = {vertex.id: vertex for vertex in graph.vertices}
    bound = set()
    for source, target in edges(graph):
        start = by_id[source[0]]
        if start.site != target.site:
            bound |= {target.id} if target.arriving is not None else {v.id for v in _carriers(by_id, start)}
    return tuple(v for v in graph.vertices if (v.sync or v.arriving is not None) and v.id not in bound)


def _policy(by_id: dict[str, Vertex], start: Vertex, target: Vertex) -> tuple[Sync, str]:
    said: dict[Sync, str] = {}
    if target.arriving is not None:
        said[target.arriving] = f"{target.stream} says how its input arrives"
    for carrier in _carriers(by_id, start):
        for policy in carrier.sync:
            said.setdefault(policy, f"{carrier.stream} says how it is sent on")
    if len(said) > 1:
        raise ProgramError(
            "C250",
            f"{start.stream} goes to {target.stream} by two policies",
            why="; ".join(said.values()) + ": an element travels once, and one policy says how",
            fix=f"keep sync= on one of {start.stream} and {target.stream}, and leave it out on the other",
            at=target.line.source(),
        )
    return next(iter(said.items()), (Sync(), "no policy is said, so the default"))


def _carriers(by_id: dict[str, Vertex], start: Vertex) -> list[Vertex]:
    """The vertices nearest upstream of a crossing, and at its site, that carry a policy for it."""
    level = [start]
    seen = {start.id}
    while level:
        carriers = [vertex for vertex in level if vertex.sync]
        if carriers:
            return carriers
        above = [by_id[source] for vertex in level for source, _ in vertex.inputs]
        level = [v for v in above if v.site == start.site and v.id not in seen]
        seen |= {vertex.id for vertex in level}
    return []
