"""Progress: a step that waits is only fed by streams that promise something."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Vertex
from catchment.plan.wiring import Wiring
from catchment.program import steps


def waits(step: steps.Step) -> bool:
    """Whether the step gives results only once progress has passed them."""
    match step:
        case steps.Running() | steps.Fold() | steps.Processed():
            return step.order == "event_time"
        case _:
            return isinstance(step, steps.LATE_PORTS)


def check(graph: Graph) -> Iterator[ProgramError]:
    """Refuses a step that waits for promises which never come: late elements and feedback carry none."""
    wiring = Wiring(graph)
    silent: dict[str, str] = {}  # steps whose result promises nothing, and why
    for vertex in graph.vertices:
        reasons = [_silence(wiring.by_id[name], port, silent) for name, port in vertex.inputs]
        known = [reason for reason in reasons if reason is not None]
        if waits(vertex.step) and known:
            yield _never(vertex, known[0])
        elif isinstance(vertex.step, steps.Feedback):
            silent[vertex.id] = f"comes round by the loop {vertex.step.loop!r}"
        elif known and (len(known) == len(reasons) or not isinstance(vertex.step, steps.Union)):
            silent[vertex.id] = known[0]


def _silence(vertex: Vertex, port: int, silent: dict[str, str]) -> str | None:
    if port >= steps.LATE:
        return f"came late to {vertex.id}"
    return silent.get(vertex.id)


def _never(vertex: Vertex, reason: str) -> ProgramError:
    may = isinstance(vertex.step, steps.Running | steps.Fold | steps.Processed)
    return ProgramError(
        "C257",
        f"{vertex.id} waits for ever",
        why=f"it gives results once its input has promised to bring nothing older, and what {reason} promises nothing",
        fix='say order="arrival" on it' if may else 'count what came with state(..., order="arrival") instead',
        at=vertex.line.source(),
    )
