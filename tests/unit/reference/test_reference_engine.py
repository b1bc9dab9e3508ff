"""What stories do not show of the reference engine: exactness, sources of results, effects, watermarks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import catchment as cm
from catchment.engines.reference import aggregates, evaluate
from catchment.engines.reference.events import Arrival, Element, Event, Presence, Progress, Tick
from catchment.engines.reference.watermarks import NEVER, Watermarks
from catchment.errors import InternalError
from catchment.plan import history as log
from catchment.plan.graph import graph_of
from catchment.plan.history import Source
from catchment.program.aggregate import AggregateCall, NamedAggregate
from catchment.program.types import FLOAT
from catchment.program.window import Closing
from catchment.testing import History, alone, run


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    walked_m: cm.Field[float] = cm.field(step=0.1)


class Task(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    left: cm.Field[int]


PHONE, WATCH, BOBS = Source("phone", "ada"), Source("watch", "ada"), Source("phone-2", "bob")


def of(function: str, values: list[Any], step: float | None = None) -> Any:
    aggregate = NamedAggregate("it", AggregateCall(function, step=step), FLOAT, True)
    members = [aggregates.Member(at, (value,)) for at, value in enumerate(values)]
    (result,), failure = aggregates.results([aggregate], members)
    assert failure is None
    return result


def test_floats_with_a_step_are_summed_as_if_by_hand() -> None:
    values = [0.1] * 10 + [1e9 + 0.3, -1e9]
    assert of("sum", values, step=0.1) == 1.3
    assert of("mean", [0.1, 0.2], step=0.1) == 0.3 / 2
    assert of("variance", [0.1, 0.3], step=0.1) == 0.01


def test_floats_without_a_step_are_summed_exactly_and_rounded_once() -> None:
    values = [1e16, 1.0, -1e16, 1e-3]
    assert of("sum", values) == 1.001
    assert of("mean", values) == float(sum(map(Fraction, values)) / 4)


def test_what_is_too_large_to_be_counted_in_steps_is_a_float() -> None:
    assert of("sum", [1e308, 5e307], step=0.1) == 1.5e308
    assert of("sum", [1e308, 1e308]) == math.inf
    assert of("mean", [1e308, 1e308]) == 1e308


def test_the_mean_of_ints_is_the_nearest_float() -> None:
    assert of("mean", [2**53 + 1, 2**53 + 1]) == float(2**53 + 1)
    assert of("variance", [2**62, 2**62 + 2]) == 1.0


def test_results_have_the_source_of_their_group() -> None:
    program = alone(lambda fixes: fixes.key_by(Fix.user).state(n=cm.count()), fixes=Fix)
    history = History(program).send({"user": "ada", "at": 1, "walked_m": 1.0}, device="phone").end()
    assert [result.source for result in run(program, history).results("alone")] == [Source("", "ada")]
    everyone = alone(lambda fixes: fixes.state(n=cm.count()), fixes=Fix)
    history = History(everyone).send({"user": "ada", "at": 1, "walked_m": 1.0}).end()
    assert [result.source for result in run(everyone, history).results("alone")] == [Source("", None)]


def watermarks(*events: Event, scope: Any = "own", stamp: str | None = "user", **closing: Any) -> list[Any]:
    arrivals = [Arrival((number, 0), 0, event) for number, event in enumerate(events)]
    marks = Watermarks(arrivals, 1, Closing(**closing), scope, stamp, lambda port, row: row[0])
    return marks.after


def test_a_group_waits_for_all_of_its_sources_and_never_goes_back() -> None:
    assert watermarks(
        Progress(PHONE, 10), Progress(WATCH, 5), Progress(WATCH, 20), Progress(PHONE, 7), Progress(BOBS, 3)
    ) == [{"ada": 10}, {"ada": 10}, {"ada": 10}, {"ada": 10}, {"ada": 10, "bob": 3}]


def test_silence_counts_from_the_last_event_of_whichever_kind() -> None:
    fix = Element(1, PHONE, ("ada",))
    assert watermarks(
        Progress(PHONE, 1), Tick(100), Tick(109), fix, Tick(118), Tick(119), Presence(PHONE, None), Tick(128), idle=10
    ) == [{"ada": mark} for mark in (1, 1, 1, 1, 1, 109, 109, 109)]


def test_who_is_away_is_not_quiet() -> None:
    away: list[Event] = [Progress(PHONE, 1), Presence(PHONE, 5), Tick(50), Tick(100)]
    assert watermarks(*away, idle=10)[-1] == {"ada": 1}
    assert watermarks(*away, idle=10, offline=cm.wait(cm.Duration(30)))[-1] == {"ada": 70}
    assert watermarks(*away, idle=10, offline=cm.CLOSE_AND_REVISE)[-1] == {"ada": 100}
    assert watermarks(*away, Tick(3_600_000_100), scope="all", stamp=None)[-1] == {None: 100}


def test_a_collapsed_source_is_never_quiet_and_everyones_belongs_to_every_group() -> None:
    everyone, of_ada = Source("", None), Source("", "ada")
    assert watermarks(Progress(of_ada, 1), Tick(10), Tick(1000), idle=10)[-1] == {"ada": 1}
    fix = Element(1, everyone, ("ada",))
    assert watermarks(Progress(everyone, 7), fix, Progress(of_ada, 3), Progress(of_ada, 9))[1:] == [
        {"ada": 7},
        {"ada": 7},
        {"ada": 7},
    ]


def test_a_group_that_was_only_named_has_no_watermark() -> None:
    assert watermarks(Element(1, PHONE, ("ada",)), Presence(PHONE, None)) == [{"ada": NEVER}, {"ada": NEVER}]


calls: list[int] = []


@cm.function
def note(task: Task) -> bool:
    """An effect, which counts."""
    calls.append(task.left)
    if task.left == 3:
        raise ValueError(task.left)
    return True


def test_a_subscriber_is_called_once_for_each_element_also_in_a_loop() -> None:
    program = cm.Program("loop")
    again = program.loop(Task, "again")

    @program.stream(at=cm.CLOUD)
    def tasks(cloud: cm.CloudSite) -> cm.Stream[Task]:
        return cloud.source(Task)

    @program.stream(at=cm.CLOUD)
    def seen(tasks: cm.Stream[Task]) -> cm.Stream[Task]:
        return tasks.union(again).subscribe(note)

    @program.stream(at=cm.CLOUD)
    def left(seen: cm.Stream[Task]) -> cm.Stream[Task]:
        return seen.where(Task.left > 0).select(Task, left=Task.left - 1)

    program.close_loop("again", left)
    calls.clear()
    ran = run(program, History(program).send({"at": 1, "left": 2}, {"at": 2, "left": 4}, {"at": 3, "left": 0}))
    assert calls == [2, 1, 0, 4, 3, 0]
    assert [failure.row for failure in ran.failures] == [(2, 3)]


def test_only_the_ports_that_are_watched_are_given() -> None:
    program = alone(lambda fixes: fixes.where(Fix.walked_m > 1), fixes=Fix)
    entry = log.Element("fixes/append", 1, PHONE, ("ada", 1, 2.0))
    outcome = evaluate(graph_of(program), (entry,), watch=[("alone/where", 0)])
    assert list(outcome.results) == [("alone/where", 0)]


def test_an_entry_for_a_step_that_is_no_source_is_our_mistake() -> None:
    program = alone(lambda fixes: fixes.where(Fix.walked_m > 1), fixes=Fix)
    entry = log.Element("alone/where", 1, PHONE, ("ada", 1, 2.0))
    with pytest.raises(InternalError, match="I310"):
        evaluate(graph_of(program), (entry,))
