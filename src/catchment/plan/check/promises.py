"""Promises: a stream's reliability is one that its way there can keep."""

from __future__ import annotations

import math
from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.crossing import Crossing, crossings
from catchment.plan.graph import Graph, Vertex
from catchment.program.reliability import LOSSLESS, duration_text
from catchment.program.sync import Sync


def check(graph: Graph) -> Iterator[ProgramError]:
    """Refuses a delay that a batch on the way alone exceeds, and no loss where a policy gives elements up."""
    try:
        crossed = crossings(graph)
    except ProgramError:
        return  # said by `carried`
    waits: dict[str, float] = {}
    ways: dict[str, tuple[Crossing, ...]] = {}
    for vertex in graph.vertices:
        above = [(name, _between(crossed, (name, port), vertex)) for name, port in vertex.inputs]
        waits[vertex.id] = max(
            (waits[name] + sum(map(longest_wait, (c.policy for c in by))) for name, by in above), default=0.0
        )
        ways[vertex.id] = tuple(dict.fromkeys(c for name, by in above for c in (*ways[name], *by)))
        if vertex.reliability is not None:
            yield from _kept(vertex, waits[vertex.id], ways[vertex.id])


def longest_wait(policy: Sync) -> float:
    """How long an element may wait on a connected link before it is sent, in microseconds."""
    batch = 0.0 if policy.batch.records == 1 else math.inf if policy.batch.within is None else policy.batch.within
    metered = 0.0
    if policy.metered.wait:
        metered = math.inf if policy.metered.at_most is None else policy.metered.at_most
    return batch + metered


def _between(crossed: tuple[Crossing, ...], source: tuple[str, int], target: Vertex) -> tuple[Crossing, ...]:
    return tuple(c for c in crossed if c.source == source and target.id in c.targets)


def _kept(vertex: Vertex, wait: float, ways: tuple[Crossing, ...]) -> Iterator[ProgramError]:
    promise = vertex.reliability
    assert promise is not None
    if promise.delay is not None and wait > promise.delay.within_us:
        said = "for ever" if math.isinf(wait) else f"up to {duration_text(int(wait))}"
        slowest = max(ways, key=lambda crossing: longest_wait(crossing.policy))
        yield ProgramError(
            "C244",
            f"{vertex.stream} promises {promise}, and an element may wait {said} on its way",
            why=f"the policy of {slowest.name} lets a batch gather, or waits for a better link",
            fix=f"give {slowest.name} a shorter batch (cm.Batch(within=...)), or promise a delay that it can keep",
            at=vertex.line.source(),
        )
    loses = next((crossing for crossing in ways if crossing.policy.gives_up), None)
    if loses is not None and promise.implies(LOSSLESS):
        yield ProgramError(
            "C245",
            f"{vertex.stream} promises {promise}, and {loses.name} gives elements up on the way",
            why=f"its policy says {loses.policy.gives_up}",
            fix="promise what it can keep, like limited_loss(0.5), or let the policy keep all: REFUSE and BUFFER",
            at=vertex.line.source(),
        )
