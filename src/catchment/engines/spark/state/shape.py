"""What the state of a step is made of, and whether a step of a changed program can go on from it.

A process may change its code and its parameters, and its state may gain fields, which begin with their defaults, and
lose fields. Any other step has to be what it was. Steps that are new begin with nothing, and the state of one that is
gone goes too: whether that is meant is asked before a program is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from catchment.engines.spark.stages import routed
from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Vertex
from catchment.program import steps
from catchment.program.function import declared

STATELESS = (steps.Where, steps.Select, steps.Map, steps.KeyBy, steps.Subscribe, steps.Deliver, steps.Sink)

Shape = dict[str, Any]
"""`step`, a digest of what may not change; `route`, see `_hidden_route`; of a process also the types of its state's
fields."""


def shapes(graph: Graph) -> dict[str, Shape]:
    """The shape of the state of each step that keeps some."""
    return {
        vertex.id: {**_shape(vertex.step), **_hidden_route(vertex)}
        for vertex in graph.vertices
        if not isinstance(vertex.step, (*steps.SOURCES, *STATELESS))
    }


def refusals(before: Mapping[str, Shape], after: Mapping[str, Shape]) -> list[str]:
    """Why state of those shapes cannot be gone on from, in words; nothing where it can."""
    found = []
    for name, was in before.items():
        now = after.get(name)
        if now is None:
            continue
        if now["step"] != was["step"]:
            found.append(f"{name} is not the step that made its state")
            continue
        if now.get("route") != was.get("route"):
            found.append(f"{name} is spread over buckets by another part of its key")
            continue
        for field, kind in was.get("fields", {}).items():
            other = now.get("fields", {}).get(field, kind)
            if other != kind:
                found.append(f"{name} kept {field} as {kind}, and now as {other}")
    return found


def check(before: Mapping[str, Shape], after: Mapping[str, Shape]) -> None:
    """Refuse to go on from state that was made otherwise."""
    why = refusals(before, after)
    if why:
        raise ProgramError(
            "C333",
            "the program cannot go on from the state that is here",
            why="; ".join(why),
            fix="give a changed step another name, or run the program in a new --data directory",
        )


def _hidden_route(vertex: Vertex) -> Shape:
    """By which part of the key its state is spread, where its results do not hold that: it was by all of it once."""
    route = routed(vertex)
    if len(route) == len(getattr(vertex.step, "keys", ())) or set(route) <= set(vertex.schemas[0].names):
        return {}
    return {"route": list(route)}


def _shape(step: steps.Step) -> Shape:
    if not isinstance(step, steps.Processed):
        return {"step": sha256(msgspec.json.encode(step, order="sorted")).hexdigest()[:16]}
    fields = msgspec.structs.fields(declared(step.process).state_type)
    return {
        "step": ["process", list(step.keys), step.scope, step.order],
        "fields": {field.name: str(getattr(field.type, "__name__", field.type)) for field in fields},
    }
