"""Two filters in a row are one: an element is asked once whether both are true.

The second must not be able to fail: it was only ever asked of what the first let through.
"""

from __future__ import annotations

import msgspec

from catchment.plan.editing import edited
from catchment.plan.graph import Graph
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.facts import can_fail
from catchment.program.nodes import Call


def rewrite(graph: Graph) -> Rewritten:
    """Merges pairs until none is left."""
    changes: list[Change] = []
    while True:
        merged = _one(graph)
        if merged is None:
            return graph, tuple(changes)
        graph, change = merged
        changes.append(change)


def _one(graph: Graph) -> tuple[Graph, Change] | None:
    wiring = Wiring(graph)
    for second in graph.vertices:
        if not isinstance(second.step, steps.Where):
            continue
        first = wiring.by_id[second.inputs[0][0]]
        if (
            not isinstance(first.step, steps.Where)
            or first.site != second.site
            or first.reliability is not None
            or wiring.only_reader((first.id, 0)) is None
            or can_fail(second.step.predicate, (second.schemas[0],))
        ):
            continue
        both = msgspec.structs.replace(
            first,
            step=steps.Where(Call("and", (first.step.predicate, second.step.predicate))),
            sync=second.sync or first.sync,
            reliability=second.reliability,
        )
        graph = edited(graph, put=[both], out=[second.id], lead={(second.id, 0): (first.id, 0)}, unname=[(first.id, 0)])
        return graph, Change(second.id, f"is part of {first.id}", "an element that passes both is asked once")
    return None
