"""A plan as a JSON document: versioned, the same bytes for the same plan, readable in any language.

Promises: `read(write(plan)) == plan`; what is not a plan, or is one of a later format, is refused with what to do about
it; no Python code is needed to read one. The format is described in docs/reference/plan-format.md, and by
`json_schema`. Knows no file and no network.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from catchment.errors import ProgramError
from catchment.plan.graph import Vertex
from catchment.plan.physical import FORMAT, VERSION, Plan
from catchment.plan.portable import arriving, departing

_ENCODER = msgspec.json.Encoder(order="deterministic")


class _Head(msgspec.Struct):
    format: str | None = None
    version: int | None = None


def write(plan: Plan) -> bytes:
    """The document, on one line; refused where it names code that no other process could find."""
    for reference in sorted({reference for part in plan.parts for reference in part.functions}):
        module, _, name = reference.partition("@")[0].partition(":")
        if "<" in name or module == "__main__":
            raise ProgramError(
                "C313",
                f"{name.rpartition('.')[2]} cannot be found elsewhere",
                why=f"a plan names code as {module}:{name}, and nothing of that name can be imported",
                fix="define it at the top level of a module that is installed where it runs",
            )
    return encoded(plan)


def encoded(plan: Plan) -> bytes:
    """The document of any plan, to be compared with another's."""
    return _ENCODER.encode(departing(plan))


def read(document: bytes | str) -> Plan:
    """The plan of a document."""
    try:
        head = msgspec.json.decode(document, type=_Head)
    except msgspec.DecodeError as error:
        raise _not_a_plan("C310", "this is not a plan", str(error)) from error
    if head.format != FORMAT or head.version is None:
        raise _not_a_plan("C310", "this is not a plan", f'a plan begins with "format": "{FORMAT}" and a version')
    if head.version > VERSION:
        raise ProgramError(
            "C311",
            f"this plan has format {head.version}",
            why=f"this version of catchment reads formats up to {VERSION}, and would misread it",
            fix="bring catchment here to the version that made the plan, or build the plan with this one",
        )
    try:
        plan = arriving(msgspec.json.decode(document, type=Plan))
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise _not_a_plan("C312", "this plan is damaged", str(error)) from error
    _consistent(plan)
    return plan


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document, made from the same data types that read it."""
    schema = msgspec.json.schema(Plan)
    for definition in schema["$defs"].values():
        if "description" in definition:
            # From 3.13 on, Python takes the indentation out of docstrings itself.
            definition["description"] = inspect.cleandoc(definition["description"])
    return schema


def _consistent(plan: Plan) -> None:
    syncs = {stream.name for stream in plan.syncs}
    parts = {part.name: {vertex.id: vertex for vertex in part.vertices} for part in plan.parts}
    for part in plan.parts:
        known: dict[str, Vertex] = {}
        for vertex in part.vertices:
            for source, port in vertex.inputs:
                if source not in known or port >= len(known[source].schemas):
                    raise _damaged(f"{vertex.id} reads {source}[{port}], which no earlier step of {part.name} gives")
            known[vertex.id] = vertex
        for name in (*part.inputs, *part.outputs):
            if name not in syncs:
                raise _damaged(f"{part.name} names a sync stream {name}, which is not in the plan")
    for stream in plan.syncs:
        for name, vertex_id in ((stream.from_part, stream.source[0]), (stream.to_part, stream.target)):
            if vertex_id not in parts.get(name, {}):
                raise _damaged(f"{stream.name} goes by {vertex_id} of {name}, which is not in the plan")
        if stream.schema not in plan.schemas:
            raise _damaged(f"{stream.name} carries {stream.schema}, a schema that is not in the plan")


def _damaged(why: str) -> ProgramError:
    return _not_a_plan("C312", "this plan is damaged", why)


def _not_a_plan(code: str, what: str, why: str) -> ProgramError:
    return ProgramError(code, what, why=why, fix="build it again with catchment, and ship the file as it is")
