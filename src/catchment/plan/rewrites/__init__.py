"""Rewrites: each makes a graph cheaper and leaves its meaning as it is. One per file, in the order of `REWRITES`.

Meaning is what comes out: the results that the program is for, with their numbers and times, and which elements are
quarantined for which reason. docs/decisions/0052 says what a quarantined row may lack.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from catchment.plan.graph import Graph
from catchment.plan.rewrites import (
    common_expressions,
    common_streams,
    merge_filters,
    offline,
    panes,
    push_columns,
    push_filters,
)
from catchment.plan.rewrites.change import Change, Rewrite

REWRITES: tuple[tuple[str, Rewrite], ...] = (
    ("offline", offline.rewrite),
    ("common_streams", common_streams.rewrite),
    ("push_filters", push_filters.rewrite),
    ("merge_filters", merge_filters.rewrite),
    ("push_columns", push_columns.rewrite),
    ("common_expressions", common_expressions.rewrite),
    ("panes", panes.rewrite),
)
"""Equal streams first, so that a filter that two of them share can be pushed; then filters, which say what columns are
still needed; expressions and windows last, for nothing moves any more."""


class Stage(msgspec.Struct, frozen=True):
    """The graph after a rewrite, and what it did."""

    rewrite: str
    graph: Graph
    changes: tuple[Change, ...]


def stages(graph: Graph, without: Collection[str] = ()) -> tuple[Stage, ...]:
    """The graph after each rewrite, but for those left out by name."""
    found = []
    for name, rewrite in REWRITES:
        if name not in without:
            graph, changes = rewrite(graph)
            found.append(Stage(name, graph, changes))
    return tuple(found)


def rewritten(graph: Graph, without: Collection[str] = ()) -> Graph:
    """The graph after all rewrites, but for those left out by name."""
    done = stages(graph, without)
    return done[-1].graph if done else graph


__all__ = ["REWRITES", "Change", "Rewrite", "Stage", "rewritten", "stages"]
