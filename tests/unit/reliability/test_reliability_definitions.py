"""The verifier says of every history what the definitions of the paper say of it."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.program.reliability import (
    IN_STREAM_ORDER,
    limited_delay,
    limited_loss,
)
from catchment.program.types import Duration
from catchment.reliability import Verifier
from tests.unit.reliability.definitions import (
    ALL_DELAY,
    ALL_LEVELS,
    ALL_LOSS,
    ALL_ORDER,
    SMALL_WORLD,
    History,
    compare,
    correct,
    elements,
    histories,
    iaso,
    incorrect,
    kept,
    without_time,
)


@settings(deadline=None)
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


@settings(deadline=None)
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


@settings(deadline=None)
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
