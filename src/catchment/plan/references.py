"""Which Python code a step needs: the references, `module:name@hash`, that a site must be able to resolve.

Knows the shape of steps and expressions; resolves nothing, so a plan can be read where the code is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from catchment.program import steps
from catchment.program.nodes import Node, UserCall, walk


def expressions(step: steps.Step) -> Iterator[Node]:
    """Every expression that a step evaluates for an element."""
    match step:
        case steps.Where():
            yield step.predicate
        case steps.Select() | steps.Zip() | steps.Combine() | steps.Join():
            yield from (column.value for column in step.columns)
        case steps.Changes():
            yield from step.values
        case steps.Moved():
            yield from (step.lat_deg, step.lon_deg)
        case steps.Aggregated() | steps.Running():
            yield from (arg for aggregate in step.aggregates for arg in aggregate.call.args)
        case steps.TopK():
            yield step.by
        case _:
            return


def references(step: steps.Step) -> tuple[str, ...]:
    """The code that a step names, each once, in order of name."""
    found = {node.function for given in expressions(step) for node in walk(given) if isinstance(node, UserCall)}
    match step:
        case steps.Map() | steps.Fold() | steps.Subscribe():
            found.add(step.function)
        case steps.Processed():
            found.add(step.process)
        case steps.Aggregated() | steps.Running():
            found |= {a.call.reference for a in step.aggregates if a.call.reference is not None}
        case steps.Sink("callback", options):
            found |= {str(options["function"])} if "function" in options else set()
        case _:
            pass
    return tuple(sorted(found))
