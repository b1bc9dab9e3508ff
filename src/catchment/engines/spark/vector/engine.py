"""A part's rest over a batch: vectorised steps as far as they go, the engine of devices for what stands behind them.

Steps are vectorised from the sources on. A step that is not, and all that it reaches, runs event by event, fed at the
places where its events are. Where event by event would need rounds (two ways that meet, feedback), all of it does.
The results of a port are the same either way, and in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

from catchment.engines.edge import EdgeEngine
from catchment.engines.edge.reach import meets
from catchment.engines.spark.events import PRESENCE, PROGRESS
from catchment.engines.spark.rows import Rows
from catchment.engines.spark.state.forgetting import Gone, forget
from catchment.engines.spark.vector.build import vector_operator
from catchment.engines.spark.vector.course import spread
from catchment.engines.spark.vector.flow import Failed, Flow, VectorOperator, kinds_of
from catchment.errors import ProgramError
from catchment.operators.contract import Port as Pushing
from catchment.plan.graph import Graph, Port, Vertex
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row

FORMAT = 1
"""The version of snapshots."""


class VectorEngine:
    """A graph whose outputs are named."""

    def __init__(self, graph: Graph, outputs: dict[str, Port]) -> None:
        self._graph = graph
        self._outputs = outputs
        self._failed = Failed()
        self._numbers = {vertex.id: number for number, vertex in enumerate(graph.vertices)}
        self._steps = _vectorised(graph)
        for name, step in self._steps.items():
            step.name, step.number, step.failed = name, self._numbers[name], self._failed
        self._rest = _rest(graph, set(self._steps))
        self._place = 0
        self._collected: dict[str, list[tuple[int, Source, Row]]] = {name: [] for name in outputs}
        self._edge = self._made() if self._rest is not None else None

    @property
    def vectorised(self) -> tuple[str, ...]:
        """The steps that run over whole batches."""
        return tuple(self._steps)

    @property
    def steps(self) -> dict[str, VectorOperator]:
        """They."""
        return self._steps

    @property
    def is_whole(self) -> bool:
        """Whether no step runs event by event."""
        return self._rest is None

    def run(self, entering: dict[str, Flow]) -> tuple[dict[str, Rows], list[tuple[str, str, Row]]]:
        """Take a batch: what each source step gets. Gives the results of each output, and what failed."""
        given: dict[Port, Flow] = {}
        self._failed.found.clear()
        entering = {name: spread(flow) for name, flow in entering.items()}
        for vertex in self._graph.vertices:
            step = self._steps.get(vertex.id)
            if step is None:
                continue
            flows = [given[port] for port in vertex.inputs]
            if not flows:
                flows = [entering.get(vertex.id) or Flow(Rows.none(kinds_of(vertex.schemas[0])), [])]
            for port, out in enumerate(step.take(flows)):
                given[vertex.id, port] = out
        results = {name: given[port].rows for name, port in self._outputs.items() if port in given}
        if self._rest is not None:
            self._feed(given, entering)
            for name, collected in self._collected.items():
                if collected:
                    vertex_id, port = self._outputs[name]
                    results[name] = Rows.of(collected, kinds_of(self._graph.vertex(vertex_id).schemas[port]))
                    collected.clear()
        return {name: rows for name, rows in results.items() if len(rows)}, self._failed.in_order()

    def snapshot(self) -> dict[str, Any]:
        """All that is remembered, as plain data."""
        vectors = {name: step.snapshot() for name, step in self._steps.items()}
        return {
            "format": FORMAT,
            "vectors": {name: saved for name, saved in vectors.items() if saved is not None},
            "edge": None if self._edge is None else self._edge.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Remember that; what the graph has gained since begins anew, and what it has lost is forgotten."""
        blank = self.blank
        kept, by_event = saved["vectors"], (saved["edge"] or {"states": {}})["states"]
        if self._rest is not None:
            check_adopted(kept, {vertex.id for vertex in self._rest.vertices})
        for name, step in self._steps.items():
            if name in kept:
                step.restore(kept[name])
            elif by_event.get(name):
                step.adopt(by_event[name])
            elif name in blank["vectors"]:
                step.restore(blank["vectors"][name])
        if self._edge is not None:
            edge = saved["edge"] or blank["edge"]
            named = {part: _fitted(blank["edge"][part], edge[part]) for part in ("states", "time_context")}
            self._edge.restore({**edge, **named})

    def forget(self, gone: Gone) -> None:
        """Remember nothing of a device, or of a user."""
        for step in self._steps.values():
            step.drop(gone)
        if self._edge is not None and self._rest is not None:
            saved = self._edge.snapshot()
            self._edge.restore({**saved, "states": forget(self._rest, saved["states"], gone)})

    @cached_property
    def blank(self) -> dict[str, Any]:
        """What an engine of this graph remembers before it has taken anything."""
        return VectorEngine(self._graph, self._outputs).snapshot()

    def _made(self) -> EdgeEngine:
        assert self._rest is not None
        engine = EdgeEngine(self._rest, on_failure=self._fail)
        own = {vertex.id for vertex in self._rest.vertices}
        for name, port in self._outputs.items():
            if port[0] in own and port[0] not in self._steps:
                engine.on_output(port, self._collector(self._collected[name]))
        return engine

    def _fail(self, step: str, error: RowError, row: Row) -> None:
        self._failed.add(self._place, self._numbers[step], step, error.reason, row)

    def _collector(self, into: list[tuple[int, Source, Row]]) -> Callable[[int, int, Source, Row], None]:
        return lambda number, at, source, row: into.append((at, source, row))

    def _feed(self, given: dict[Port, Flow], entering: dict[str, Flow]) -> None:
        assert self._edge is not None
        assert self._rest is not None
        flows: list[tuple[str, Flow]] = []
        for vertex in self._rest.vertices:
            if vertex.id in self._steps or vertex.inputs:
                continue
            name, _, number = vertex.id.rpartition(":")
            flow = given[name, int(number)] if name in self._steps else entering.get(vertex.id)
            if flow is not None:
                flows.append((vertex.id, flow))
        if not self._steps:
            self._in_turn(flows)
            return
        ports = self._edge.wiring.entries
        for name, flow in flows:
            for self._place, push in _events(flow, ports[name]):
                push()

    def _in_turn(self, flows: list[tuple[str, Flow]]) -> None:
        """All steps event by event, as a device would: entries of several sources in the order of the log."""
        engine = self._edge
        assert engine is not None
        entries: list[tuple[int, int, str, tuple[Any, ...]]] = []
        for name, flow in flows:
            rows = flow.rows
            listed = zip(rows.place.tolist(), rows.at.tolist(), rows.source.tolist(), rows.objects(), strict=True)
            entries += [(place, 0, name, (at, rows.sources[source], row)) for place, at, source, row in listed]
            entries += [(place, 1, name, tuple(what)) for place, *what in flow.controls]
        told: set[int] = set()
        for place, kind, name, what in sorted(entries, key=lambda each: each[:2]):
            self._place = place
            if kind == 0:
                engine.element(name, *what)
            elif what[0] == PROGRESS:
                engine.progress(name, Source(what[1], what[2]), what[3])
            elif place not in told:  # presence and ticks enter at every source step at once
                told.add(place)
                if what[0] == PRESENCE:
                    engine.presence(Source(what[1], what[2]), what[3])
                else:
                    engine.tick(what[1])


