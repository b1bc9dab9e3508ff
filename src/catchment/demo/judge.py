"""What was due to each user, by the reference engine: the definition of every step, over what the log holds of them.

The reference engine evaluates whole histories, and takes time that grows with their square; but where all that is
delivered waits for a user's own devices only, what a user is due follows from their own part of the log. So each user
is judged alone, one after the other in an order that has nothing to do with them, for as long as there is time.

Knows plans and the reference engine; not what ran, and not what arrived.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from zlib import crc32

import msgspec

from catchment.engines.reference import evaluate
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Entry
from catchment.program import steps
from catchment.program.types import Row

Log = Sequence[tuple[str | None, Entry]]
"""What entered a part, each with the user whose it is; of what is nobody's, None."""
Due = dict[str, list[Row]]
"""By stream, the rows that a user is due, in their order."""


def judged(graph: Graph, outputs: Mapping[str, Port], log: Log, *, within_s: float) -> dict[str, Due]:
    """What users are due of each output: of all users, or of as many as there is time for."""
    reduced = leading_to(graph, outputs)
    if not is_each_users_own(reduced):
        return {}
    sources = {vertex.id for vertex in reduced.vertices if isinstance(vertex.step, steps.SOURCES)}
    known = [(user, entry) for user, entry in log if getattr(entry, "step", None) in {None, *sources}]
    users = sorted({user for user, _ in known if user is not None}, key=lambda user: crc32(user.encode()))
    until_s = time.monotonic() + within_s
    found: dict[str, Due] = {}
    for user in users:
        if time.monotonic() > until_s:
            break
        history = tuple([entry for owner, entry in known if owner in (None, user)])
        outcome = evaluate(reduced, history, watch=list(outputs.values()))
        found[user] = {name: [result.row for result in outcome.results[port]] for name, port in outputs.items()}
    return found


def leading_to(graph: Graph, outputs: Mapping[str, Port]) -> Graph:
    """The steps that these outputs follow from."""
    needed = {name for name, _ in outputs.values()}
    for vertex in reversed(graph.vertices):
        if vertex.id in needed:
            needed |= {name for name, _ in vertex.inputs}
    vertices = tuple([vertex for vertex in graph.vertices if vertex.id in needed])
    return msgspec.structs.replace(graph, vertices=vertices, streams=(), results=())


def is_each_users_own(graph: Graph) -> bool:
    """Whether every step that remembers does so for one user, and waits for nobody else."""
    if graph.loops:
        return False
    for vertex in graph.vertices:
        if isinstance(vertex.step, (*steps.SOURCES, *_STATELESS)):
            continue
        source, port = vertex.inputs[0]
        schema = graph.vertex(source).schemas[port]
        keys = getattr(vertex.step, "keys", ())
        if not any(schema.column(key).stamp == "user" for key in keys if key in schema.names):
            return False
        if getattr(vertex.step, "scope", "own") != "own":
            return False
    return True


_STATELESS = (steps.Where, steps.Select, steps.Map, steps.Union, steps.KeyBy, steps.Deliver, steps.Sink)
