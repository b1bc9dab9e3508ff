"""The verifier against the definitions of the paper (section 2.5), written here as they stand there, by brute force.

A history is a pair (ideal, real) of mappings from stream to a list of elements (sequence, payload, instant). The
functions named after the paper's levels quantify over sets exactly as its formulas do, in quadratic time or worse.
Where a formula needs a repair, both forms are here, and a test shows what the formula alone would say.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.program.reliability import (
    BEST_EFFORT,
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IDEAL,
    IN_STREAM_ORDER,
    LOSSLESS,
    Reliability,
    limited_delay,
    limited_loss,
)
from catchment.program.types import Duration, Instant
from catchment.reliability import Element, Report, Verifier, verify

E: TypeAlias = tuple[int, str, int]
Streams: TypeAlias = dict[str, list[E]]
History: TypeAlias = tuple[Streams, Streams]


# The definitions ------------------------------------------------------------------------------------------------------


def correct(ideal: list[E], real: list[E]) -> set[E]:
    """DSc: the elements of DSr for which there is exactly one dei in DSi with dei.ξ = dec.ξ and dei.pd = dec.pd."""
    return {(n, pd, t) for n, pd, t in set(real) if sum((i[0], i[1]) == (n, pd) for i in set(ideal)) == 1}


def incorrect(ideal: list[E], real: list[E]) -> set[E]:
    """DSf: the elements of DSr for which there is none."""
    return {(n, pd, t) for n, pd, t in set(real) if not any((i[0], i[1]) == (n, pd) for i in set(ideal))}


def without_time(elements: set[E]) -> set[tuple[int, str]]:
    """The repair of loss, which "does not put constraints on the global timestamp": elements by ξ and pd alone."""
    return {(n, pd) for n, pd, _ in elements}


def lilo(ideal: list[E], real: list[E], lf: float, ef: float) -> bool:
    """Limited loss, with factors read as the decimals that the author wrote."""
    due, right, wrong = set(ideal), correct(ideal, real), incorrect(ideal, real)
    assert set(real) == right | wrong
    count_right, count_wrong = len(without_time(right)), len(without_time(wrong))
    return len(due) >= count_right >= len(due) * Fraction(str(lf)) and count_wrong <= len(due) * Fraction(str(ef))


def lilo_as_written(ideal: list[E], real: list[E], lf: float, ef: float) -> bool:
    """Limited loss with |DSc| and |DSf| counting every instant at which the same element came."""
    due, right, wrong = set(ideal), correct(ideal, real), incorrect(ideal, real)
    return len(due) >= len(right) >= len(due) * Fraction(str(lf)) and len(wrong) <= len(due) * Fraction(str(ef))


def lide(ideal: list[E], real: list[E], within: int) -> bool:
    return all(
        sum((i[0], i[1]) == (n, pd) and i[2] <= t <= i[2] + within for i in set(ideal)) == 1
        for n, pd, t in correct(ideal, real)
    )


def iaso_as_written(ideal: list[E], real: list[E]) -> bool:
    """dec(ξ).τ ≤ dec(ξ+1).τ, which says nothing where ξ+1 is missing."""
    right = correct(ideal, real)
    return all(a[2] <= b[2] for a in right for b in right if b[0] == a[0] + 1)


def iaso(ideal: list[E], real: list[E]) -> bool:
    """The repair: any two correct elements, neighbours or not."""
    right = correct(ideal, real)
    return all(a[2] <= b[2] for a in right for b in right if a[0] < b[0])


def ieso_of_two(ideal1: list[E], real1: list[E], ideal2: list[E], real2: list[E]) -> bool:
    """The formula for DS1 and DS2, in this order."""
    right1, right2 = correct(ideal1, real1), correct(ideal2, real2)
    return all(
        (i1[2] <= i2[2] and c1[2] <= c2[2]) or (i1[2] > i2[2] and c1[2] > c2[2])
        for c1 in right1
        for c2 in right2
        for i1 in ideal1
        for i2 in ideal2
        if i1[:2] == c1[:2] and i2[:2] == c2[:2]
    )


def ieso(history: History, *, also_itself: bool = False) -> bool:
    """The formula for every ordered pair of streams, so that its outcome does not depend on how they are numbered."""
    ideal, real = history
    pairs = itertools.product(ideal, repeat=2) if also_itself else itertools.permutations(ideal, 2)
    return all(ieso_of_two(ideal[a], real[a], ideal[b], real[b]) for a, b in pairs)


def kept(level: Reliability, history: History) -> bool:
    """A declared level, by the definitions: for every output stream, and across them."""
    ideal, real = history
    streams = [(ideal[name], real[name]) for name in ideal]
    if level.loss is not None:
        factors = level.loss.loss_factor, level.loss.error_factor
        if not all(lilo(i, r, *factors) for i, r in streams):
            return False
    if level.delay is not None and not all(lide(i, r, level.delay.within_us) for i, r in streams):
        return False
    if level.order is not None and not all(iaso(i, r) for i, r in streams):
        return False
    return level.order != "cross-stream" or ieso(history)


def elements(streams: Streams) -> dict[str, list[Element]]:
    return {name: [Element(n, pd, Instant(t)) for n, pd, t in stream] for name, stream in streams.items()}


def compare(history: History) -> Report:
    return verify(elements(history[0]), elements(history[1]))


# Histories and levels -------------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Small, with everything that goes wrong: loss, copies, delays and haste, disorder, ties, wrong elements."""
    ideal: Streams = {}
    real: Streams = {}
    delays = draw(st.sampled_from([[0], [2], [0, 0, 1], [0, 1, 2, 5], [-1, 0, 1]]))
    copies = draw(st.sampled_from([[1], [1, 1, 0], [1, 1, 2], [0, 1, 2]]))
    for name in draw(st.sampled_from(["a", "ab", "abc"])):
        size = draw(st.integers(0, 5))
        numbers = sorted(draw(st.sets(st.integers(0, 7), min_size=size, max_size=size)))
        instants = sorted(draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)))
        ideal[name] = [(n, draw(st.sampled_from("xy")), t) for n, t in zip(numbers, instants, strict=True)]
        came = [
            (n, pd, t + draw(st.sampled_from(delays)))
            for n, pd, t in ideal[name]
            for _ in range(draw(st.sampled_from(copies)))
        ]
        wrong = draw(
            st.lists(st.tuples(st.integers(0, 8), st.sampled_from("xyz"), st.integers(0, 8)), max_size=2)
            if draw(st.booleans())
            else st.just([])
        )
        real[name] = draw(st.permutations(came + wrong))
    return ideal, real


