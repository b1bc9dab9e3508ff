"""Vectorised steps give what the reference engine gives, whatever the batches: on stories and on random programs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.engines.reference import evaluate
from catchment.engines.spark.vector.counts import VectorCounts
from catchment.engines.spark.vector.revised import VectorRevised
from catchment.engines.spark.vector.sessions import VectorSessions
from catchment.engines.spark.vector.windows import VectorWindows
from catchment.plan.graph import Graph
from catchment.plan.history import Entry, Outcome
from catchment.program import steps
from catchment.testing import Story, perform, stories
from catchment.testing.engines import registered
from tests.unit.edge.generated import graph
from tests.unit.edge.generated_history import by_panes, differences, history
from tests.unit.spark.vector_programs import pair_graph, vector_graph
from tests.unit.spark.vectorised import Batches

STORIES = stories(Path(__file__).parents[2] / "transcripts")


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(story: Story) -> None:
    for cut in (0.0, 0.3):
        with registered("vectorised", lambda graph, cut=cut: Batches(graph, cut)):  # type: ignore[misc]
            perform(story, "vectorised")


def compared(drawn: Graph, entries: list[Entry], seed: int) -> list[str]:
    """In what the vectorised engine differs from the reference, in one batch and in many."""
    expected = evaluate(drawn, tuple(entries))
    found = []
    for cut in (0.0, 0.2):
        running = Batches(drawn, cut, seed)
        for entry in entries:
            running.feed(entry)
        found += differences(_sorted(expected), _sorted(running.outcome(None)), expected.results)
    return found


def _sorted(outcome: Outcome) -> Outcome:
    # In which order one moment's failures of different elements are told is left open; all else is not.
    return Outcome(outcome.results, tuple(sorted(outcome.failures, key=repr)))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9))
@example(120)
def test_generated(seed: int) -> None:
    draw = random.Random(seed)
    drawn = draw.choice((graph, lambda draw: by_panes(graph(draw))))(draw)
    assert compared(drawn, history(draw, drawn, draw.choice((5, 20, 60))), seed) == []


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9))
@example(6)
@example(251)
def test_generated_of_what_is_vectorised(seed: int) -> None:
    draw = random.Random(seed)
    drawn = vector_graph(draw)
    assert compared(drawn, history(draw, drawn, draw.choice((5, 20, 60))), seed) == []


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9))
def test_generated_of_two_inputs(seed: int) -> None:
    draw = random.Random(seed)
    drawn = pair_graph(draw)
    assert compared(drawn, history(draw, drawn, draw.choice((5, 20, 60))), seed) == []


def test_what_is_meant_to_be_vectorised_is() -> None:
    """Were it run event by event, the tests above would hold all the same."""
    kinds = set()
    classes: set[type] = set()
    for seed in range(40):
        for make in (vector_graph, pair_graph):
            drawn = make(random.Random(seed))
            engine = Batches(drawn).engine
            classes |= {type(step) for step in engine.steps.values()}
            found = [drawn.vertex(name).step for name in engine.vectorised]
            kinds |= {step.how if isinstance(step, steps.Join) else type(step).__name__ for step in found}
    assert kinds >= {"Aggregated", "Running", "Processed", "Where", "KeyBy"}
    assert kinds >= {"Union", "Zip", "Combine", "window", "interval", "latest"}
    assert classes >= {VectorWindows, VectorRevised, VectorSessions, VectorCounts}
