"""Rounds: a step of several inputs takes what one entry brought port by port; feedback comes in the next round."""

from __future__ import annotations

from typing import Any

import pytest

import catchment as cm
from catchment.engines.edge import ROUNDS_MAX, EdgeEngine, run
from catchment.engines.edge.reach import feeds_back, meets
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Element, Entry, Progress, Source
from catchment.program.row_error import ENDLESS_FEEDBACK
from catchment.testing import alone

ADA = Source("a1", "ada")


class Count(cm.Record):
    """What goes round."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


@cm.function
def three(count: Count) -> list[Count]:
    """Three for one."""
    return [count.replace(n=count.n * 10 + digit) for digit in (1, 2, 3)]


def rows(graph: Graph, entries: list[Entry], edge: tuple[str, int]) -> list[Any]:
    return [result.row[2] for result in run(graph, entries, [edge]).results[edge]]


def test_what_one_element_brought_is_taken_port_by_port() -> None:
    # Depth first, the two ways would interleave: 11, 1, 12, 1, ...
    graph = graph_of(alone(lambda counts: counts.flat_map(three).union(counts, counts.flat_map(three)), counts=Count))
    found = rows(graph, [Element("counts/append", 1, ADA, ("ada", 1, 1))], ("alone/union", 0))
    assert found == [11, 12, 13, 1, 11, 12, 13]


def test_a_step_later_in_the_graph_waits_for_those_before_it() -> None:
    graph = graph_of(
        alone(lambda counts: counts.union(counts.where(Count.n > 1)).union(counts.flat_map(three)), counts=Count)
    )
    assert rows(graph, [Element("counts/append", 1, ADA, ("ada", 1, 2))], ("alone/union.2", 0)) == [2, 2, 21, 22, 23]


def test_of_one_tick_a_join_takes_both_sides_before_it_gives_its_own() -> None:
    def ticked(left: cm.Stream[Count], right: cm.Stream[Count]) -> cm.Stream[Any]:
        # The right source stands first in the graph and on the second port.
        late = right.key_by(Count.user).window(cm.tumble(10)).agg(n=cm.count()).late
        return left.key_by(Count.user).zip(late.key_by(Count.user), n=Count.n, other=cm.right(Count.n))

    graph = graph_of(alone(ticked, right=Count, left=Count))
    ticks: list[int] = []
    engine = EdgeEngine(graph)
    engine.wiring.operators["alone/zip"]._outputs[0].tick = ticks.append  # type: ignore[attr-defined]
    engine.tick(5)
    engine.tick(4)
    engine.tick(9)
    assert ticks == [5, 9]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda left, right: left.union(right), False),
        (lambda left, right: left.union(left.where(Count.n > 1)), True),
        (lambda left, right: left.where(Count.n > 1).union(right).union(left), True),
        (lambda left, right: right.flat_map(three).union(left.union(right)), False),
    ],
)
def test_only_what_can_meet_has_to_wait(step: Any, expected: bool) -> None:
    graph = graph_of(alone(step, left=Count, right=Count))
    assert meets(graph, ["left/append"]) is expected
    assert meets(graph, ["left/append", "right/append"])


def looped(limit: int) -> Graph:
    program = cm.Program("looped")

    @program.stream(at=cm.CLOUD)
    def counts(cloud: cm.CloudSite) -> cm.Stream[Count]:
        return cloud.source(Count)

    @program.stream(at=cm.CLOUD)
    def other(cloud: cm.CloudSite) -> cm.Stream[Count]:
        return cloud.source(Count)

    again = program.loop(Count, "again")

    @program.stream(at=cm.CLOUD)
    def all_of_them(counts: cm.Stream[Count]) -> cm.Stream[Count]:
        return counts.union(again)

    @program.stream(at=cm.CLOUD)
    def more(all_of_them: cm.Stream[Count]) -> cm.Stream[Count]:
        return all_of_them.where(Count.n < limit).select(Count, n=Count.n + 1)

    program.close_loop("again", more)
    return graph_of(program)


def test_feedback_comes_before_the_next_entry() -> None:
    entries: list[Entry] = [Element("counts/append", at, ADA, ("ada", at, n)) for at, n in ((1, 0), (2, 10), (3, 2))]
    assert rows(looped(3), entries, ("all_of_them/union", 0)) == [0, 1, 2, 3, 10, 2, 3]
    assert feeds_back(looped(3), "counts/append")
    assert not feeds_back(looped(3), "other/append")


def test_endless_feedback_is_stopped_and_quarantined() -> None:
    graph = looped(10**9)
    entries: list[Entry] = [Element("counts/append", 1, ADA, ("ada", 1, 0)), Progress("counts/append", ADA, 9)]
    outcome = run(graph, entries)
    assert len(outcome.results["all_of_them/union", 0]) == ROUNDS_MAX + 1
    (failure,) = outcome.failures
    assert failure.reason == ENDLESS_FEEDBACK
    assert failure.row == ("ada", 1, ROUNDS_MAX + 1)
    assert failure.step.endswith("/feedback")


def test_many_elements_with_feedback_are_finished_one_by_one() -> None:
    found: list[int] = []
    engine = EdgeEngine(looped(3))
    engine.on_output(("all_of_them/union", 0), lambda number, at, source, row: found.append(row[2]))
    engine.feed_many("counts/append", ADA, [("ada", 1, 1), ("ada", 2, 2)])
    assert found == [1, 2, 3, 2, 3]
