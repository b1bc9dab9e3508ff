"""Which events can meet: whether what enters a graph at some step may reach another step by two of its inputs.

Where it may not, the order of the definition is that of plain calls, and nothing has to wait for its round.
"""

from __future__ import annotations

from collections.abc import Iterable

from catchment.plan.graph import Graph


def meets(graph: Graph, starts: Iterable[str]) -> bool:
    """Whether some step is reached by more than one of its inputs from these steps, feedback aside."""
    reached = set(starts)
    for vertex in graph.vertices:
        ports = [port for port, (name, _) in enumerate(vertex.inputs) if name in reached]
        if len(ports) > 1:
            return True
        if ports:
            reached.add(vertex.id)
    return False


def feeds_back(graph: Graph, start: str) -> bool:
    """Whether what enters at this step may come to a feedback edge."""
    reached = {start}
    for vertex in graph.vertices:
        if any(name in reached for name, _ in vertex.inputs):
            reached.add(vertex.id)
    return any(edge[0] in reached for edge, _ in graph.loops)
