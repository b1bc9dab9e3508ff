"""Rewrites leave the meaning as it is: random programs give the same before and after, by the reference engine."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from catchment.engines import edge
from catchment.engines.reference import evaluate
from catchment.errors import ProgramError
from catchment.plan.check import mistakes
from catchment.plan.document import encoded, read
from catchment.plan.graph import Graph, Port, graph_of
from catchment.plan.history import Outcome
from catchment.plan.place import place
from catchment.plan.rewrites import REWRITES, rewritten, stages
from tests.unit.plan.random_programs import Drawn, histories, program_of, programs

NAMES = [name for name, _ in REWRITES]
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def graph_drawn(drawn: Drawn) -> Graph:
    graph = graph_of(program_of(drawn))
    found = list(mistakes(graph))
    # A sync filter is not carried by the reference engine, which has no crossings; nothing else is wrong with these.
    assume(not found)
    return graph


def ends(graph: Graph) -> dict[str, Port]:
    return {name: port for name, port in graph.streams if name in graph.results}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def compare(before: Graph, after: Graph, old: Outcome, new: Outcome) -> None:
    assert ends(before).keys() == ends(after).keys()
    for name, port in ends(before).items():
        was, now = old.results[port], new.results[ends(after)[name]]
        assert len(was) == len(now), name
        for one, other in zip(was, now, strict=True):
            assert (one.number, one.at, one.source) == (other.number, other.at, other.source), name
            assert same(one.row, other.row), (name, one.row, other.row)


def failures(outcome: Outcome) -> set[tuple[str, Any]]:
    """Why, and of what: a step that two streams share fails once for both."""
    return {(failure.reason, failure.row) for failure in outcome.failures}


@SLOW
@given(programs(), st.data())
def test_all_rewrites_together_preserve_the_results(drawn: Drawn, data: st.DataObject) -> None:
    before = graph_drawn(drawn)
    history = data.draw(histories(before))
    after = rewritten(before)
    old, new = evaluate(before, history), evaluate(after, history)
    compare(before, after, old, new)
    assert (
        Counter(reason for reason, _ in failures(old)).keys() == Counter(reason for reason, _ in failures(new)).keys()
    )


@SLOW
@given(programs(), st.data())
def test_each_rewrite_preserves_the_results_and_what_is_quarantined(drawn: Drawn, data: st.DataObject) -> None:
    before = graph_drawn(drawn)
    history = data.draw(histories(before))
    name = data.draw(st.sampled_from(NAMES))
    after = rewritten(before, without=[other for other in NAMES if other != name])
    old, new = evaluate(before, history), evaluate(after, history)
    compare(before, after, old, new)
    if name == "push_columns":  # what is quarantined lacks the columns that were not sent
        assert {reason for reason, _ in failures(old)} == {reason for reason, _ in failures(new)}
    else:
        assert failures(old) == failures(new)
    if name in ("push_filters", "merge_filters"):
        assert old.failures == new.failures  # also at the same steps, as often


@SLOW
@given(programs(), st.data())
def test_the_edge_engine_runs_the_rewritten_to_the_same_results(drawn: Drawn, data: st.DataObject) -> None:
    """Also by panes, which the reference engine does not know."""
    before = graph_drawn(drawn)
    history = data.draw(histories(before))
    after = rewritten(before)
    compare(before, after, evaluate(before, history), edge.run(after, history))


@SLOW
@given(programs())
def test_what_is_rewritten_is_well_formed_and_has_a_place(drawn: Drawn) -> None:
    graph = graph_drawn(drawn)
    for stage in stages(graph):
        assert [str(mistake) for mistake in mistakes(stage.graph)] == []
    plan = place(stages(graph)[-1].graph)
    assert read(encoded(plan)) == plan
    assert encoded(read(encoded(plan))) == encoded(plan)
    assert {vertex.id for part in plan.parts for vertex in part.vertices} >= {
        vertex.id for vertex in stages(graph)[-1].graph.vertices
    }


def test_the_random_programs_meet_every_rewrite() -> None:
    """Otherwise these tests would hold of nothing."""
    met: Counter[str] = Counter()

    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(programs())
    def count(drawn: Drawn) -> None:
        try:
            graph = graph_drawn(drawn)
        except ProgramError:
            return
        for stage in stages(graph):
            met.update({stage.rewrite} if any(change.done for change in stage.changes) else set())

    count()
    assert [name for name in NAMES if met[name] == 0] == []
