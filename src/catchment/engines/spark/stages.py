"""How a part is cut for Spark: its front, which keeps nothing, and what runs in the bucket that holds a key.

The *front* of a part is every step that is reached from its sources through stateless steps only. Where the bucket of
an element hangs on what it says, the front runs in the tasks that read the log; where what the gateway wrote beside the
upload decides, in the bucket. The *rest* runs per bucket, on the same operators as a device's. All that keeps state
must agree on what a bucket is made of; where it does not, the part needs a further shuffle, which is refused here by
name rather than computed wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Port, Vertex
from catchment.program import steps
from catchment.program.nodes import FieldRef
from catchment.program.types import Schema

_LEAVING = (steps.Deliver, steps.Sink, steps.Subscribe)
KEYED = (*steps.LATE_PORTS, steps.Changes, steps.Moved)
"""Steps that keep something of each key."""
USER, DEVICE, SOURCE, ONE = "user", "device", "source", "one"
STATELESS = (steps.Where, steps.Select, steps.Map, steps.Union, steps.KeyBy)


@dataclass(frozen=True)
class Stages:
    """A part cut in two.

    `frontier` maps each port where the front ends to the step that stands for it in the rest, `routes` says which
    fields of its rows decide the bucket: of a step without key none, and all are in one bucket; where nothing keeps
    state (None) the device decides. `entrances` gives, for a source step of the
    front and such a step, the source step of the rest that its events go to: where several streams were united
    before the frontier, the union of their promises is state, and so belongs in the bucket.
    """

    front: Graph
    rest: Graph
    frontier: dict[Port, str]
    routes: dict[str, tuple[str, ...] | None]
    entrances: dict[tuple[str, str], str]
    outputs: dict[str, Port]
    ways: dict[str, str] | None = None
    """What the gateway wrote beside an upload decides the bucket of all its elements, by source step of the front:
    `USER`, `DEVICE`, `SOURCE` where nothing keeps state, `ONE` where all are in one bucket. None, where the bucket of
    an element is not known before it is decoded."""
    heard_by: str | None = None
    """Whose progress and presence a bucket needs: those of its own users ("user") or devices ("device"), where each
    step waits for its key's own sources only; None: everyone's."""


def cut(graph: Graph, outputs: dict[str, Port]) -> Stages:
    """The stages of a part's graph, and where in the rest each of its outputs comes out."""
    front: dict[str, tuple[str, ...]] = {}
    for vertex in graph.vertices:
        if isinstance(vertex.step, steps.SOURCES) and not isinstance(vertex.step, steps.Feedback):
            front[vertex.id] = (vertex.id,)
        elif isinstance(vertex.step, STATELESS) and all(name in front for name, _ in vertex.inputs):
            front[vertex.id] = tuple(dict.fromkeys(origin for name, _ in vertex.inputs for origin in front[name]))
    rest = [vertex for vertex in graph.vertices if vertex.id not in front]
    frontier: dict[Port, str] = {}
    arrivals: list[Vertex] = []
    entrances: dict[tuple[str, str], str] = {}
    routes: dict[str, tuple[str, ...] | None] = {}
    moved: list[Vertex] = []
    for vertex in rest:
        inputs = []
        for number, (name, port) in enumerate(vertex.inputs):
            if name not in front:
                inputs.append((name, port))
                continue
            arrival = frontier.get((name, port))
            if arrival is None:
                arrival = f"{name}:{port}"
                frontier[(name, port)] = arrival
                made, entered = _arrivals(arrival, graph.vertex(name), port, front[name])
                arrivals.extend(made)
                entrances.update(entered)
            routes[arrival] = _agreed(vertex, routes.get(arrival), _wanted(graph, vertex, number))
            inputs.append((arrival, 0))
        moved.append(msgspec.structs.replace(vertex, inputs=tuple(inputs)))
    found: dict[str, Port] = {}
    for output, (name, port) in outputs.items():
        if name in front and (name, port) not in frontier:
            arrival = frontier[(name, port)] = f"{name}:{port}"
            made, entered = _arrivals(arrival, graph.vertex(name), port, front[name])
            arrivals.extend(made)
            entrances.update(entered)
            routes[arrival] = None
        found[output] = (frontier[(name, port)], 0) if name in front else (name, port)
    _check_alike(rest)
    ways = _ways(graph, [*arrivals, *moved], frontier, routes, entrances)
    return Stages(
        front=msgspec.structs.replace(graph, vertices=tuple(v for v in graph.vertices if v.id in front), loops=()),
        rest=msgspec.structs.replace(graph, vertices=(*arrivals, *moved)),
        frontier=frontier,
        routes=routes,
        entrances=entrances,
        outputs=found,
        ways=ways,
        heard_by=_heard_by(rest),
    )


