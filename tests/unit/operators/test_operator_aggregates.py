"""Every aggregate: however its values are split, merged, taken out and saved, it is what it is of all of them."""

from __future__ import annotations

import math
import struct
from collections import Counter
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from catchment.errors import InternalError, author_line
from catchment.operators.aggregates.aggregate import Aggregate, StuckError
from catchment.operators.aggregates.bundle import Bundle
from catchment.operators.aggregates.choose import aggregate_of
from catchment.operators.aggregates.exact import ExactMean, ExactSum, ExactVariance
from catchment.operators.aggregates.floats import FloatMean, FloatSum, FloatVariance
from catchment.program.aggregate import AggregateCall, NamedAggregate, named
from catchment.program.row_error import OVERFLOW, RowError
from catchment.program.types import FLOAT, INT


class Reading(cm.Record):
    """What is aggregated."""

    at: cm.Field[cm.Instant] = cm.event_time()
    scaled: cm.Field[float | None] = cm.field(step=0.1)
    raw: cm.Field[float | None]
    n: cm.Field[int | None]
    text: cm.Field[str | None]


# Nulls are passed over, wherever a value may be one.
RAW: Any = Reading.raw
N: Any = Reading.n


class Least(cm.UserAggregate[int, int, int]):
    """The smallest of ints; it cannot be undone."""

    def merge(self, left: int, right: int) -> int:
        return min(left, right)


class Net(cm.UserAggregate[int, int, int]):
    """A sum that can be undone."""

    def merge(self, left: int, right: int) -> int:
        return left + right

    def remove(self, summary: int, part: int) -> int:
        return summary - part


def of(aggregate: Any, size: int | None = None) -> tuple[Aggregate, NamedAggregate]:
    (one,) = named(Reading.schema, {"it": aggregate}, author_line())
    return aggregate_of(one, Reading.schema, size), one


WHOLE = st.integers(-(2**40), 2**40)
SCALED = st.integers(-1000, 1000).map(lambda steps: steps / 10)
TEXT = st.sampled_from(["", "a", "b", "é"])
KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "count": (cm.count(), WHOLE),
    "sum of scaled": (cm.sum(Reading.scaled), SCALED),
    "mean of scaled": (cm.mean(Reading.scaled), SCALED),
    "variance of scaled": (cm.variance(Reading.scaled), SCALED),
    "sum of ints": (cm.sum(Reading.n), WHOLE),
    "mean of ints": (cm.mean(Reading.n), WHOLE),
    "variance of ints": (cm.variance(Reading.n), WHOLE),
    "sum of floats": (cm.sum(Reading.raw), SCALED),
    "mean of floats": (cm.mean(Reading.raw), SCALED),
    "variance of floats": (cm.variance(Reading.raw), SCALED),
    "min": (cm.min(Reading.raw), st.one_of(SCALED, st.just(math.nan))),
    "max": (cm.max(Reading.raw), st.one_of(SCALED, st.just(math.nan))),
    "first": (cm.first(Reading.n), st.one_of(WHOLE, st.none())),
    "last": (cm.last(Reading.n), st.one_of(WHOLE, st.none())),
    "collect": (cm.collect(Reading.n), WHOLE),
    "count distinct": (cm.count_distinct(Reading.raw), st.sampled_from([0.0, -0.0, 1.0, math.nan])),
    "top": (cm.top(2, Reading.text), TEXT),
    "placed dft": (cm.dft(RAW, bins=3), SCALED),
    "user": (Least()(N), WHOLE),
    "user with remove": (Net()(N), WHOLE),
}
ALL = st.sampled_from(sorted(KINDS)).flatmap(
    lambda name: st.tuples(st.just(name), st.lists(KINDS[name][1], max_size=12))
)


def summary_of(aggregate: Aggregate, values: list[Any], first: int = 0) -> Any:
    summary = aggregate.empty()
    for number, value in enumerate(values, first):
        if value is not None or aggregate.takes_null:
            summary = aggregate.add(summary, value, number, (number, "d", number))
    return summary


def carried(aggregate: Aggregate, summary: Any) -> Any:
    return aggregate.load(msgspec.msgpack.decode(msgspec.msgpack.encode(aggregate.save(summary))))


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (one != one and other != other)
    return type(one) is type(other) and bool(one == other)