ALL_LOSS = [
    BEST_EFFORT,
    LOSSLESS,
    limited_loss(0.5),
    limited_loss(0.5, 0.5),
    limited_loss(1, 0.5),
    limited_loss(0.3, 1),
]
ALL_DELAY = [BEST_EFFORT, DELAY_FREE, limited_delay(Duration(1)), limited_delay(Duration(2))]
ALL_ORDER = [BEST_EFFORT, IN_STREAM_ORDER, CROSS_STREAM_ORDER]
ALL_LEVELS = [a & b & c for a, b, c in itertools.product(ALL_LOSS, ALL_DELAY, ALL_ORDER)]


def small_world() -> list[History]:
    """Every history of a world with two streams of two elements, ties in and between them, and up to two wrong ones.

    Without the tie inside a stream, elements a step apart and at most a step late would be in order by chance.
    """
    ideal: Streams = {"a": [(0, "x", 1), (1, "x", 1)], "b": [(0, "x", 1), (1, "x", 3)]}
    due = [(name, *element) for name, stream in ideal.items() for element in stream]
    world: list[History] = []
    for shifts in itertools.product((None, -1, 0, 1, 2), repeat=4):
        for wrong in range(3):
            real: Streams = {"a": [(9, f"wrong {index}", 0) for index in range(wrong)], "b": []}
            for (name, n, pd, t), shift in zip(due, shifts, strict=True):
                if shift is not None:
                    real[name].append((n, pd, t + shift))
            world.append((ideal, real))
    return world


SMALL_WORLD = small_world()


# The verifier says what the definitions say ---------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(histories())
def test_a_level_holds_when_its_definition_does(history: History) -> None:
    report = compare(history)
    for level in ALL_LEVELS:
        assert report.holds(level) == kept(level, history), level


def test_a_level_holds_when_its_definition_does_in_the_whole_small_world() -> None:
    for history in SMALL_WORLD:
        report = compare(history)
        for level in (*ALL_LOSS, *ALL_DELAY, *ALL_ORDER):
            assert report.holds(level) == kept(level, history), (level, history)


@settings(deadline=None)
@given(histories())
def test_the_strongest_level_held_and_nothing_stronger(history: History) -> None:
    held = compare(history).held
    assert kept(held, history)
    if held.delay is not None and held.delay.within_us > 0:
        assert not kept(limited_delay(Duration(held.delay.within_us - 1)), history)
    if held.loss is not None and held.loss.loss_factor < 1:
        assert not kept(limited_loss(held.loss.loss_factor + 1e-12, held.loss.error_factor), history)
    if held.loss is not None and held.loss.error_factor > 0:
        assert not kept(limited_loss(held.loss.loss_factor, held.loss.error_factor - 1e-12), history)