def _ways(
    graph: Graph,
    rest: list[Vertex],
    frontier: dict[Port, str],
    routes: dict[str, tuple[str, ...] | None],
    entrances: dict[tuple[str, str], str],
) -> dict[str, str] | None:
    schemas = {vertex.id: vertex.schemas[0] for vertex in rest}
    mapped: set[str] = set()
    for vertex in graph.vertices:
        # What an author's function returns may name anyone.
        if isinstance(vertex.step, steps.Map) or any(name in mapped for name, _ in vertex.inputs):
            mapped.add(vertex.id)
    ends = {arrival: name for (name, _), arrival in frontier.items()}
    ways: dict[str, str] = {}
    for origin, arrival in entrances:
        route = routes[arrival]
        if route is None:
            way = SOURCE
        elif not route:
            way = ONE
        else:
            way = schemas[arrival].column(route[0]).stamp or ""
            if not way or len(route) > 1 or ends[arrival] in mapped:
                return None
        if ways.setdefault(origin, way) != way:
            return None
    return ways


def _heard_by(rest: list[Vertex]) -> str | None:
    waiting = [vertex for vertex in rest if isinstance(vertex.step, steps.LATE_PORTS)]
    if any(vertex.step.scope != "own" for vertex in waiting):  # type: ignore[union-attr]
        return None
    stamps = {stamp for vertex in waiting for stamp in _stamps(vertex, routed(vertex, 0))}
    return stamps.pop() if len(stamps) == 1 and stamps <= {"user", "device"} else None


def _arrivals(
    name: str, last: Vertex, port: int, origins: tuple[str, ...]
) -> tuple[list[Vertex], dict[tuple[str, str], str]]:
    """What stands for a port of the front in the rest: one source step, or the union of one for each origin."""
    schema = last.schemas[port]
    if len(origins) == 1:
        only = msgspec.structs.replace(last, id=name, step=steps.Append(schema), inputs=(), schemas=(schema,))
        return [only], {(origins[0], name): name}
    doors = {(origin, name): f"{name}<{origin}" for origin in origins}
    made = [
        msgspec.structs.replace(last, id=door, step=steps.Append(schema), inputs=(), schemas=(schema,))
        for door in doors.values()
    ]
    inputs = tuple((door, 0) for door in doors.values())
    made.append(msgspec.structs.replace(last, id=name, step=steps.Union(), inputs=inputs, schemas=(schema,)))
    return made, doors


def routed(vertex: Vertex, number: int = 0) -> tuple[str, ...]:
    """The fields that decide the bucket of an element that goes into this step, by this input."""
    keys: tuple[str, ...] = getattr(vertex.step, "keys", ())
    route = _owner_of(_given(vertex), keys) or tuple(keys)
    if number == 0:
        return route
    right_keys: tuple[str, ...] = getattr(vertex.step, "right_keys", keys)
    return tuple(right_keys[keys.index(key)] for key in route)


def _given(vertex: Vertex) -> Schema:
    """The schema of a step's (left) input: what is late leaves as it came, as all does that other keyed steps give."""
    return vertex.schemas[steps.LATE if isinstance(vertex.step, steps.LATE_PORTS) else 0]


def stamp_of(graph: Graph, vertex: Vertex) -> str | None:
    """Whose elements go to one bucket by a step's key, a "user"'s or a "device"'s; None where no gateway stamps it."""
    name, port = vertex.inputs[0]
    given, route = graph.vertex(name).schemas[port], routed(vertex)
    return given.column(route[0]).stamp if len(route) == 1 else None