def check_adopted(kept: Iterable[str], by_event: Collection[str]) -> None:
    """Refuse state that steps kept in columns which run event by event now."""
    lost = sorted(name for name in kept if name in by_event)
    if lost:
        raise ProgramError(
            "C333",
            "the program cannot go on from the state that is here",
            why=f"{', '.join(lost)} kept state in columns, and with the steps there are now runs event by event",
            fix="give a changed step another name, or run the program in a new --data directory",
        )


def _fitted(blank: dict[str, Any], saved: dict[str, Any]) -> dict[str, Any]:
    """What was saved of the steps that there are, and a beginning for the others."""
    return saved if saved.keys() == blank.keys() else {name: saved.get(name, new) for name, new in blank.items()}


def _vectorised(graph: Graph) -> dict[str, VectorOperator]:
    """The steps that run over batches, by vertex: each with all that stands before it."""
    if graph.loops or any(isinstance(vertex.step, steps.Feedback) for vertex in graph.vertices):
        return {}
    found: dict[str, VectorOperator] = {}
    for vertex in graph.vertices:
        if all(name in found for name, _ in vertex.inputs):
            schemas = tuple(graph.vertex(name).schemas[port] for name, port in vertex.inputs)
            step = vector_operator(vertex, schemas)
            if step is not None:
                found[vertex.id] = step
    if all(not graph.vertex(name).inputs for name in found):
        return {}
    rest = _rest(graph, set(found))
    if rest is not None and meets(rest, [vertex.id for vertex in rest.vertices if not vertex.inputs]):
        return {}
    return found


def _rest(graph: Graph, vectorised: set[str]) -> Graph | None:
    """The steps that run event by event, where a source step stands for each vectorised port that they read."""
    rest: list[Vertex] = []
    entrances: dict[str, Vertex] = {}
    changed = [vertex for vertex in graph.vertices if vertex.id not in vectorised]
    if not changed:
        return None
    import msgspec

    for vertex in changed:
        inputs = []
        for name, port in vertex.inputs:
            if name not in vectorised:
                inputs.append((name, port))
                continue
            entrance = f"{name}:{port}"
            upstream = graph.vertex(name)
            schema = upstream.schemas[port]
            entrances[entrance] = msgspec.structs.replace(
                upstream, id=entrance, step=steps.Append(schema), inputs=(), schemas=(schema,)
            )
            inputs.append((entrance, 0))
        rest.append(msgspec.structs.replace(vertex, inputs=tuple(inputs)))
    return msgspec.structs.replace(graph, vertices=(*entrances.values(), *rest), streams=(), results=())


def _events(flow: Flow, port: Pushing) -> Iterator[tuple[int, Callable[[], None]]]:
    """The events of a flow in order: (place, what brings it)."""
    rows = flow.rows
    listed = list(zip(rows.place.tolist(), rows.at.tolist(), rows.source.tolist(), rows.objects(), strict=True))
    number = 0
    for place, kind, *what in [*flow.controls, (None, None)]:
        while number < len(listed) and (place is None or listed[number][0] <= place):
            here, at, source, row = listed[number]
            number += 1
            yield here, lambda at=at, source=source, row=row: port.element(at, rows.sources[source], row)  # type: ignore[misc]
        if place is None:
            return
        if kind == PROGRESS:
            device, owner, at = what
            yield place, lambda device=device, owner=owner, at=at: port.progress(Source(device, owner), at)  # type: ignore[misc]
        elif kind == PRESENCE:
            device, owner, since = what
            yield place, lambda device=device, owner=owner, since=since: port.presence(Source(device, owner), since)  # type: ignore[misc]
        else:
            yield place, lambda now=what[0]: port.tick(now)  # type: ignore[misc]
