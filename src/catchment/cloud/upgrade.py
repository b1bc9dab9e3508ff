"""A changed program goes on from the state of the one before it, or is refused, with the step and the reason.

What keeps state must mean the same as before: its definition, and the steps that what goes into it comes from, without
counting stateless ones in between. All else may change: stateless steps, outputs, sinks, fields, steps with state that
are new (they begin with what comes from now on) or gone (their state is dropped). What devices still send by the
program before is read by its schemas, which the plan keeps; and a step whose input has other fields than what waits in
its state is given those that it had. Compares plans as data; starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from catchment.cloud.leaving import outputs_of
from catchment.engines.spark.stages import STATELESS, Stages, cut
from catchment.engines.spark.vector.engine import VectorEngine
from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Port, Vertex
from catchment.plan.physical import Part, Plan
from catchment.program import steps
from catchment.program.nodes import FieldRef, Literal
from catchment.program.site import CLOUD
from catchment.program.types import Schema

_EMPTY: dict[str, bool | int | float | str] = {
    "bool": False,
    "int": 0,
    "float": 0.0,
    "str": "",
    "instant": 0,
    "duration": 0,
}


class Forms(msgspec.Struct, frozen=True):
    """How the state of each step of a part is kept: as columns, or event by event."""

    columns: list[str] = []


@dataclass
class Upgrade:
    """What is run from now on, and what that means for what is there."""

    plan: Plan
    forms: dict[str, Forms]
    renamed: dict[str, str] = field(default_factory=dict)
    """Parts whose state is under another name, from old to new."""
    began: list[str] = field(default_factory=list)
    """Steps with state that begin now."""
    ended: list[str] = field(default_factory=list)
    """Steps whose state is dropped."""
    changed: bool = False


def upgrade(known: Plan | None, forms: dict[str, Forms], plan: Plan) -> Upgrade:
    """What comes of running `plan` where `known` was run, its state kept in those forms; refused where nothing can."""
    if known is None:
        return Upgrade(plan, _forms(plan))
    for stream in plan.syncs:
        sent = next((known.schemas[each.schema] for each in known.syncs if each.name == stream.name), None)
        lacking = None if sent is None else plan.schemas[stream.schema].difference(sent)
        if lacking is not None and any(stream.to_part == part.name for part in _running(plan)):
            (target,) = [v for v in plan.part(stream.to_part).vertices if v.id == stream.target]
            raise _refused(target, f"what devices have sent of {stream.name} cannot be read: {lacking}")
    late = {name: schema for name, schema in known.schemas.items() if name not in plan.schemas}
    changed = _meaning(known) != _meaning(plan)
    plan = _as_before(known, plan)
    plan = msgspec.structs.replace(plan, schemas=dict(sorted({**plan.schemas, **late}.items())))
    made = Upgrade(plan, _forms(plan), changed=changed)
    before = {part.name: part for part in _running(known)}
    holders = {name: part for part in before.values() for name in _keeping(_stages(known, part).rest)}
    after: set[str] = set()
    for part in _running(plan):
        keeping = _keeping(_stages(plan, part).rest)
        old = {holders[name].name for name in keeping if name in holders} or {part.name} & before.keys()
        if len(old) > 1 or old & after:
            raise _refused(
                part.vertices[0], "its state is in several parts now" if len(old) > 1 else "it was part of another"
            )
        after |= old
        if not old:
            made.began += keeping
            continue
        (name,) = old
        if name != part.name:
            made.renamed[name] = part.name
        _compare(made, known, before[name], plan, part, forms.get(name))
    made.ended += [name for name, holder in holders.items() if holder.name not in after]
    return made


def _compare(made: Upgrade, known: Plan, old: Part, plan: Plan, new: Part, kept_as: Forms | None) -> None:
    before, after = _stages(known, old), _stages(plan, new)
    if old.loops != new.loops:
        raise _refused(new.vertices[0], "what is fed back has changed")
    had, has = _keeping(before.rest), _keeping(after.rest)
    made.began += [name for name in has if name not in had]
    made.ended += [name for name in had if name not in has]
    for name in has:
        if name not in had:
            continue
        was, now = before.rest.vertex(name), after.rest.vertex(name)
        if was.step != now.step:
            raise _refused(now, f"its definition is another: {_difference(was.step, now.step)}")
        if _origins(known.graph(old), was.id) != _origins(plan.graph(new), now.id):
            raise _refused(now, "what goes into it comes from other steps")
        if [before.routes.get(i) for i, _ in was.inputs] != [after.routes.get(i) for i, _ in now.inputs]:
            raise _refused(now, "its keys are spread over buckets in another way")
        is_columns = name in made.forms[new.name].columns
        if kept_as is None or (name in kept_as.columns) == is_columns:
            continue
        if not (is_columns and VectorEngine(after.rest, after.outputs).steps[name].adopts):
            raise _refused(now, "a change around it has it run in another way, and its state is kept in another form")


def _as_before(known: Plan, plan: Plan) -> Plan:
    """The plan, where each step that kept state is given what has the fields that it was given before."""
    had = {name: known.graph(part) for part in _running(known) for name in _keeping(_stages(known, part).rest)}
    return msgspec.structs.replace(plan, parts=tuple(_part_as_before(had, part) for part in plan.parts))


def _part_as_before(had: dict[str, Graph], part: Part) -> Part:
    schemas = {(vertex.id, port): schema for vertex in part.vertices for port, schema in enumerate(vertex.schemas)}
    vertices: list[Vertex] = []
    for vertex in part.vertices:
        before = had.get(vertex.id) if part.site == CLOUD else None
        inputs = list(vertex.inputs)
        if before is not None and len(before.vertex(vertex.id).inputs) == len(inputs):
            for number, (source, port) in enumerate(before.vertex(vertex.id).inputs):
                wanted, given = before.vertex(source).schemas[port], schemas[inputs[number]]
                if wanted.fingerprint != given.fingerprint:
                    made = _select(vertex, inputs[number], given, wanted, number)
                    vertices.append(made)
                    inputs[number] = (made.id, 0)
        vertices.append(msgspec.structs.replace(vertex, inputs=tuple(inputs)))
    return msgspec.structs.replace(part, vertices=tuple(vertices))


def _select(reader: Vertex, port: Port, given: Schema, wanted: Schema, number: int) -> Vertex:
    """A step between a port and its reader that gives the fields of another schema: those that are gone, empty."""
    columns = []
    for column in wanted.fields:
        there = column.name in given.names
        if there and given.column(column.name).type != column.type:
            was, now = column.type, given.column(column.name).type
            how = f"was {was} and is {now}" if str(was) != str(now) else f"is a {now} of other fields than before"
            raise _refused(reader, f"{column.name} of what goes into it {how}")
        # No step reads a field that is gone: its definition is as before, and could not be built otherwise.
        value = (
            FieldRef(column.name)
            if there
            else Literal(None if column.nullable else _EMPTY[str(column.type)], column.type)
        )
        columns.append(steps.Named(column.name, value, column.type, column.nullable))
    return msgspec.structs.replace(
        reader,
        id=f"{reader.id}/as_before{number or ''}",
        step=steps.Select(tuple(columns), wanted),
        inputs=(port,),
        schemas=(wanted,),
    )


def _origins(graph: Graph, name: str) -> list[frozenset[str]]:
    """Of each input, the ports that it comes from, past stateless steps."""
    return [frozenset(_before(graph, port)) for port in graph.vertex(name).inputs]


def _before(graph: Graph, port: Port) -> Iterator[str]:
    vertex = graph.vertex(port[0])
    if not isinstance(vertex.step, STATELESS) or not vertex.inputs:
        yield f"{port[0]}:{port[1]}"
    else:
        for upstream in vertex.inputs:
            yield from _before(graph, upstream)


def _keeping(rest: Graph) -> list[str]:
    """The steps that keep state."""
    passing = (*STATELESS, *steps.SOURCES, steps.Deliver, steps.Sink, steps.Subscribe)
    return [vertex.id for vertex in rest.vertices if not isinstance(vertex.step, passing)]


def _running(plan: Plan) -> list[Part]:
    return [part for part in plan.at(CLOUD) if part.inputs]


def _stages(plan: Plan, part: Part) -> Stages:
    return cut(plan.graph(part), outputs_of(plan, part))


def _forms(plan: Plan) -> dict[str, Forms]:
    cut_up = {part.name: _stages(plan, part) for part in _running(plan)}
    return {
        name: Forms(sorted(VectorEngine(stages.rest, stages.outputs).vectorised)) for name, stages in cut_up.items()
    }


def _meaning(plan: Plan) -> list[tuple[str, object, object]]:
    return [(v.id, v.step, v.inputs) for part in _running(plan) for v in part.vertices]


def _difference(was: steps.Step, now: steps.Step) -> str:
    if type(was) is not type(now):
        return f"it was {type(was).__name__.lower()} and is {type(now).__name__.lower()}"
    return ", ".join(name for name in was.__struct_fields__ if getattr(was, name) != getattr(now, name))


def _refused(vertex: Vertex, why: str) -> ProgramError:
    return ProgramError(
        "E034",
        f"{vertex.id} cannot go on from the state that is here",
        why=f"{why}, and state of another step would give wrong results",
        fix="give the changed stream a new name, so that it begins anew beside what is there, compute it "
        "anew with `catchment backfill`, or go back to the program that was run here",
        at=vertex.line.source(),
    )
