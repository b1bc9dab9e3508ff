"""Chains of stateless steps: fused or one by one, one element or many, they give the same and count the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from catchment.engines.edge import EdgeEngine
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Source
from catchment.program.row_error import RowError
from catchment.program.types import Row
from catchment.testing import alone


class Fix(cm.Record):
    """What is read."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed: cm.Field[float | None]
    n: cm.Field[int]


class Other(cm.Record):
    """With a time of its own, a default, and a float that is given an int."""

    when: cm.Field[cm.Instant] = cm.event_time()
    ratio: cm.Field[float]
    note: cm.Field[str] = cm.field(default="none")


@cm.function
def twice(fix: Fix) -> list[Fix]:
    """Two for one, or a failure at 3."""
    if fix.n == 3:
        raise ValueError("three")
    return [fix, fix.replace(n=fix.n + 10)]


@cm.function
def plainly(other: Other) -> Other:
    """Fails where it gives what it may not."""
    return other.replace(ratio="much") if other.ratio == 1.0 else other


told: list[float] = []


@cm.function
def tell(other: Other) -> None:
    """An effect; fails on 3."""
    if other.ratio == 3.0:
        raise ValueError
    told.append(other.ratio)


PROGRAM = alone(
    lambda fixes: (
        fixes.where((Fix.speed > 1) | (Fix.n == 2))
        .flat_map(twice)
        .select(Other, when=Fix.at + cm.microseconds(5), ratio=Fix.n // (Fix.n - 4))
        .where(Other.ratio != 0)
        .map(plainly)
        .subscribe(tell)
        .key_by(Other.note)
    ),
    fixes=Fix,
)
GRAPH = graph_of(PROGRAM)
LAST = GRAPH.vertices[-1].id
ADA = Source("a1", "ada")
ROWS = st.lists(
    st.tuples(st.just("ada"), st.integers(0, 9), st.one_of(st.none(), st.sampled_from([0.5, 2.0])), st.integers(0, 16)),
    max_size=20,
)


class Collected:
    """What an engine gave."""

    def __init__(self, graph: Graph, ports: list[tuple[str, int]]) -> None:
        self.results: dict[tuple[str, int], list[Any]] = {edge: [] for edge in ports}
        self.failures: list[tuple[str, str, Row]] = []
        self.engine = EdgeEngine(graph, on_failure=self.fail)
        for edge in ports:
            self.engine.on_output(edge, lambda *event, edge=edge: self.results[edge].append(event))

    def fail(self, step: str, error: RowError, row: Row) -> None:
        self.failures.append((step, error.reason, row))


def failures_by_step(collected: Collected) -> list[tuple[str, str, Row]]:
    return sorted(collected.failures, key=lambda failure: failure[0])


@given(ROWS)
def test_fused_or_not_and_one_or_many_is_the_same(rows: list[Row]) -> None:
    whole = Collected(GRAPH, [(vertex.id, 0) for vertex in GRAPH.vertices])
    fused, many = Collected(GRAPH, [(LAST, 0)]), Collected(GRAPH, [(LAST, 0)])
    for row in rows:
        whole.engine.element("fixes/append", row[1], ADA, row)
        fused.engine.element("fixes/append", row[1], ADA, row)
    many.engine.feed_many("fixes/append", ADA, rows)
    for other in (fused, many):
        assert other.results[LAST, 0] == whole.results[LAST, 0]
        assert failures_by_step(other) == failures_by_step(whole)
        assert other.engine.time_context() == whole.engine.time_context()


def test_what_each_step_makes_of_an_element() -> None:
    told.clear()
    collected = Collected(GRAPH, [(LAST, 0)])
    rows = [("ada", 1, 2.0, n) for n in (0, 2, 3, 4, 5, 6)] + [("ada", 1, None, 6)]
    collected.engine.feed_many("fixes/append", ADA, rows)
    # n and n + 10, floor-divided by n - 4: a time of its own, a float, and the default.
    assert collected.results[LAST, 0] == [(0, 6, ADA, (6, -1.0, "none")), (1, 6, ADA, (6, 5.0, "none"))]
    assert told == [-1.0, 5.0]
    assert [(step, reason) for step, reason, _ in failures_by_step(collected)] == [
        ("alone/map", "function failed"),  # twice(3), which gives none of its two
        *[("alone/map.2", "function result")] * 5,  # a text where a float is declared, of 10, 12, 14, 15 and 16
        ("alone/select", "division by zero"),  # of 4
        ("alone/subscribe", "function failed"),  # of 6, that is 3.0
    ]
    counts = collected.engine.time_context()
    assert [counts[f"alone/{name}"]["failed"] for name in ("map", "map.2", "select", "subscribe")] == [
        [1],
        [5],
        [1],
        [1],
    ]
    assert {name.partition("/")[2]: count["out"] for name, count in counts.items()} == {
        "append": [7],
        "where": [6],
        "map": [10],
        "select": [9],
        "where.2": [8],
        "map.2": [3],
        "subscribe": [2],
        "keyby": [2],
    }
    assert counts["alone/select"]["in"] == counts["alone/map"]["out"]


@cm.function
def itself(fix: Fix) -> list[Fix]:
    """One for one."""
    return [fix]


def test_many_steps_that_give_many_are_more_than_one_function() -> None:
    # Python refuses a function with twenty loops in one another.
    def thirty(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        for _ in range(30):
            fixes = fixes.flat_map(itself)
        return fixes

    graph = graph_of(alone(thirty, fixes=Fix))
    collected = Collected(graph, [(graph.vertices[-1].id, 0)])
    collected.engine.feed_many("fixes/append", ADA, [("ada", 1, 2.0, 2)] * 3)
    assert [number for number, *_ in collected.results[graph.vertices[-1].id, 0]] == [0, 1, 2]
    assert all(count["out"] == [3] for count in collected.engine.time_context().values())


def test_a_text_in_an_expression_is_no_source() -> None:
    program = alone(
        lambda fixes: fixes.where(Fix.user != "\n    return").select(said=cm.concat(Fix.user, "'continue'\\")),
        fixes=Fix,
    )
    collected = Collected(graph_of(program), [("alone/select", 0)])
    collected.engine.feed_many("fixes/append", ADA, [("ada", 1, None, 1), ("\n    return", 1, None, 1)])
    assert [row for *_, row in collected.results["alone/select", 0]] == [("ada'continue'\\",)]


def test_numbers_go_on_after_a_restart() -> None:
    first, second = Collected(GRAPH, [(LAST, 0)]), Collected(GRAPH, [(LAST, 0)])
    row = ("ada", 1, 2.0, 2)
    first.engine.feed_many("fixes/append", ADA, [row, row])
    second.engine.restore(first.engine.snapshot())
    second.engine.feed_many("fixes/append", ADA, [row])
    assert [number for number, *_ in first.results[LAST, 0]] == [0, 1]
    assert [number for number, *_ in second.results[LAST, 0]] == [2]


@pytest.mark.parametrize("rows", [[], [("ada", 1, 2.0, 2)]])
def test_other_events_pass_a_chain_untouched(rows: list[Row]) -> None:
    program = alone(lambda fixes: fixes.where(Fix.n > 100).select(Fix).key_by(Fix.user).state(n=cm.count()), fixes=Fix)
    promised: list[tuple[Source, int]] = []
    engine = EdgeEngine(graph_of(program))
    engine.on_output(("alone/running", 0), lambda *event: None, progress=lambda *promise: promised.append(promise))
    engine.feed_many("fixes/append", ADA, rows)
    engine.progress("fixes/append", ADA, 7)
    engine.tick(10**9)
    # The clock is far ahead, and the source was heard with the clock's first tick.
    assert promised == [(Source("", "ada"), 7)]
