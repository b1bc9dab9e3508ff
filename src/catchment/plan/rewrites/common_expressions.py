"""What several columns of a select compute is computed once, by a select before it.

Only where it is worth a row more: a declared function, a distance, or several calls. And only where no row fails
otherwise than before: what may fail is shared if it was the first thing that may fail, and each row computed it anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from catchment.plan.editing import edited
from catchment.plan.graph import Graph, Vertex
from catchment.plan.rewrites.change import Change, Rewritten
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.facts import Analysis
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall, children, replace, walk
from catchment.program.types import Column, Schema

_DEAR = frozenset({"distance_m", "in_zone", "replace", "crc32", "pow", "exp", "ln"})
_LAZY = frozenset({"and", "or", "if_", "coalesce"})
"""Functions that look at an argument behind the first only when they need it."""
_WORTH = 3
"""Calls that a shared expression must save to pay for the row that holds it."""


def rewrite(graph: Graph) -> Rewritten:
    """A select before each select that computes something twice."""
    wiring = Wiring(graph)
    put: list[Vertex] = []
    changes = []
    for vertex in graph.vertices:
        if isinstance(vertex.step, steps.Select):
            name, port = vertex.inputs[0]
            schema = wiring.by_id[name].schemas[port]
            shared = _shared(vertex.step, schema)
            if shared:
                before, after = _split(vertex, vertex.step, schema, shared)
                put += [before, after]
                changes += [
                    Change(vertex.id, f"computes {_name(node)} once, in {before.id}", "several of its columns need it")
                    for node in shared
                ]
    return edited(graph, put=put), tuple(changes)


def _shared(select: steps.Select, schema: Schema) -> list[Node]:
    """Expressions worth computing once, none of them only within another."""
    facts = Analysis((schema,))
    columns = [column.value for column in select.columns]
    fails_first = _fails_first(columns, facts)
    found: list[Node] = []
    while True:
        counts = Counter(node for value in columns for node in _outside(value, found))
        may_share = [
            node
            for node, count in counts.items()
            if count > 1
            and _weight(node) >= _WORTH
            and (not facts[node].may_fail or (node in fails_first and not any(facts[f].may_fail for f in found)))
        ]
        if not may_share:
            return found
        found.append(max(may_share, key=_weight))


def _outside(node: Node, found: Sequence[Node]) -> Iterator[Node]:
    """The node and all below it, but for what is shared already."""
    if node not in found:
        yield node
        for child in children(node):
            yield from _outside(child, found)


def _weight(node: Node) -> int:
    match node:
        case UserCall():
            own = _WORTH
        case Call(name):
            own = _WORTH if name in _DEAR else 1
        case Cast():
            own = 1
        case FieldRef() | Literal() | GetField():
            own = 0
    return own + sum(map(_weight, children(node)))


def _fails_first(columns: Sequence[Node], facts: Analysis) -> list[Node]:
    """Expressions that every row computes, and before which nothing can have failed, though they may."""
    for value in columns:
        for path in _failing(value, True, (), facts):
            return [node for node, always in path if always]
    return []


_Path = tuple[tuple[Node, bool], ...]


def _failing(node: Node, always: bool, above: _Path, facts: Analysis) -> Iterator[_Path]:
    """The ways down to what may fail, in the order of computing; with each node, whether every row computes it."""
    path = (*above, (node, always))
    for number, child in enumerate(children(node)):
        lazy = isinstance(node, Call) and node.function in _LAZY and number > 0
        yield from _failing(child, always and not lazy, path, facts)
    if facts[node].fails_here:
        yield path


def _split(vertex: Vertex, select: steps.Select, schema: Schema, shared: Sequence[Node]) -> tuple[Vertex, Vertex]:
    facts = Analysis((schema,))
    taken = set(schema.names)
    names: dict[Node, str] = {}
    for node in shared:
        number = len(names) + 1
        while f"shared_{number}" in taken:
            number += 1
        taken.add(f"shared_{number}")
        names[node] = f"shared_{number}"

    def instead(node: Node) -> Node | None:
        return FieldRef(names[node]) if node in names else None

    columns = tuple(msgspec.structs.replace(column, value=replace(column.value, instead)) for column in select.columns)
    read = {n.name for c in columns for n in walk(c.value) if isinstance(n, FieldRef)} - set(names.values())
    kept = [column for column in schema.fields if column.name in read]
    record = Schema(
        schema.name,  # expressions say the name of the record that they read
        (
            # Not the event time: the element keeps the time that it came with, which the last select then sets.
            *(msgspec.structs.replace(column, event_time=False) for column in kept),
            *(Column(name, facts[node].type, nullable=facts[node].nullable) for node, name in names.items()),
        ),
    )
    before = Vertex(
        id=f"{vertex.id}/shared",
        step=steps.Select(
            (
                *(steps.Named(c.name, FieldRef(c.name), c.type, c.nullable) for c in kept),
                *(steps.Named(n, node, facts[node].type, facts[node].nullable) for node, n in names.items()),
            ),
            record,
        ),
        inputs=vertex.inputs,
        schemas=(record,),
        site=vertex.site,
        stream=vertex.stream,
        line=vertex.line,
        arriving=vertex.arriving,
    )
    after = msgspec.structs.replace(
        vertex, step=steps.Select(columns, select.record), inputs=((before.id, 0),), arriving=None
    )
    return before, after


def _name(node: Node) -> str:
    """An expression in a few words."""
    match node:
        case UserCall(function):
            return function.partition("@")[0].rpartition(":")[2] + "(...)"
        case Call(function):
            return f"{function.rstrip('_')}(...)"
        case _:
            return "a conversion"
