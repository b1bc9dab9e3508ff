"""The edge engine gives what the reference engine gives: fused or not, by panes or not, with restarts or without."""

from __future__ import annotations

import random
from collections.abc import Collection

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.engines.edge import Virtual
from catchment.engines.reference import evaluate
from catchment.plan.graph import Graph
from catchment.plan.history import Entry, Outcome
from tests.unit.edge.generated import graph, looped
from tests.unit.edge.generated_history import by_panes, differences, ends, history

SEEDS = st.integers(0, 10**9)
Ports = Collection[tuple[str, int]] | None


def ran(drawn: Graph, entries: list[Entry], ports: Ports = None, restarts: random.Random | None = None) -> Outcome:
    virtual = Virtual(drawn, ports)
    for entry in entries:
        virtual.feed(entry)
        if restarts is not None and restarts.random() < 0.2:
            virtual.restart()
    return virtual.outcome()


@settings(deadline=None, max_examples=80)
@given(SEEDS)
@example(0)
def test_edge_is_reference(seed: int) -> None:
    draw = random.Random(seed)
    drawn = graph(draw)
    entries = history(draw, drawn, draw.choice((5, 20, 60)))
    expected = evaluate(drawn, tuple(entries))
    for each in (drawn, by_panes(drawn)):
        assert differences(expected, ran(each, entries), expected.results) == []
        assert differences(expected, ran(each, entries, ends(each)), ends(each)) == []


@settings(deadline=None, max_examples=40)
@given(SEEDS)
def test_edge_is_reference_where_there_is_feedback(seed: int) -> None:
    draw = random.Random(seed)
    drawn = looped(draw)
    entries = history(draw, drawn, draw.choice((3, 10)))
    expected = evaluate(drawn, tuple(entries))
    assert differences(expected, ran(drawn, entries), expected.results) == []
    assert differences(expected, ran(drawn, entries, ends(drawn), random.Random(seed)), ends(drawn)) == []


@settings(deadline=None, max_examples=80)
@given(SEEDS)
def test_a_restart_changes_no_bit(seed: int) -> None:
    draw = random.Random(seed)
    drawn = draw.choice((graph, lambda draw: by_panes(graph(draw))))(draw)
    entries = history(draw, drawn, draw.choice((20, 60)))
    through, stopped = ran(drawn, entries), ran(drawn, entries, restarts=random.Random(seed))
    # As bytes, since NaN is not NaN, and -0.0 is 0.0.
    for edge, results in through.results.items():
        assert msgspec.msgpack.encode(results) == msgspec.msgpack.encode(stopped.results[edge])
    assert msgspec.msgpack.encode(through.failures) == msgspec.msgpack.encode(stopped.failures)
