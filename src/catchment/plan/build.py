"""From a program to its plan: check, rewrite, place."""

from __future__ import annotations

from collections.abc import Collection

from catchment.plan.check import mistakes
from catchment.plan.graph import Graph, graph_of
from catchment.plan.physical import Plan
from catchment.plan.place import place
from catchment.plan.rewrites import rewritten
from catchment.program.program import Program


def checked(program: Program) -> Graph:
    """The graph of a program that makes sense, or the first of its mistakes."""
    graph = graph_of(program)
    for mistake in mistakes(graph):
        raise mistake
    return graph


def build(program: Program, *, without: Collection[str] = ()) -> Plan:
    """The plan of a program, or the first of its mistakes. `without` leaves rewrites out by name."""
    return place(rewritten(checked(program), without))
