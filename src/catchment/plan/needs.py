"""Which fields of what it reads a step needs, for itself and for what reads it in turn."""

from __future__ import annotations

from catchment.plan.graph import Port, Vertex
from catchment.plan.references import expressions
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.nodes import fields

Needs = frozenset[str] | None
"""Names of fields; None for all of them."""


def needs(wiring: Wiring, vertex: Vertex, side: int) -> Needs:
    """What the step needs of its input of that number."""
    step = vertex.step
    if isinstance(step, steps.LATE_PORTS):
        late = (vertex.id, steps.LATE + side)
        if wiring.read(late) or late in wiring.named:
            return None  # late elements leave as they came
    own = frozenset(name for node in expressions(step) for name in fields(node, side))
    match step:
        case steps.Where() | steps.Moved() | steps.Changes() | steps.KeyBy():
            below = needed(wiring, (vertex.id, 0))
            keys = getattr(step, "keys", ())
            return None if below is None else own | below | frozenset(keys)
        case steps.Select():
            return own
        case steps.Aggregated() | steps.Running():
            return own | frozenset(step.keys)
        case steps.TopK():
            return own | frozenset(step.keys) | frozenset(step.record.names)
        case steps.Join() | steps.Zip() | steps.Combine():
            return own | frozenset((step.keys, step.right_keys)[side])
        case _:
            return None


def needed(wiring: Wiring, port: Port) -> Needs:
    """What is needed of a port by all that look at it."""
    if wiring.observed(port) or (port in wiring.named and not wiring.readers(port)):
        return None
    found: frozenset[str] = frozenset()
    for reader, side in wiring.readers(port):
        more = needs(wiring, reader, side)
        if more is None:
            return None
        found |= more
    return found
