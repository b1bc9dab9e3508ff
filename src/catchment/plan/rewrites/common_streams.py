"""Equal steps on equal inputs, at one site, are one step: what two streams both need is computed once.

Sources are never merged (two sensors are two readings), nor are steps that are there for their effect.
"""

from __future__ import annotations

from typing import Any

import msgspec

from catchment.plan.editing import edited
from catchment.plan.graph import Graph, Port
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.program import steps

_ITS_OWN = (*steps.SOURCES, steps.Sink, steps.Deliver, steps.Subscribe)


def rewrite(graph: Graph) -> Rewritten:
    """Keeps the first of each set of equal steps."""
    first: dict[Any, str] = {}
    lead: dict[Port, Port] = {}
    out: list[str] = []
    changes = []
    for vertex in graph.vertices:
        if isinstance(vertex.step, _ITS_OWN):
            continue
        inputs = tuple(lead.get(port, port) for port in vertex.inputs)
        # Equal by what it does, not by who wrote it where; steps hold lists only in parameters, hence the bytes.
        same = (
            type(vertex.step),
            msgspec.json.encode(vertex.step),
            inputs,
            vertex.schemas,
            vertex.site,
            vertex.sync,
            vertex.arriving,
            vertex.reliability,
        )
        known = first.setdefault(same, vertex.id)
        if known != vertex.id:
            lead |= {(vertex.id, port): (known, port) for port in range(len(vertex.schemas))}
            out.append(vertex.id)
            changes.append(
                Change(vertex.id, f"is computed once, as {known}", "both do the same with the same stream at one site")
            )
    return edited(graph, out=out, lead=lead), tuple(changes)
