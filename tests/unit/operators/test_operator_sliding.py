"""Windows from panes: every slider gives what merging all panes gives, and the same bits wherever it began."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from catchment.errors import author_line
from catchment.operators.aggregates.bundle import Bundle
from catchment.operators.windows.sliding import Blocks, Merging, Slider, Subtracting, slider_for
from catchment.program.aggregate import named


class Reading(cm.Record):
    """What is aggregated."""

    at: cm.Field[cm.Instant] = cm.event_time()
    scaled: cm.Field[float] = cm.field(step=0.1)
    raw: cm.Field[float]


class Odd(cm.UserAggregate[float, float, float]):
    """A sum that can be undone, but for what is below zero."""

    def merge(self, left: float, right: float) -> float:
        return left + right

    def remove(self, summary: float, part: float) -> float:
        if part < 0:
            raise ValueError(part)
        return summary - part


def bundle(**aggregates: Any) -> Bundle:
    return Bundle(named(Reading.schema, aggregates, author_line()), Reading.schema, None)


EXACT = bundle(n=cm.count(), total=cm.sum(Reading.scaled), spread=cm.variance(Reading.scaled))
FLOATS = bundle(mean=cm.mean(Reading.raw), most=cm.max(Reading.raw), spread=cm.variance(Reading.raw))
UNDONE = bundle(odd=Odd()(Reading.scaled))

# Panes by place, some of them absent; the size of a window in panes; by how many it slides; how many times.
PANES = st.dictionaries(st.integers(0, 40), st.lists(st.integers(-30, 30), min_size=1, max_size=3), max_size=25)
SHAPES = st.tuples(st.integers(1, 12), st.lists(st.integers(1, 14), max_size=8))


def summaries(contents: Bundle, values: dict[int, list[int]], pane: int) -> dict[int, Any]:
    found = {}
    for place, steps in values.items():
        summary = contents.empty()
        for step in steps:
            contents.add(summary, contents.look((0, step / 10, step / 7)), 0, 0)
        found[place * pane] = summary
    return found


def bits(contents: Bundle, summary: Any) -> Any:
    if summary is None:
        return None
    values, failure = contents.results(summary)
    return [struct.pack("d", value) if isinstance(value, float) else value for value in values], failure


@pytest.mark.parametrize(
    ("kind", "contents"),
    [(Subtracting, EXACT), (Blocks, EXACT), (Merging, EXACT), (Subtracting, UNDONE)],
    ids=["subtracting", "blocks", "merging", "undone by an author"],
)
@given(values=PANES, shape=SHAPES, pane=st.sampled_from([1, 5]), first=st.integers(-5, 20))
def test_a_window_is_all_its_panes_merged(
    kind: Any, contents: Bundle, values: dict[int, list[int]], shape: tuple[int, list[int]], pane: int, first: int
) -> None:
    size, slides = shape[0] * pane, shape[1]
    panes = summaries(contents, values, pane)
    slider: Slider = kind(contents, size, pane)
    start = first * pane
    for slide in (0, *slides):
        start += slide * pane
        merged = Merging(contents, size, pane).window(start, start + size, panes)
        found = slider.window(start, start + size, panes)
        assert (found is None) == (merged is None)
        if merged is not None:
            one, other = contents.results(found)[0], contents.results(merged)[0]
            assert all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("kind", "contents"), [(Blocks, FLOATS), (Subtracting, EXACT)], ids=["blocks", "subtracting"])
@given(values=PANES, shape=SHAPES, forget_at=st.integers(0, 8))
def test_beginning_anew_changes_no_bit(
    kind: Any, contents: Bundle, values: dict[int, list[int]], shape: tuple[int, list[int]], forget_at: int
) -> None:
    size, slides = shape
    panes = summaries(contents, values, 1)
    one: Slider = kind(contents, size, 1)
    other: Slider = kind(contents, size, 1)
    start = 0
    for number, slide in enumerate((0, *slides)):
        start += slide
        if number == forget_at:
            other.forget()
        windows = [slider.window(start, start + size, panes) for slider in (one, other)]
        assert bits(contents, windows[0]) == bits(contents, windows[1])


def test_windows_of_counts_begin_short() -> None:
    values = {place: [place] for place in range(10)}
    for kind in (Blocks, Subtracting, Merging):
        slider: Slider = kind(EXACT, 4, 1)
        panes = summaries(EXACT, values, 1)
        counts = [EXACT.results(slider.window(max(0, end - 4), end, panes))[0][0] for end in range(1, 11)]
        assert counts == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


def test_each_pane_is_merged_few_times_however_much_windows_overlap() -> None:
    merges = 0

    def counting(left: Any, right: Any) -> Any:
        nonlocal merges
        merges += 1
        return merge(left, right)

    contents = bundle(mean=cm.mean(Reading.raw))
    merge, contents.merge = contents.merge, counting
    panes = summaries(contents, {place: [1] for place in range(1000)}, 1)
    slider = Blocks(contents, 60, 1)
    for end in range(60, 1000):
        slider.window(end - 60, end, panes)
    assert merges < 3 * 1000


def test_the_slider_suits_the_contents() -> None:
    listed = bundle(all=cm.collect(Reading.raw))
    chosen = [slider_for(contents, 60, 1) for contents in (EXACT, FLOATS, UNDONE, listed)]
    assert chosen == [Subtracting, Blocks, Subtracting, Merging]
    assert slider_for(EXACT, 10, 10) is Merging
