"""Vectorised steps give what the reference engine gives, whatever the batches, on every story and on random programs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.engines.reference import evaluate
from catchment.testing import Story, perform, stories
from catchment.testing.engines import registered
from tests.unit.edge.generated import graph
from tests.unit.edge.generated_history import by_panes, differences, history
from tests.unit.spark.vectorised import Batches

STORIES = stories(Path(__file__).parents[2] / "transcripts")


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(story: Story) -> None:
    for cut in (0.0, 0.3):
        with registered("vectorised", lambda graph, cut=cut: Batches(graph, cut)):  # type: ignore[misc]
            perform(story, "vectorised")


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**9))
@example(0)
def test_generated(seed: int) -> None:
    draw = random.Random(seed)
    drawn = draw.choice((graph, lambda draw: by_panes(graph(draw))))(draw)
    entries = history(draw, drawn, draw.choice((5, 20, 60)))
    expected = evaluate(drawn, tuple(entries))
    for cut in (0.0, 0.2):
        running = Batches(drawn, cut, seed)
        for entry in entries:
            running.feed(entry)
        assert differences(expected, running.outcome(None), expected.results) == []
