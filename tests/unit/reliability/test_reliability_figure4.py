"""How the levels relate: the paper's Figure 4, what implies what, and where a formula needs a repair."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.program.reliability import (
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IDEAL,
    IN_STREAM_ORDER,
    LOSSLESS,
    Reliability,
    limited_delay,
    limited_loss,
)
from catchment.program.types import Duration
from tests.unit.reliability.definitions import (
    ALL_LEVELS,
    ALL_LOSS,
    SMALL_WORLD,
    History,
    Streams,
    compare,
    correct,
    histories,
    iaso,
    iaso_as_written,
    ieso,
    ieso_of_two,
    kept,
    lilo,
    lilo_as_written,
)


def test_implication_between_levels_is_exact_in_the_small_world() -> None:
    """One level implies another precisely when every history that keeps the one keeps the other."""
    kept_by = {str(level): {index for index, h in enumerate(SMALL_WORLD) if kept(level, h)} for level in ALL_LEVELS}
    levels = {str(level): level for level in ALL_LEVELS}
    for (one, first), (two, second) in itertools.product(levels.items(), repeat=2):
        assert first.implies(second) == (kept_by[one] <= kept_by[two]), (one, two)


@settings(deadline=None)
@given(histories(), st.sampled_from(ALL_LEVELS), st.sampled_from(ALL_LEVELS))
def test_what_is_implied_holds(history: History, one: Reliability, two: Reliability) -> None:
    if kept(one, history) and one.implies(two):
        assert kept(two, history)
    assert kept(one & two, history) == (kept(one, history) and kept(two, history))


@settings(deadline=None)
@given(histories())
def test_ideal_is_equality_of_outputs_as_sets(history: History) -> None:
    ideal, real = history
    assert kept(IDEAL, history) == all(set(ideal[name]) == set(real[name]) for name in ideal)


@pytest.mark.parametrize(
    ("one", "two"),
    list(itertools.permutations([limited_loss(0.5, 0.5), limited_delay(Duration(1)), IN_STREAM_ORDER], 2)),
    ids=str,
)
def test_loss_delay_and_order_are_orthogonal(one: Reliability, two: Reliability) -> None:
    outcomes = {(kept(one, history), kept(two, history)) for history in SMALL_WORLD}
    assert outcomes == {(True, True), (True, False), (False, True), (False, False)}


@pytest.mark.parametrize(
    ("subset", "superset"),
    [
        (LOSSLESS, limited_loss(0.5, 0.5)),
        (DELAY_FREE, limited_delay(Duration(1))),
        (CROSS_STREAM_ORDER, IN_STREAM_ORDER),
        (DELAY_FREE, CROSS_STREAM_ORDER),
        (DELAY_FREE, IN_STREAM_ORDER),
    ],
    ids=str,
)
def test_the_subsets_of_figure_4_are_proper(subset: Reliability, superset: Reliability) -> None:
    outcomes = {(kept(subset, history), kept(superset, history)) for history in SMALL_WORLD}
    assert outcomes == {(True, True), (False, True), (False, False)}


# Where the formulas of the paper need a repair ------------------------------------------------------------------------


def test_counting_copies_would_call_a_run_lossless_that_lost_an_element() -> None:
    ideal, real = [(0, "x", 1), (1, "y", 2)], [(0, "x", 1), (0, "x", 5)]
    assert lilo_as_written(ideal, real, 1, 0)
    assert not lilo(ideal, real, 1, 0)


def test_counting_copies_would_call_a_run_lossy_that_lost_nothing() -> None:
    ideal, real = [(0, "x", 1)], [(0, "x", 1), (0, "x", 5)]
    assert not lilo_as_written(ideal, real, 0.5, 1)
    assert lilo(ideal, real, 1, 0)


@settings(deadline=None)
@given(histories())
def test_the_repair_of_loss_changes_nothing_where_each_element_comes_once(history: History) -> None:
    for name, due in history[0].items():
        came = list({(n, pd): (n, pd, t) for n, pd, t in history[1][name]}.values())
        for level in ALL_LOSS[1:]:
            assert level.loss is not None
            factors = level.loss.loss_factor, level.loss.error_factor
            assert lilo(due, came, *factors) == lilo_as_written(due, came, *factors)


def test_in_stream_order_as_written_is_blind_beside_a_gap() -> None:
    ideal, real = [(0, "x", 1), (1, "x", 2), (2, "x", 3)], [(0, "x", 9), (2, "x", 3)]
    assert iaso_as_written(ideal, real)
    assert not iaso(ideal, real)


@settings(deadline=None)
@given(histories())
def test_the_repair_of_in_stream_order_only_adds_what_is_beside_gaps(history: History) -> None:
    for name, due in history[0].items():
        came = history[1][name]
        if iaso(due, came):
            assert iaso_as_written(due, came)
        numbers = {n for n, _, _ in correct(due, came)}
        if numbers == set(range(min(numbers, default=0), max(numbers, default=-1) + 1)):
            assert iaso(due, came) == iaso_as_written(due, came)


def test_cross_stream_order_as_written_depends_on_which_stream_is_called_the_first() -> None:
    prompt, tardy = ([(0, "x", 1)], [(0, "x", 1)]), ([(0, "x", 1)], [(0, "x", 2)])
    assert ieso_of_two(*prompt, *tardy)
    assert not ieso_of_two(*tardy, *prompt)


def test_the_formula_of_cross_stream_order_does_not_imply_in_stream_order() -> None:
    ideal: Streams = {"a": [(0, "x", 1), (1, "x", 2)], "b": [(0, "x", 9)]}
    real: Streams = {"a": [(0, "x", 3), (1, "x", 2)], "b": [(0, "x", 9)]}
    assert ieso((ideal, real))
    assert not iaso(ideal["a"], real["a"])
    report = compare((ideal, real))
    assert report.first_cross_disorder is None
    assert not report.holds(CROSS_STREAM_ORDER)


@settings(deadline=None)
@given(histories())
@example(({"a": [(0, "x", 1), (1, "x", 2)]}, {"a": [(0, "x", 3), (1, "x", 3)]}))
def test_the_formula_would_imply_in_stream_order_if_a_stream_were_compared_with_itself(history: History) -> None:
    ideal, real = history
    if ieso(history, also_itself=True):
        assert all(iaso(ideal[name], real[name]) for name in ideal)
        assert kept(CROSS_STREAM_ORDER, history)


def test_comparing_a_stream_with_itself_would_forbid_results_that_come_together() -> None:
    history: History = ({"a": [(0, "x", 1), (1, "x", 2)]}, {"a": [(0, "x", 3), (1, "x", 3)]})
    assert not ieso(history, also_itself=True)
    assert compare(history).holds(CROSS_STREAM_ORDER)
