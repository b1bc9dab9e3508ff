"""What a step that waits does about devices that are away, where its author did not say.

A group of one's own devices waits for ever: nobody else waits with it. A group of all sources waits at most an hour:
one lost phone must not hold back everyone's results.
"""

from __future__ import annotations

from typing import Any

import msgspec

from catchment.plan.check.progress import waits
from catchment.plan.editing import edited
from catchment.plan.graph import Graph, Vertex
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.program import steps
from catchment.program.window import Closing, Offline

HOUR_US = 3_600_000_000


def rewrite(graph: Graph) -> Rewritten:
    """Every closing with an `offline` that says it."""
    put: list[Vertex] = []
    changes = []
    for vertex in graph.vertices:
        step: Any = vertex.step
        if not isinstance(step, steps.LATE_PORTS):
            continue
        closes = Offline() if step.scope == "own" else Offline(HOUR_US)
        new = _resolved(step, closes)
        if new == step:
            continue
        put.append(msgspec.structs.replace(vertex, step=new))
        if waits(step) or isinstance(step, steps.Processed):
            own = step.scope == "own"
            changes.append(
                Change(
                    vertex.id,
                    f"waits {'for ever' if own else 'at most one hour'} for devices that are away",
                    "its key is the user or device itself, and only its own devices are waited for"
                    if own
                    else "it waits for all devices together, and one that is lost must not hold back the others",
                )
            )
    return edited(graph, put=put), tuple(changes)


def _resolved(step: Any, waits: Offline) -> Any:
    changed: dict[str, Any] = {}
    if isinstance(getattr(step, "closing", None), Closing):
        changed["closing"] = _said(step.closing, waits)
    if getattr(step, "window", None) is not None:
        changed["window"] = msgspec.structs.replace(step.window, closing=_said(step.window.closing, waits))
    return msgspec.structs.replace(step, **changed)


def _said(closing: Closing, waits: Offline) -> Closing:
    return closing if closing.offline is not None else msgspec.structs.replace(closing, offline=waits)
