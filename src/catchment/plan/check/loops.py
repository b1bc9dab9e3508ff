"""Loops: each is closed, nothing in one waits for progress, and every one lets an element end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catchment.errors import ProgramError
from catchment.plan.check.progress import waits
from catchment.plan.graph import Graph, Vertex
from catchment.plan.wiring import Wiring
from catchment.program import steps

_ENDS = (steps.Where, steps.Changes, steps.Moved, steps.Processed)
"""Steps that may give nothing for an element."""


def check(graph: Graph) -> Iterator[ProgramError]:
    """Refuses an open loop, one without an end, and a step in one that waits for what the loop has to promise."""
    wiring = Wiring(graph)
    closed = {start for _, start in graph.loops}
    for start in graph.vertices:
        if not isinstance(start.step, steps.Feedback):
            continue
        if start.id not in closed:
            yield ProgramError(
                "C249",
                f"the loop {start.step.loop!r} is never closed",
                why="nothing comes round, so what reads it waits for ever",
                fix=f"say what comes round: program.close_loop({start.step.loop!r}, stream)",
                at=start.line.source(),
            )
            continue
        below = _reach(start, wiring.below)
        inside = [v for v in graph.vertices if v.id in below and start.id in _reach(v, wiring.below)]
        for vertex in inside:
            if waits(vertex.step):
                yield _waiting(vertex, start.step.loop)
        if start.id in _reach(start, lambda vertex: filter(_passes, wiring.below(vertex))):
            yield ProgramError(
                "C248",
                f"an element of the loop {start.step.loop!r} comes round for ever",
                why="no step of the loop can leave an element out: each gives one for each that it is given",
                fix="let it end: put a where(...), a process or a flat_map between the loop and where it is closed",
                at=start.line.source(),
            )


def _passes(vertex: Vertex) -> bool:
    return not isinstance(vertex.step, _ENDS) and not (isinstance(vertex.step, steps.Map) and vertex.step.many)


def _reach(start: Vertex, below: Callable[[Vertex], Iterator[Vertex]]) -> set[str]:
    """Ids of the vertices that what this one gives can come to."""
    found: set[str] = set()
    ahead = list(below(start))
    while ahead:
        vertex = ahead.pop()
        if vertex.id not in found:
            found.add(vertex.id)
            ahead.extend(below(vertex))
    return found


def _waiting(vertex: Vertex, loop: str) -> ProgramError:
    may = isinstance(vertex.step, steps.Running | steps.Fold | steps.Processed)
    return ProgramError(
        "C247",
        f"{vertex.id} waits for progress inside of the loop {loop!r}",
        why="progress there would wait for the loop, and the loop for it",
        fix='say order="arrival" on it' if may else "take it out of the loop, behind the step that closes it",
        at=vertex.line.source(),
    )
