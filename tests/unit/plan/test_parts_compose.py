"""Parts joined by what they send do what the whole graph does: a link without delay, by the edge engine.

Steps that wait stand in the cloud here, and nobody goes away: what a device that went away means to a stream that was
already aggregated on it is the gateway's to say, and not placement's. Each part has one stream coming in, for nobody
promises which of two brings its element first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import catchment as cm
from catchment.engines.edge import EdgeEngine, run
from catchment.plan.check import mistakes
from catchment.plan.graph import Port, graph_of
from catchment.plan.history import Element, History, Progress, Source, Tick
from catchment.plan.physical import Plan, SyncStream
from catchment.plan.place import place
from catchment.plan.rewrites import rewritten
from catchment.program import steps
from catchment.program.types import Row
from tests.unit.plan.random_programs import Drawn, histories, program_of, programs

Taken = dict[Port, list[tuple[int, int, Source, Row]]]


class Linked:
    """An engine for each part, and sync streams that bring at once what is put in."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.engines = {part.name: EdgeEngine(plan.graph(part)) for part in plan.parts}
        self.taken: Taken = {}
        for stream in plan.syncs:
            # Several streams may carry one port; an engine tells one taker of each.
            same = [other for other in plan.syncs if other.source == stream.source]
            if same[0] is stream:
                self.engines[stream.from_part].on_output(
                    stream.source, partial(self._bring, same), progress=partial(self._promise, same)
                )
        carried = {stream.source for stream in plan.syncs}
        for port in plan.streams.values():
            if port not in carried:
                part = next(p for p in plan.parts if any(v.id == port[0] for v in p.vertices))
                # Equal streams are one port with several names.
                self.taken.setdefault(port, [])
                self.engines[part.name].on_output(port, partial(self._take, port))

    def _bring(self, streams: list[SyncStream], number: int, at: int, source: Source, row: Row) -> None:
        for stream in streams:
            self.engines[stream.to_part].element(stream.target, at, source, row)

    def _promise(self, streams: list[SyncStream], source: Source, at: int) -> None:
        for stream in streams:
            self.engines[stream.to_part].progress(stream.target, source, at)

    def _take(self, port: Port, number: int, at: int, source: Source, row: Row) -> None:
        self.taken[port].append((number, at, source, row))

    def feed(self, history: History) -> None:
        of = {vertex.id: part.name for part in self.plan.parts for vertex in part.vertices}
        for entry in history:
            match entry:
                case Element():
                    self.engines[of[entry.step]].element(entry.step, entry.at, entry.source, entry.row)
                case Progress():
                    self.engines[of[entry.step]].progress(entry.step, entry.source, entry.at)
                case Tick():
                    for part in self.plan.parts:
                        self.engines[part.name].tick(entry.now)
                case _:
                    pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(programs(), st.booleans(), st.data())
def test_parts_and_what_they_send_do_what_the_graph_does(drawn: Drawn, rewrite: bool, data: st.DataObject) -> None:
    graph = graph_of(program_of(drawn))
    assume(not list(mistakes(graph)))
    assume(all(v.site == cm.CLOUD or not isinstance(v.step, steps.LATE_PORTS) for v in graph.vertices))
    assume(not any(piece.thinned for piece in drawn))  # a sync filter is the link's own
    history = tuple(entry for entry in data.draw(histories(graph)) if isinstance(entry, Element | Progress | Tick))
    graph = rewritten(graph) if rewrite else graph
    whole: Any = run(graph, history)
    plan = place(graph)
    assume(all(len(part.inputs) <= 1 for part in plan.parts))
    linked = Linked(plan)
    linked.feed(history)
    for port, results in linked.taken.items():
        expected = whole.results[port]
        assert results == [(result.number, result.at, result.source, result.row) for result in expected], port