@given(ALL, st.integers(0, 12))
def test_merging_two_parts_is_adding_all(drawn: tuple[str, list[Any]], cut: int) -> None:
    name, values = drawn
    aggregate, _ = of(KINDS[name][0])
    left, right = summary_of(aggregate, values[:cut]), summary_of(aggregate, values[cut:], len(values[:cut]))
    merged = aggregate.merge(left, right)
    assert alike(aggregate.result(merged), aggregate.result(summary_of(aggregate, values)))
    # And merging left its parts alone.
    assert alike(aggregate.result(left), aggregate.result(summary_of(aggregate, values[:cut])))


@given(ALL, st.integers(0, 12))
def test_what_can_be_taken_out_leaves_the_rest(drawn: tuple[str, list[Any]], cut: int) -> None:
    name, values = drawn
    aggregate, _ = of(KINDS[name][0])
    if not aggregate.removable:
        with pytest.raises(StuckError):
            aggregate.remove(aggregate.empty(), aggregate.empty())
        return
    whole = summary_of(aggregate, values)
    rest = aggregate.remove(whole, summary_of(aggregate, values[:cut]))
    assert aggregate.result(rest) == aggregate.result(summary_of(aggregate, values[cut:]))


@given(ALL)
def test_a_summary_survives_as_bytes(drawn: tuple[str, list[Any]]) -> None:
    name, values = drawn
    aggregate, _ = of(KINDS[name][0])
    summary = summary_of(aggregate, values)
    assert bits(aggregate.result(carried(aggregate, summary))) == bits(aggregate.result(summary))
    more = summary_of(aggregate, values, len(values))
    merged = aggregate.merge(carried(aggregate, summary), carried(aggregate, more))
    assert bits(aggregate.result(merged)) == bits(aggregate.result(aggregate.merge(summary, more)))


def bits(value: Any) -> Any:
    """Floats as their bits: equal only if they are the same to the last one."""
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    return struct.pack("d", value) if isinstance(value, float) else value


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20), st.randoms())
def test_steps_add_up_to_the_same_bits_in_any_order(steps: list[int], shuffle: Any) -> None:
    values = [step / 10 for step in steps]
    shuffled = shuffle.sample(values, len(values))
    for aggregate in (ExactSum(0.1), ExactMean(0.1), ExactVariance(0.1)):
        assert bits(aggregate.result(summary_of(aggregate, values))) == bits(
            aggregate.result(summary_of(aggregate, shuffled))
        )


@given(st.lists(WHOLE, min_size=1, max_size=20))
def test_mean_and_variance_of_ints_are_the_nearest_floats(values: list[int]) -> None:
    mean = Fraction(sum(values), len(values))
    square = sum((value - mean) ** 2 for value in values) / len(values)
    assert ExactMean(None).result(summary_of(ExactMean(None), values)) == float(mean)
    assert ExactVariance(None).result(summary_of(ExactVariance(None), values)) == float(square)


@pytest.mark.parametrize("step", [0.1, 3.0])
@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1.5, math.nan], math.nan),
        ([1.5, math.inf], math.inf),
        ([-math.inf, 1.5], -math.inf),
        ([math.inf, -math.inf], math.nan),
    ],
)
def test_what_is_not_finite_makes_the_result_while_it_is_there(step: float, values: list[float], total: float) -> None:
    for aggregate in (ExactSum(step), ExactMean(step)):
        summary = summary_of(aggregate, values)
        assert bits(aggregate.result(carried(aggregate, summary))) == bits(total)
        alone = aggregate.remove(summary, summary_of(aggregate, values[1:]))
        assert alike(aggregate.result(alone), aggregate.result(summary_of(aggregate, values[:1])))
    assert math.isnan(ExactVariance(step).result(summary_of(ExactVariance(step), values)) or 0.0)


@pytest.mark.parametrize("values", [[1e305, 2e305, 1.0], [-1e308, 5e307]])
def test_values_too_large_to_be_counted_in_steps_are_added_all_the_same(values: list[float]) -> None:
    total = ExactSum(1e-6).result(summary_of(ExactSum(1e-6), values))
    assert total == pytest.approx(math.fsum(values))
    assert ExactMean(1e-6).result(summary_of(ExactMean(1e-6), values)) == pytest.approx(math.fsum(values) / len(values))


