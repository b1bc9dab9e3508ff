"""Overlapping windows by panes: each slide is aggregated once, and a window combines its panes.

With an overlap of 12, an element is added once and not twelve times. Only aggregates that combine can be computed so,
and only windows that are made of whole slides.
"""

from __future__ import annotations

import msgspec

from catchment.plan.editing import edited
from catchment.plan.graph import Graph
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.program import steps
from catchment.program.window import TimeWindow

COMBINE = frozenset({"count", "sum", "mean", "variance", "min", "max", "top", "dft", "user"})
"""Aggregates of which the parts of a window tell the whole."""


def rewrite(graph: Graph) -> Rewritten:
    """Marks the windows that panes compute."""
    put = []
    changes = []
    for vertex in graph.vertices:
        step = vertex.step
        if not isinstance(step, steps.Aggregated) or not isinstance(step.window, TimeWindow):
            continue
        overlap = -(-step.window.size // step.window.every)
        if overlap < 2:
            continue
        whole = sorted({a.call.function for a in step.aggregates} - COMBINE)
        if whole:
            why = f"{', '.join(whole)} of a window cannot be told from its parts"
            changes.append(Change(vertex.id, "aggregates each window by itself", why, done=False))
        elif step.window.size % step.window.every != 0:
            why = "size is no whole number of every, so a slide lies partly in a window"
            changes.append(Change(vertex.id, "aggregates each window by itself", why, done=False))
        else:
            put.append(msgspec.structs.replace(vertex, step=msgspec.structs.replace(step, panes=True)))
            why = f"an element is in {overlap} windows, and is added to one pane"
            changes.append(Change(vertex.id, f"aggregates each slide once and combines {overlap} panes", why))
    return edited(graph, put=put), tuple(changes)
