"""Columns that nothing needs are dropped before they are sent.

A stream that goes up is narrowed where it is made: its own last select computes less, or one is put behind it. What
stays: fields that steps above read, the event time, what a gateway stamps, and what the sync filter looks at. A step
that takes whole records (a function, a sink, a late stream that is read) needs all of them.
"""

from __future__ import annotations

import msgspec

from catchment.plan.crossing import Crossing, crossings
from catchment.plan.editing import edited, flowing
from catchment.plan.graph import Graph, Vertex
from catchment.plan.needs import needs
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.facts import can_fail
from catchment.program.nodes import FieldRef
from catchment.program.types import Schema


def rewrite(graph: Graph) -> Rewritten:
    """Narrows each crossing that carries more than is read."""
    changes: list[Change] = []
    narrowed: set[str] = set()
    while True:
        wiring = Wiring(graph)
        for crossing in crossings(graph):
            kept = _kept(wiring, crossing) if crossing.name not in narrowed else None
            if kept is not None:
                break
        else:
            return graph, tuple(changes)
        narrowed.add(crossing.name)
        full = wiring.by_id[crossing.source[0]].schemas[crossing.source[1]]
        graph, at = _narrow(graph, wiring, crossing, kept)
        dropped = ", ".join(name for name in full.names if name not in kept.names)
        changes.append(Change(at, f"sends {crossing.name} without {dropped}", "no step that it is sent to reads these"))


def _kept(wiring: Wiring, crossing: Crossing) -> Schema | None:
    """What is left of the carried fields, if something can go."""
    if crossing.direction == "down":
        return None
    schema = wiring.by_id[crossing.source[0]].schemas[crossing.source[1]]
    wanted: set[str] = {c.name for c in schema.fields if c.event_time or c.stamp is not None}
    if crossing.policy.filter is not None:
        wanted |= set(crossing.policy.filter.fields)
    for name in crossing.targets:
        vertex = wiring.by_id[name]
        for side, port in enumerate(vertex.inputs):
            if port == crossing.source:
                more = needs(wiring, vertex, side)
                if more is None:
                    return None
                wanted |= more
        if not vertex.inputs:  # a feedback edge brings whole records round
            return None
    fields = tuple(column for column in schema.fields if column.name in wanted)
    return Schema(schema.name, fields) if 0 < len(fields) < len(schema.fields) else None


def _narrow(graph: Graph, wiring: Wiring, crossing: Crossing, kept: Schema) -> tuple[Graph, str]:
    start = wiring.by_id[crossing.source[0]]
    if _own(wiring, crossing, start, kept):
        assert isinstance(start.step, steps.Select)
        columns = tuple(column for column in start.step.columns if column.name in kept.names)
        less = msgspec.structs.replace(start, step=steps.Select(columns, kept), schemas=(kept,))
        return flowing(edited(graph, put=[less])), less.id
    schema = start.schemas[crossing.source[1]]
    targets = [wiring.by_id[name] for name in crossing.targets]
    arriving = next((target.arriving for target in targets if target.arriving is not None), None)
    first = Vertex(
        id=f"{crossing.name}/columns",
        step=steps.Select(tuple(_plain(schema, name) for name in kept.names), kept),
        inputs=(crossing.source,),
        schemas=(kept,),
        site=start.site,
        stream=start.stream,
        line=start.line,
        sync=(arriving,) if arriving is not None else (),
    )
    return flowing(edited(graph, put=[first, *(_reading(target, crossing, first) for target in targets)])), first.id


def _own(wiring: Wiring, crossing: Crossing, start: Vertex, kept: Schema) -> bool:
    """Whether the step that the stream comes from is a select that may simply compute less."""
    if not isinstance(start.step, steps.Select) or wiring.observed(crossing.source):
        return False
    if {reader.id for reader, _ in wiring.readers(crossing.source)} != set(crossing.targets):
        return False
    name, port = start.inputs[0]
    schema = wiring.by_id[name].schemas[port]
    return not any(can_fail(c.value, (schema,)) for c in start.step.columns if c.name not in kept.names)


def _plain(schema: Schema, name: str) -> steps.Named:
    column = schema.column(name)
    return steps.Named(name, FieldRef(name), column.type, column.nullable)


def _reading(target: Vertex, crossing: Crossing, first: Vertex) -> Vertex:
    inputs = tuple((first.id, 0) if port == crossing.source else port for port in target.inputs)
    alone = all(port == (first.id, 0) for port in inputs)
    return msgspec.structs.replace(target, inputs=inputs, arriving=None if alone else target.arriving)