def test_a_sum_of_steps_beyond_the_floats_is_infinite() -> None:
    assert ExactSum(1e-6).result(summary_of(ExactSum(1e-6), [1.7e302] * 3)) == math.inf
    assert ExactVariance(1.0).result(summary_of(ExactVariance(1.0), [1e200, -1e200])) == math.inf


def test_a_sum_of_ints_beyond_64_bits_fails() -> None:
    total = ExactSum(None)
    assert total.result(summary_of(total, [2**63 - 1])) == 2**63 - 1
    with pytest.raises(RowError) as raised:
        total.result(carried(total, summary_of(total, [2**63 - 1, 1])))
    assert raised.value.reason == OVERFLOW


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=20), st.integers(0, 20)
)
def test_floats_are_within_the_bound_of_the_definition(values: list[float], cut: int) -> None:
    bound = 1e-9 * math.fsum(map(abs, values))
    exact = sum(map(Fraction, values), Fraction(0))
    for aggregate, expected, divisor in ((FloatSum(), exact, 1), (FloatMean(), exact / len(values), len(values))):
        merged = aggregate.merge(summary_of(aggregate, values[:cut]), summary_of(aggregate, values[cut:]))
        assert abs(Fraction(aggregate.result(merged) or 0.0) - expected) <= bound / divisor
    mean = exact / len(values)
    square = sum(((Fraction(value) - mean) ** 2 for value in values), Fraction(0)) / len(values)
    spread = FloatVariance()
    merged = spread.merge(summary_of(spread, values[:cut]), summary_of(spread, values[cut:]))
    squares = math.fsum(value * value for value in values) / len(values)
    assert abs(Fraction(spread.result(merged) or 0.0) - square) <= 1e-9 * squares


@pytest.mark.parametrize("values", [[math.inf, 1.0], [math.nan], [-math.inf, math.inf]])
def test_floats_that_are_not_finite_add_up_as_ieee_has_it(values: list[float]) -> None:
    assert alike(FloatSum().result(summary_of(FloatSum(), values)), sum(values))
    assert alike(FloatMean().result(summary_of(FloatMean(), values)), sum(values))
    assert math.isnan(FloatVariance().result(summary_of(FloatVariance(), values)) or 0.0)


@given(st.lists(SCALED, max_size=16), st.integers(-100, 100), st.integers(0, 16))
def test_the_timed_transform_does_not_depend_on_where_a_window_starts(
    values: list[float], start: int, cut: int
) -> None:
    dft, _ = of(cm.dft(RAW, bins=4), size=16)
    summary = dft.merge(
        *(
            _timed(dft, [(start + place, value) for place, value in enumerate(values)][part])
            for part in (slice(cut), slice(cut, None))
        )
    )
    expected = [
        abs(sum(value * complex(math.cos(t), -math.sin(t)) for value, t in zip(values, _turns(b, values), strict=True)))
        for b in range(4)
    ]
    assert alike(dft.result(carried(dft, summary)), tuple(expected) if values else ())


def _timed(dft: Aggregate, timed: list[tuple[int, float]]) -> Any:
    summary = dft.empty()
    for at, value in timed:
        summary = dft.add(summary, value, at, None)
    return summary


def _turns(b: int, values: list[float]) -> list[float]:
    return [2 * math.pi * b * place / 16 for place in range(len(values))]


def test_a_transform_of_what_is_not_finite_is_nan_throughout() -> None:
    for size in (None, 8):
        dft, _ = of(cm.dft(RAW, bins=2), size=size)
        found = dft.result(summary_of(dft, [1.0, math.inf]))
        assert len(found) == 2
        assert all(map(math.isnan, found))


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, math.nan, 2.5]), max_size=20))
def test_frequencies_know_one_nan_and_one_zero(values: list[float]) -> None:
    names = ["nan" if value != value else value + 0.0 for value in values]
    distinct, _ = of(cm.count_distinct(Reading.raw))
    assert distinct.result(summary_of(distinct, values)) == len(set(names))
    top, _ = of(cm.top(2, Reading.raw))
    ranked = sorted(Counter(names).items(), key=lambda item: (-item[1], math.inf if item[0] == "nan" else item[0]))
    found = ["nan" if value != value else value for value in top.result(summary_of(top, values))]
    assert found == [name for name, _ in ranked[:2]]