@settings(deadline=None)
@given(histories())
def test_measurements_are_those_of_the_sets(history: History) -> None:
    ideal, real = history
    report = compare(history)
    for stream in report.streams:
        due, came, found = ideal[stream.stream], real[stream.stream], stream.measured
        right, wrong = correct(due, came), incorrect(due, came)
        delays = [t - i[2] for n, pd, t in right for i in due if i[:2] == (n, pd)]
        assert found.ideal == len(due)
        assert found.correct == len(without_time(right))
        assert found.missing == len(without_time(set(due)) - without_time(right))
        assert found.incorrect == len(without_time(wrong))
        assert found.duplicates == len(came) - found.correct - found.incorrect
        assert found.delay_us_min == min(delays, default=None)
        assert found.delay_us_max == max(delays, default=None)
        assert stream.holds(IN_STREAM_ORDER) == iaso(due, came)
        assert (stream.first_missing is None) == (found.missing == 0)
        assert (stream.first_incorrect is None) == (found.incorrect == 0)
        assert (stream.first_duplicate is None) == (found.duplicates == 0)
        if stream.latest is not None and stream.earliest is not None:
            assert stream.latest.ideal_at is not None and stream.latest.real_at is not None
            assert stream.latest.real_at - stream.latest.ideal_at == found.delay_us_max
            assert stream.earliest.ideal_at is not None and stream.earliest.real_at is not None
            assert stream.earliest.real_at - stream.earliest.ideal_at == found.delay_us_min
    assert report.measured.ideal == sum(map(len, ideal.values()))
    arrivals = report.measured.correct + report.measured.incorrect + report.measured.duplicates
    assert arrivals == sum(map(len, real.values()))


@settings(max_examples=200, deadline=None)
@given(histories())
def test_the_first_disorder_in_a_stream_is_the_first(history: History) -> None:
    ideal, real = history
    for stream in compare(history).streams:
        right = correct(ideal[stream.stream], real[stream.stream])
        wrong_pairs = [(a, b) for a in right for b in right if a[0] < b[0] and a[2] > b[2]]
        found = stream.first_disorder
        if found is None:
            assert not wrong_pairs
            continue
        named = found.before.sequence, found.before.real_at, found.after.sequence, found.after.real_at
        assert named in {(a[0], a[2], b[0], b[2]) for a, b in wrong_pairs}
        assert found.after.sequence == min(b[0] for _, b in wrong_pairs)


@settings(max_examples=300, deadline=None)
@given(histories())
def test_the_first_disorder_across_streams_is_the_first(history: History) -> None:
    ideal, real = history
    # (due, stream, sequence, came): sorted, this is the order in which the definition of "first" counts.
    came = sorted(
        (i[2], name, c[0], c[2])
        for name in ideal
        for c in correct(ideal[name], real[name])
        for i in ideal[name]
        if i[:2] == c[:2]
    )
    pairs = [
        (a, b)
        for a, b in itertools.combinations(came, 2)
        if a[1] != b[1] and ((a[0] < b[0]) != (a[3] < b[3]) or (a[0] > b[0]) != (a[3] > b[3]))
    ]
    found = compare(history).first_cross_disorder
    if found is None:
        assert not pairs
        return
    before, after = found.before, found.after
    named = (
        (before.ideal_at, before.stream, before.sequence, before.real_at),
        (after.ideal_at, after.stream, after.sequence, after.real_at),
    )
    assert named in pairs
    assert named[1][:3] == min(b[:3] for _, b in pairs)
    (due, _, _, came_at), (due_after, _, _, came_after) = named[0], named[1]
    kind = "parted" if due == due_after else "joined" if came_at == came_after else "reversed"
    assert found.kind == kind


@settings(deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_taking_matters_only_to_first_examples(history: History, random: Any) -> None:
    ideal, real = history
    verifier = Verifier(elements(ideal))
    taken = [(name, element) for name, stream in elements(real).items() for element in stream]
    random.shuffle(taken)
    for name, element in taken:
        verifier.take(name, element)
    mixed, whole = verifier.report(), compare(history)
    assert (mixed.measured, mixed.held) == (whole.measured, whole.held)
    assert mixed.first_cross_disorder == whole.first_cross_disorder
    assert [s.first_disorder for s in mixed.streams] == [s.first_disorder for s in whole.streams]


# Figure 4 and the implications ----------------------------------------------------------------------------------------


def test_implication_between_levels_is_exact_in_the_small_world() -> None:
    """One level implies another precisely when every history that keeps the one keeps the other."""
    kept_by = {str(level): {index for index, h in enumerate(SMALL_WORLD) if kept(level, h)} for level in ALL_LEVELS}
    levels = {str(level): level for level in ALL_LEVELS}
    for (one, first), (two, second) in itertools.product(levels.items(), repeat=2):
        assert first.implies(second) == (kept_by[one] <= kept_by[two]), (one, two)


@settings(max_examples=300, deadline=None)
@given(histories(), st.sampled_from(ALL_LEVELS), st.sampled_from(ALL_LEVELS))
def test_what_is_implied_holds(history: History, one: Reliability, two: Reliability) -> None:
    if kept(one, history) and one.implies(two):
        assert kept(two, history)
    assert kept(one & two, history) == (kept(one, history) and kept(two, history))


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=300, deadline=None)
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
