"""The edge engine as whoever runs it sees it: outputs, counts, snapshots, and what it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import catchment as cm
from catchment.engines.edge import EdgeEngine, run
from catchment.errors import InternalError, ProgramError
from catchment.operators.build import operator_of
from catchment.plan.graph import Graph, Line, Vertex, graph_of
from catchment.plan.history import Element, Progress, Source
from catchment.program import steps
from catchment.testing import alone

ADA = Source("a1", "ada")


class Fix(cm.Record):
    """A reading."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed: cm.Field[float] = cm.field(step=0.1)


class Word(cm.Record):
    """Without a time."""

    text: cm.Field[str]


GRAPH = graph_of(
    alone(
        lambda fixes: fixes.where(Fix.speed > 1).key_by(Fix.user).window(cm.tumble(10)).agg(mean=cm.mean(Fix.speed)),
        fixes=Fix,
    )
)
LAST = ("alone/aggregated", 0)


def engine(*, ends: bool = True) -> tuple[EdgeEngine, list[Any]]:
    found: list[Any] = []
    made = EdgeEngine(GRAPH)
    if ends:
        made.on_output(LAST, lambda *event: found.append(event))
    return made, found


def test_an_entry_is_finished_when_the_call_returns() -> None:
    running, found = engine()
    running.element("fixes/append", 3, ADA, ("ada", 3, 5.0))
    running.element("fixes/append", 4, ADA, ("ada", 4, 0.5))
    running.element("fixes/append", 5, ADA, ("ada", 5, 6.0))
    assert found == []
    running.progress("fixes/append", ADA, 10)
    assert found == [(0, 9, Source("", "ada"), ("ada", 0, 10, 0, 9, 5.5))]


def test_the_time_context_counts_what_each_port_took_and_gave() -> None:
    running, _ = engine()
    running.feed_many("fixes/append", ADA, [("ada", at, at / 2) for at in range(20)])
    running.progress("fixes/append", ADA, 10)
    running.element("fixes/append", 3, ADA, ("ada", 3, 5.0))
    context = running.time_context()
    assert context["fixes/append"] == {"in": [21], "out": [21], "failed": [0]}
    assert context["alone/where"] == {"in": [21], "out": [18], "failed": [0]}
    # The window of the first ten, and the one that came too late.
    assert context["alone/aggregated"] == {"in": [18], "out": [1, 1], "failed": [0]}


def test_a_snapshot_is_plain_data_and_restores_into_a_fresh_engine() -> None:
    running, found = engine()
    running.feed_many("fixes/append", ADA, [("ada", at, 3.0) for at in range(15)])
    running.progress("fixes/append", ADA, 10)
    carried = msgspec.msgpack.decode(msgspec.msgpack.encode(running.snapshot()))
    again, later = engine()
    again.restore(carried)
    assert again.time_context() == running.time_context()
    for each in (running, again):
        each.progress("fixes/append", ADA, 20)
    assert later == found[1:]
    assert later[0][0] == 1


def test_without_anyone_to_take_it_a_graph_runs_all_the_same() -> None:
    running, _ = engine(ends=False)
    running.feed_many("fixes/append", ADA, [("ada", at, 3.0) for at in range(15)])
    running.progress("fixes/append", ADA, 20)
    assert running.time_context()["alone/aggregated"]["out"] == [2, 0]


def refused(code: str, call: Any) -> ProgramError:
    with pytest.raises(ProgramError) as raised:
        call()
    assert raised.value.code == code
    return raised.value


def test_an_output_that_is_not_there_is_refused() -> None:
    running, _ = engine(ends=False)
    error = refused("C320", lambda: running.on_output(("alone/aggregated", 2), print))
    assert "alone/aggregated:1" in error.why
    # The repair: one of those that are named.
    running.on_output(("alone/aggregated", 1), lambda *event: None)


def test_an_output_asked_for_after_the_first_entry_is_refused() -> None:
    running, found = engine()
    running.element("fixes/append", 3, ADA, ("ada", 3, 5.0))
    refused("C321", lambda: running.on_output(("alone/where", 0), print))
    # The repair: ask for it before.
    fresh, _ = engine(ends=False)
    fresh.on_output(("alone/where", 0), lambda *event: found.append(event))
    fresh.element("fixes/append", 3, ADA, ("ada", 3, 5.0))
    assert found == [(0, 3, ADA, ("ada", 3, 5.0))]


def test_rows_without_a_time_are_fed_one_by_one() -> None:
    # As where a part begins with a stream that crossed from another, and whose record has no time.
    line, schemas = Line("words.py", 1), (Word.schema,)
    source = Vertex("words/append", steps.Append(Word.schema), (), schemas, cm.CLOUD, "words", line)
    where = Vertex(
        "alone/where", steps.Where((Word.text != "").node), (("words/append", 0),), schemas, cm.CLOUD, "alone", line
    )
    graph = Graph("words", (source, where))
    found: list[Any] = []
    running = EdgeEngine(graph)
    running.on_output(("alone/where", 0), lambda *event: found.append(event))
    refused("C322", lambda: running.feed_many("words/append", ADA, [("x",)]))
    # The repair: element(), with the time of each.
    running.element("words/append", 7, ADA, ("x",))
    assert found == [(0, 7, ADA, ("x",))]


def test_a_snapshot_of_another_graph_is_refused() -> None:
    other = EdgeEngine(graph_of(alone(lambda fixes: fixes.where(Fix.speed > 1), fixes=Fix)))
    running, _ = engine()
    error = refused("C323", lambda: running.restore(other.snapshot()))
    assert "alone/aggregated" in error.why
    refused("C323", lambda: running.restore({**running.snapshot(), "format": 99}))
    # The repair: the graph that it was taken of.
    running.restore(engine()[0].snapshot())


def test_an_entry_at_what_is_no_source_is_refused() -> None:
    running, _ = engine()
    error = refused("C324", lambda: running.element("alone/where", 3, ADA, ("ada", 3, 5.0)))
    assert "fixes/append" in error.why
    running.element("fixes/append", 3, ADA, ("ada", 3, 5.0))  # the repair


def test_a_step_of_another_version_is_refused() -> None:
    class Unknown(msgspec.Struct, frozen=True):
        """Not a step that this version knows."""

    with pytest.raises(InternalError) as raised:
        operator_of(Unknown(), (Fix.schema,))  # type: ignore[arg-type]
    assert raised.value.code == "I321"
    assert "Unknown" in raised.value.what


def test_a_history_is_run_in_virtual_time() -> None:
    history = [Element("fixes/append", at, ADA, ("ada", at, 2.0)) for at in (1, 2)]
    outcome = run(GRAPH, [*history, Progress("fixes/append", ADA, 10)], [LAST])
    assert [result.row for result in outcome.results[LAST]] == [("ada", 0, 10, 0, 9, 2.0)]
    assert run(GRAPH, history).results.keys() == {
        (vertex.id, port) for vertex in GRAPH.vertices for port in range(len(vertex.schemas))
    }


def test_outputs_tell_their_promises_to_who_asks() -> None:
    promised: list[Any] = []
    running, _ = engine(ends=False)
    running.on_output(LAST, lambda *event: None, progress=lambda *promise: promised.append(promise))
    running.progress("fixes/append", ADA, 10)
    running.progress("fixes/append", ADA, 8)
    running.progress("fixes/append", ADA, 12)
    assert promised == [(Source("", "ada"), 10), (Source("", "ada"), 12)]