class Fussy(cm.UserAggregate[int, int, int]):
    """Fails on some: in lift on 1, in merge beyond 10, in lower at 7; remove fails on 4."""

    def lift(self, value: int) -> int:
        return _unless(value == 1, value)

    def merge(self, left: int, right: int) -> int:
        return _unless(left + right > 10, left + right)

    def remove(self, summary: int, part: int) -> int:
        return _unless(part == 4, summary - part)

    def lower(self, summary: int) -> int:
        return _unless(summary == 7, summary)


def _unless(fails: bool, value: int) -> int:
    if fails:
        raise ValueError(value)
    return value


def test_what_fails_in_a_users_lift_fails_the_element() -> None:
    bundle = Bundle((of(Fussy()(N))[1],), Reading.schema, None)
    with pytest.raises(RowError):
        bundle.look((0, None, None, 1, None))
    assert bundle.look((0, None, None, None, None)) == (None,)


def test_what_fails_in_a_users_merge_or_lower_fails_the_result() -> None:
    fussy, _ = of(Fussy()(N))
    for values in ([8, 9], [3, 4]):
        with pytest.raises(RowError):
            fussy.result(carried(fussy, summary_of(fussy, values)))
    assert fussy.result(summary_of(fussy, [8])) == 8


def test_what_failed_or_fails_to_be_removed_is_merged_anew() -> None:
    fussy, _ = of(Fussy()(N))
    failed = summary_of(fussy, [8, 9, 2])
    for whole, part in ((failed, summary_of(fussy, [9])), (summary_of(fussy, [4, 3, 2]), summary_of(fussy, [4]))):
        with pytest.raises(StuckError):
            fussy.remove(whole, part)
    # Where nothing is left there is nothing to fail.
    assert fussy.result(fussy.remove(failed, failed)) is None


@given(st.lists(st.tuples(*([st.one_of(st.none(), SCALED)] * 2), st.one_of(st.none(), WHOLE)), max_size=8))
def test_a_bundle_is_its_aggregates_side_by_side(rows: list[tuple[Any, ...]]) -> None:
    asked = {
        "n": cm.count(),
        "total": cm.sum(Reading.scaled * 2),
        "mean": cm.mean(Reading.raw),
        "last": cm.last(Reading.n),
        "same": cm.max(Reading.scaled * 2),
    }
    bundle = Bundle(named(Reading.schema, asked, author_line()), Reading.schema, None)
    summary = bundle.empty()
    for number, row in enumerate(rows):
        whole = (number, *row, None)
        bundle.add(summary, bundle.look(whole), number, number)
    (given_row,), failure = bundle.rows(("key",), bundle.load(bundle.save(summary)))
    assert failure is None
    doubled = [row[0] * 2 for row in rows if row[0] is not None]
    raw = [row[1] for row in rows if row[1] is not None]
    expected = (
        "key",
        len(rows),
        math.fsum(doubled) if doubled else None,
        math.fsum(raw) / len(raw) if raw else None,
        rows[-1][2] if rows else None,
        max(doubled, default=None),
    )
    assert alike(given_row, expected)


def test_of_several_aggregates_that_fail_the_first_is_the_reason_and_all_are_null() -> None:
    asked = {"n": cm.count(), "total": cm.sum(Reading.n), "fussy": Fussy()(N), "most": cm.max(Reading.n)}
    bundle = Bundle(named(Reading.schema, asked, author_line()), Reading.schema, None)
    summary = bundle.empty()
    for value in (2**63 - 1, 5):
        bundle.add(summary, bundle.look((0, None, None, value, None)), 0, 0)
    (row,), failure = bundle.rows((), summary)
    assert row == (2, None, None, 2**63 - 1)
    assert failure is not None
    assert failure.reason == OVERFLOW


def test_an_aggregate_of_another_version_is_refused() -> None:
    with pytest.raises(InternalError) as raised:
        aggregate_of(NamedAggregate("it", AggregateCall("median"), FLOAT), Reading.schema, None)
    assert raised.value.code == "I320"


def test_of_ints_a_step_does_not_matter() -> None:
    call = AggregateCall("sum", (Reading.n.node,), step=5.0)
    total = aggregate_of(NamedAggregate("it", call, INT, True), Reading.schema, None)
    assert total.result(summary_of(total, [3, 4])) == 7
