"""Filters go toward the source: what is not wanted is dropped before it is computed on, and before it is sent.

A filter moves above key_by, union, a select whose fields it reads as they were, and across a crossing that goes up.
Never above a map, a step with state or one with an effect: these would see other elements. A predicate that may fail
stays, for its failures belong to the elements that reach it.
"""

from __future__ import annotations

import msgspec

from catchment.plan.crossing import Crossing, crossings, goes_down
from catchment.plan.editing import edited
from catchment.plan.graph import Graph, Vertex
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.facts import can_fail
from catchment.program.nodes import FieldRef, Literal, Node, replace
from catchment.program.site import Site
from catchment.program.types import Schema

_MAY_FILTER = (Site.DEVICE, Site.REGION)
"""Sites that a filter may move to. Steps in the network stay as their author placed them."""


def rewrite(graph: Graph) -> Rewritten:
    """Moves filters one step at a time, until none moves."""
    changes: list[Change] = []
    while True:
        moved = _one(graph)
        if moved is None:
            return graph, (*changes, *_stuck(graph))
        graph, change = moved
        changes.append(change)


def _one(graph: Graph) -> tuple[Graph, Change] | None:
    wiring = Wiring(graph)
    crossed = crossings(graph)
    for vertex in graph.vertices:
        if not isinstance(vertex.step, steps.Where) or can_fail(vertex.step.predicate, (vertex.schemas[0],)):
            continue
        above = wiring.by_id[vertex.inputs[0][0]]
        if above.site != vertex.site:
            moved = _across(graph, wiring, crossed, above, vertex)
        elif wiring.only_reader(vertex.inputs[0]) is None or vertex.inputs[0][1] != 0:
            moved = None
        else:
            moved = _above(graph, wiring, above, vertex)
        if moved is not None:
            return moved
    return None


def _across(
    graph: Graph, wiring: Wiring, crossed: tuple[Crossing, ...], above: Vertex, where: Vertex
) -> tuple[Graph, Change] | None:
    crossing = next(c for c in crossed if c.source == where.inputs[0] and where.id in c.targets)
    readers = [reader for reader, _ in wiring.readers((where.id, 0))]
    if (
        above.site not in _MAY_FILTER
        or goes_down(above.site, where.site)
        or crossing.targets != (where.id,)
        or crossing.policy.filter is not None
        or where.sync
        or where.reliability is not None
        or wiring.observed((where.id, 0))
        or not readers
        or any(reader.site != where.site for reader in readers)
    ):
        return None
    moved = msgspec.structs.replace(
        where,
        site=above.site,
        stream=above.stream,
        arriving=None,
        sync=(where.arriving,) if where.arriving is not None else (),
    )
    change = Change(
        where.id,
        f"runs at {above.site} instead of {where.site}",
        f"what it drops need not be sent, and its predicate runs at every site and cannot fail; "
        f"{above.stream} crosses for it alone",
    )
    return edited(graph, put=[moved]), change


def _above(graph: Graph, wiring: Wiring, above: Vertex, where: Vertex) -> tuple[Graph, Change] | None:
    step = where.step
    assert isinstance(step, steps.Where)
    match above.step:
        case steps.KeyBy():
            why = "saying the key changes no element"
            return _swapped(graph, wiring, above, where, step.predicate), Change(
                where.id, f"goes before {above.id}", why
            )
        case steps.Select():
            before = _before(above.step, step.predicate)
            schema = _input(wiring, above)
            if before is None or any(can_fail(column.value, (schema,)) for column in above.step.columns):
                return None
            why = f"it reads fields that {above.id} passes on as they are, and computes nothing for what is dropped"
            return _swapped(graph, wiring, above, where, before), Change(where.id, f"goes before {above.id}", why)
        case steps.Union() if len(above.inputs) > 1:
            return _spread(graph, above, where), Change(
                where.id,
                f"goes before {above.id}, on each of its inputs",
                "each element passes one input, and so one filter",
            )
        case _:
            return None


def _input(wiring: Wiring, vertex: Vertex) -> Schema:
    name, port = vertex.inputs[0]
    return wiring.by_id[name].schemas[port]


def _before(select: steps.Select, predicate: Node) -> Node | None:
    """The predicate over what the select reads, if it needs nothing that the select computes."""
    columns = {
        column.name: column.value
        for column in select.columns
        if column.type == select.record.column(column.name).type  # an int that becomes a float is another value
    }
    plain = True

    def change(node: Node) -> Node | None:
        nonlocal plain
        if isinstance(node, FieldRef):
            value = columns.get(node.name)
            if not isinstance(value, FieldRef | Literal):
                plain = False
                return node
            return value
        return None

    found = replace(predicate, change)
    return found if plain else None


def _swapped(graph: Graph, wiring: Wiring, above: Vertex, where: Vertex, predicate: Node) -> Graph:
    """`above` then `where` as `where` then `above`; what read the filter reads the step that now comes last."""
    first = msgspec.structs.replace(
        where,
        step=steps.Where(predicate),
        inputs=above.inputs,
        schemas=(_input(wiring, above),),
        arriving=above.arriving,
        sync=(),
        reliability=None,
    )
    last = msgspec.structs.replace(
        above,
        inputs=((where.id, 0),),
        arriving=None,
        sync=where.sync or above.sync,
        reliability=where.reliability,
    )
    return edited(graph, put=[first, last], lead={(where.id, 0): (above.id, 0)}, unname=[(above.id, 0)])


def _spread(graph: Graph, union: Vertex, where: Vertex) -> Graph:
    """A filter on each input of the union; what read the filter reads the union."""
    each = [
        msgspec.structs.replace(
            where, id=f"{where.id}/{number}", inputs=(port,), arriving=union.arriving, sync=(), reliability=None
        )
        for number, port in enumerate(union.inputs, start=1)
    ]
    last = msgspec.structs.replace(
        union,
        inputs=tuple((vertex.id, 0) for vertex in each),
        arriving=None,
        sync=where.sync or union.sync,
        reliability=where.reliability,
    )
    return edited(graph, put=[*each, last], out=[where.id], lead={(where.id, 0): (union.id, 0)}, unname=[(union.id, 0)])


def _stuck(graph: Graph) -> list[Change]:
    """Filters that stand right behind a crossing up and stay there, with the reason."""
    wiring = Wiring(graph)
    found = []
    for crossing in crossings(graph):
        for name in crossing.targets:
            vertex = wiring.by_id[name]
            if isinstance(vertex.step, steps.Where) and crossing.direction == "up":
                reason = _reason(wiring, crossing, vertex)
                found.append(Change(name, f"stays at {vertex.site}", reason, done=False))
    return found


def _reason(wiring: Wiring, crossing: Crossing, where: Vertex) -> str:
    assert isinstance(where.step, steps.Where)
    if can_fail(where.step.predicate, (where.schemas[0],)):
        return "its predicate may fail, and is then quarantined here, with what reached it"
    if len(crossing.targets) > 1:
        others = ", ".join(name for name in crossing.targets if name != where.id)
        return f"{others} needs what it drops, so all of {crossing.name} is sent"
    if crossing.policy.filter is not None:
        return f"the sync filter of {crossing.name} thins the stream first, and would thin another one"
    if wiring.observed((where.id, 0)):
        return f"its result is one of the program's, at {where.site}"
    if crossing.from_site not in _MAY_FILTER:
        return f"steps at {crossing.from_site} stay as their author placed them"
    if any(reader.site != where.site for reader, _ in wiring.readers((where.id, 0))):
        return "its result is sent on from here, and moving it would change by which sites it goes"
    return f"a policy or a promise of {where.stream} is about what it gives here"