def _wanted(graph: Graph, vertex: Vertex, number: int) -> tuple[str, ...] | None:
    """What decides the bucket of an element of this input: the step's own key, or of a stateless one, of what reads it.

    Stateless steps stand behind the frontier where they unite what comes from the log with what the part computes.
    """
    if isinstance(vertex.step, _LEAVING):
        return None
    if not isinstance(vertex.step, STATELESS):
        return routed(vertex, number)
    route: tuple[str, ...] | None = None
    for reader in graph.vertices:
        for position, (name, _) in enumerate(reader.inputs):
            if name == vertex.id:
                route = _agreed(vertex, route, _wanted(graph, reader, position))
    if isinstance(vertex.step, steps.Map) and route:
        raise _made_here(vertex, route)
    if isinstance(vertex.step, steps.Select):
        made = {column.name: column.value for column in vertex.step.columns}
        for name in route or ():
            if not isinstance(made.get(name), FieldRef):
                raise _made_here(vertex, route or ())
        return None if route is None else tuple(ref.name for name in route if isinstance(ref := made[name], FieldRef))
    return route


def _made_here(vertex: Vertex, route: tuple[str, ...]) -> ProgramError:
    return ProgramError(
        "C331",
        f"{vertex.id} computes ({', '.join(route)}) of what is already spread over buckets",
        why="the state of one part is spread over buckets by one key, which must be known where the log is read",
        fix="compute the key in a step of its own, before the stream is united with what the part computes",
        at=vertex.line.source(),
    )


def _owner_of(schema: Schema, keys: tuple[str, ...]) -> tuple[str, ...]:
    """With an owner among the keys, its value alone decides: all of a user's state is then in one bucket."""
    return tuple(k for k in keys if k in schema.names and schema.column(k).stamp is not None)[:1]


def _agreed(vertex: Vertex, known: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if known is not None and wanted is not None and known != wanted:
        raise _needs_shuffle(vertex, known, wanted)
    return wanted if known is None else known


def _check_alike(rest: list[Vertex]) -> None:
    """Refuses a step that keeps state by another key than the state that its elements come from.

    Steps that only stand side by side may differ: each has an arrival of its own, which goes by its own key.
    """
    above: dict[str, list[tuple[Vertex, Vertex | None]]] = {}
    for vertex in rest:
        before = [one for name, _ in vertex.inputs for one in above.get(name, ())]
        if isinstance(vertex.step, (*STATELESS, *_LEAVING)):
            above[vertex.id] = [(one, made or (None if _carries(vertex, one) else vertex)) for one, made in before]
            continue
        if not isinstance(vertex.step, steps.SOURCES):
            above[vertex.id] = [(vertex, None)]
        own = routed(vertex, 0)
        for one, made in before:
            route = routed(one, 0)
            if _stamps(one, route) != _stamps(vertex, own):
                raise _needs_shuffle(vertex, route, own)
            if made is not None:
                raise _made_here(made, own)


def _carries(vertex: Vertex, keyed: Vertex) -> bool:
    """Whether the fields by which a step's state is spread leave this stateless step as they came.

    What a gateway stamps does: another value under its name is refused when the program is built.
    """
    names = [name for name, stamp in zip(routed(keyed), _stamps(keyed, routed(keyed)), strict=True) if name == stamp]
    if isinstance(vertex.step, steps.Map):
        return not names
    if isinstance(vertex.step, steps.Select):
        made = {column.name: column.value for column in vertex.step.columns}
        return all(name not in made or made[name] == FieldRef(name) for name in names)
    return True


def _stamps(vertex: Vertex, route: tuple[str, ...]) -> list[str]:
    """What a route means beyond the names of fields: two steps by owner agree whatever the field is called."""
    schema = _given(vertex)
    return [(schema.column(name).stamp or name) if name in schema.names else name for name in route]


def _needs_shuffle(vertex: Vertex, one: tuple[str, ...], other: tuple[str, ...]) -> ProgramError:
    return ProgramError(
        "C330",
        f"{vertex.id} goes by ({', '.join(other)}) and a step before it by ({', '.join(one)})",
        why="the state of one part is spread over buckets by one key, and these two would need different ones",
        fix="key both by the stamped field (a user's own), or move one of them to a program of its own",
        at=vertex.line.source(),
    )
