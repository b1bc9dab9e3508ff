"""What makes a graph one that every engine can run: one check per file, all of them tried, each mistake with its line.

A check is a function from a graph to the mistakes that it finds; it changes nothing. The first five constraints are
those of well-formed stream processes; docs/decisions/0050 says what each is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catchment.errors import ProgramError
from catchment.plan.check import carried, loops, progress, promises, revisions, shape, sites, windows
from catchment.plan.graph import Graph

Check = Callable[[Graph], Iterator[ProgramError]]

CHECKS: tuple[Check, ...] = (
    shape.inputs,
    shape.outputs,
    shape.alphabets,
    loops.check,
    sites.check,
    windows.check,
    progress.check,
    revisions.check,
    carried.check,
    promises.check,
)


def mistakes(graph: Graph) -> Iterator[ProgramError]:
    """The mistakes of a graph, the most basic ones first."""
    for check in CHECKS:
        found = list(check(graph))
        yield from found
        if found and check in (shape.inputs, shape.alphabets):
            return  # what is not a graph cannot be asked more
