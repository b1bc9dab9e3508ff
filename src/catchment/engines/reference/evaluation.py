"""The reference engine: a graph and a history in, results and failures out.

Each vertex is evaluated once, over everything that ever arrives there. Where the graph has feedback, that is not known
beforehand; so the graph is evaluated again for each round, over everything up to that round, and what it gave to its
feedback edges in the round enters the next one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from catchment.engines.reference import counts, filters, joins, pairs, processes, sessions, stateless, states, windows
from catchment.engines.reference.definition import Definition, Effects, Given, Place, nothing
from catchment.engines.reference.events import Arrival, Element, Event, Presence, Progress, Round, Sent, Tick, arrivals
from catchment.engines.reference.union import union
from catchment.errors import InternalError
from catchment.plan import history as log
from catchment.plan.graph import Graph, Port, Vertex
from catchment.plan.history import Entry, History, Outcome, Result
from catchment.program import steps
from catchment.program.row_error import ENDLESS_FEEDBACK, RowError
from catchment.program.types import Schema
from catchment.program.window import CountWindow, SessionWindow, TimeWindow, Window

ROUNDS_MAX = 100
"""How often feedback may go round for one entry."""

DEFINITIONS: dict[type[steps.Step], Definition] = {
    **dict.fromkeys(steps.SOURCES, stateless.passed),
    steps.Where: stateless.where,
    steps.Select: stateless.select,
    steps.Map: stateless.mapped,
    steps.KeyBy: stateless.passed,
    steps.Subscribe: stateless.subscribe,
    steps.Deliver: stateless.passed,
    steps.Sink: stateless.passed,
    steps.Union: union,
    steps.Changes: filters.changes,
    steps.Moved: filters.moved,
    steps.Join: joins.join,
    steps.Zip: pairs.zipped,
    steps.Combine: pairs.combine,
    steps.Running: states.running,
    steps.Fold: states.fold,
    steps.Processed: processes.processed,
}
AGGREGATED: dict[type[Window], Definition] = {
    TimeWindow: windows.aggregated,
    SessionWindow: sessions.aggregated,
    CountWindow: counts.aggregated,
}
TOP: dict[type[Window], Definition] = {
    TimeWindow: windows.top,
    SessionWindow: sessions.top,
    CountWindow: counts.top,
}


class Entering(NamedTuple):
    """An event that enters the graph: in which round, and at which source step (None: at every one)."""

    round: Round
    start: str | None
    event: Event


def definition_of(step: steps.Step) -> Definition:
    """What the step means."""
    match step:
        case steps.Aggregated(window=window):
            return AGGREGATED[type(window)]
        case steps.TopK(window=window):
            return TOP[type(window)]
        case _:
            return DEFINITIONS[type(step)]


def evaluate(graph: Graph, history: History, *, watch: Collection[Port] | None = None) -> Outcome:
    """What the graph gives for that history, on the ports watched: on all of them, when none are named."""
    effects = Effects()
    given = _without_feedback(graph, history, effects) if not graph.loops else _with_feedback(graph, history, effects)
    ports = [(v.id, port) for v in graph.vertices for port in range(len(v.schemas))] if watch is None else watch
    failures = sorted(
        (
            (round_, place, number, failure)
            for place, vertex in enumerate(graph.vertices)
            for number, (round_, failure) in enumerate(given[vertex.id].failures)
        ),
        key=lambda each: each[:3],
    )
    return Outcome(
        {(name, port): _results(given[name].ports[port]) for name, port in ports},
        tuple(failure for _, _, _, failure in failures),
    )


def _results(edge: list[Sent]) -> tuple[Result, ...]:
    elements = [sent.event for sent in edge if isinstance(sent.event, Element)]
    return tuple(Result(number, e.at, e.source, e.row) for number, e in enumerate(elements))


def _without_feedback(graph: Graph, history: History, effects: Effects) -> dict[str, Given]:
    return _evaluated(graph, [_entering(graph, number, entry) for number, entry in enumerate(history)], effects)


def _with_feedback(graph: Graph, history: History, effects: Effects) -> dict[str, Given]:
    entering: list[Entering] = []
    endless: list[tuple[Round, str, Element]] = []
    given = _evaluated(graph, entering, effects)
    for number, entry in enumerate(history):
        entering.append(_entering(graph, number, entry))
        for turn in range(ROUNDS_MAX + 1):
            given = _evaluated(graph, entering, effects)
            fed = [
                (start, sent.event)
                for (name, port), start in graph.loops
                for sent in given[name].ports[port]
                if sent.round == (number, turn) and isinstance(sent.event, Element)
            ]
            if not fed:
                break
            if turn == ROUNDS_MAX:
                endless += [((number, turn), start, element) for start, element in fed]
            else:
                entering += [Entering((number, turn + 1), start, element) for start, element in fed]
    for round_, start, element in endless:
        given[start].fail(round_, RowError(ENDLESS_FEEDBACK), element.row)
    return given


def _entering(graph: Graph, number: int, entry: Entry) -> Entering:
    match entry:
        case log.Element(step, at, source, row):
            return Entering((number, 0), _source_step(graph, step), Element(at, source, row))
        case log.Progress(step, source, at):
            return Entering((number, 0), _source_step(graph, step), Progress(source, at))
        case log.Presence(source, since):
            return Entering((number, 0), None, Presence(source, since))
        case log.Tick(now):
            return Entering((number, 0), None, Tick(now))


def _source_step(graph: Graph, name: str) -> str:
    if isinstance(graph.vertex(name).step, steps.SOURCES):
        return name
    raise InternalError(
        "I310",
        f"an entry of a history is for {name}, which is not a source",
        why="elements and promises enter at source steps only",
        fix="give the entry the id of a source step of this graph",
    )


def _evaluated(graph: Graph, entering: list[Entering], effects: Effects) -> dict[str, Given]:
    """What each vertex gives, in graph order: when its turn comes, all that arrives at it is known."""
    given: dict[str, Given] = {}
    schemas: dict[str, tuple[Schema, ...]] = {}
    for vertex in graph.vertices:
        arriving = _arriving(vertex, entering, given)
        inputs = tuple(schemas[name][port] for name, port in vertex.inputs)
        place = Place(vertex, inputs, effects)
        given[vertex.id] = definition_of(vertex.step)(place, arriving) if arriving else nothing(place)
        schemas[vertex.id] = vertex.schemas
    return given


def _arriving(
    vertex: Vertex,
    entering: list[Entering],
    given: dict[str, Given],
) -> list[Arrival]:
    if isinstance(vertex.step, steps.SOURCES):
        return [Arrival(round_, 0, event) for round_, start, event in entering if start in (None, vertex.id)]
    return arrivals([given[name].ports[port] for name, port in vertex.inputs])
