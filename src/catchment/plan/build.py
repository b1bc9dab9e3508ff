"""From a program to its plan: check, rewrite, place."""

from __future__ import annotations

from catchment.plan.graph import graph_of
from catchment.plan.physical import Plan
from catchment.plan.place import place
from catchment.program.program import Program


def build(program: Program) -> Plan:
    """The plan of a program, or the first of its mistakes."""
    return place(graph_of(program))
