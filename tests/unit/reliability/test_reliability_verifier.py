"""The verifier by example: what a report shows of each fault, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.program.reliability import (
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IDEAL,
    IN_STREAM_ORDER,
    LOSSLESS,
    limited_delay,
    limited_loss,
)
from catchment.program.types import FLOAT, STR, Column, Duration, Instant, Schema
from catchment.reliability import Element, Report, Verifier, verify
from catchment.reliability.report import error_factor, loss_factor


def stream(*elements: tuple[int, object, int]) -> list[Element]:
    return [Element(sequence, payload, Instant(at)) for sequence, payload, at in elements]


IDEAL_TRIPS = stream((0, ("ada", 10.0), 100), (1, ("ben", 20.0), 200), (2, ("ada", 30.0), 300), (3, ("cyd", 40.0), 400))


def trips(*real: tuple[int, object, int]) -> Report:
    return verify({"trips": IDEAL_TRIPS}, {"trips": stream(*real)})


def test_the_same_output_is_ideal() -> None:
    report = verify({"trips": IDEAL_TRIPS}, {"trips": reversed(IDEAL_TRIPS)})
    assert report.held == IDEAL
    assert report.stream("trips").held == IDEAL


def test_what_is_missing() -> None:
    found = trips((0, ("ada", 10.0), 100), (3, ("cyd", 40.0), 400)).stream("trips")
    assert (found.measured.missing, found.measured.loss_factor, found.measured.error_factor) == (2, 0.5, 0.0)
    assert str(found.first_missing) == "trips[1] expected ('ben', 20.0), due at 200 us"
    assert found.holds(limited_loss(0.5) & DELAY_FREE)
    assert not found.holds(limited_loss(0.51))


def test_what_is_wrong_counts_as_an_error_and_as_a_loss() -> None:
    found = trips(
        (0, ("ada", 10.0), 100), (1, ("ben", 21.0), 200), (2, ("ada", 30.0), 300), (3, ("cyd", 40.0), 400), (7, None, 1)
    ).stream("trips")
    assert (found.measured.correct, found.measured.missing, found.measured.incorrect) == (3, 1, 2)
    assert str(found.first_incorrect) == "trips[1] ('ben', 21.0), expected ('ben', 20.0), due at 200 us, came at 200 us"
    assert found.holds(limited_loss(0.75, 0.5))
    assert not found.holds(limited_loss(0.75, 0.49))


def test_an_unexpected_element_is_wrong_without_being_a_loss() -> None:
    found = verify({"trips": IDEAL_TRIPS}, {"trips": [*IDEAL_TRIPS, *stream((9, "new", 500))]}).stream("trips")
    assert str(found.first_incorrect) == "trips[9] 'new', came at 500 us"
    assert found.holds(limited_loss(1, 0.25) & DELAY_FREE)
    assert not found.holds(LOSSLESS)


def test_a_copy_is_no_loss_but_its_delay_and_order_count() -> None:
    copies = stream((1, ("ben", 20.0), 200), (0, ("ada", 10.0), 350))
    report = verify({"trips": IDEAL_TRIPS}, {"trips": [*IDEAL_TRIPS, *copies]})
    found = report.stream("trips")
    assert (found.measured.correct, found.measured.duplicates, found.measured.incorrect) == (4, 2, 0)
    assert str(found.first_duplicate) == "trips[1] due at 200 us, came at 200 us"
    assert report.holds(LOSSLESS & limited_delay(Duration(250)))
    assert not report.holds(limited_delay(Duration(249)))
    assert str(found.first_disorder) == (
        "reversed: trips[0] due at 100 us, came at 350 us; trips[1] due at 200 us, came at 200 us"
    )


def test_a_wrong_element_that_comes_twice_is_one_error_and_a_copy() -> None:
    found = trips((9, (1, "new"), 5), (9, (1.0, "new"), 6), (9, (2, "new"), 7), (8, (1, "new"), 8)).stream("trips")
    assert (found.measured.incorrect, found.measured.duplicates) == (3, 1)
    assert str(found.first_duplicate) == "trips[9] (1.0, 'new'), came at 6 us"


def test_an_early_element_breaks_every_delay() -> None:
    report = trips((0, ("ada", 10.0), 99), (1, ("ben", 20.0), 230))
    assert (report.measured.delay_us_min, report.measured.delay_us_max) == (-1, 30)
    assert not report.holds(limited_delay(Duration(10**9)))
    assert report.holds(IN_STREAM_ORDER)
    found = report.stream("trips")
    assert str(found.earliest) == "trips[0] due at 100 us, came at 99 us"
    assert str(found.latest) == "trips[1] due at 200 us, came at 230 us"


def test_order_beside_a_gap() -> None:
    found = trips((0, ("ada", 10.0), 500), (3, ("cyd", 40.0), 400)).stream("trips")
    assert found.first_disorder is not None
    assert (found.first_disorder.before.sequence, found.first_disorder.after.sequence) == (0, 3)


def test_nothing_came() -> None:
    report = verify({"trips": IDEAL_TRIPS, "stops": []}, {"stops": stream((0, "x", 1))})
    assert report.stream("trips").measured.loss_factor == 0.0
    assert report.stream("trips").held == DELAY_FREE
    assert report.stream("stops").measured.error_factor is None
    assert report.stream("stops").held.loss is None
    assert (report.measured.loss_factor, report.measured.error_factor) == (0.0, None)
    assert report.held == DELAY_FREE


@pytest.mark.parametrize(
    ("due", "came", "kind"),
    [
        ((1, 2), (5, 4), "reversed"),
        ((1, 2), (5, 5), "joined"),
        ((2, 2), (5, 6), "parted"),
        ((2, 2), (6, 5), "parted"),
        ((1, 2), (5, 6), None),
        ((2, 2), (5, 5), None),
    ],
)
def test_order_across_streams(due: tuple[int, int], came: tuple[int, int], kind: str | None) -> None:
    ideal = {"trips": stream((0, "t", due[0])), "stops": stream((0, "s", due[1]))}
    real = {"trips": stream((0, "t", came[0])), "stops": stream((0, "s", came[1]))}
    report = verify(ideal, real)
    assert (report.first_cross_disorder.kind if report.first_cross_disorder else None) == kind
    assert report.holds(CROSS_STREAM_ORDER) == (kind is None)
    assert report.holds(IN_STREAM_ORDER)


def test_the_run_is_as_good_as_its_worst_stream() -> None:
    ideal = {"a": stream((0, "x", 0), (1, "y", 1)), "b": stream((0, "x", 0))}
    real = {"a": stream((0, "x", 4)), "b": stream((0, "x", 9), (5, "z", 9))}
    report = verify(ideal, real)
    assert report.held == limited_loss(0.5, 1) & limited_delay(Duration(9)) & IN_STREAM_ORDER
    assert report.measured.ideal == 3
    assert report.measured.correct == 2


def test_a_report_is_there_at_any_moment() -> None:
    verifier = Verifier({"trips": IDEAL_TRIPS})
    factors = [verifier.report().measured.loss_factor]
    for element in IDEAL_TRIPS:
        verifier.take("trips", element)
        factors.append(verifier.report().measured.loss_factor)
    assert factors == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_tolerance_by_field_is_named_in_the_report() -> None:
    schema = Schema("Trip", (Column("user", STR, key=True), Column("carbon_g", FLOAT)))
    real = {"trips": stream((0, ("ada", 10.0 + 1e-12), 100))}
    ideal = {"trips": IDEAL_TRIPS[:1]}
    assert not verify(ideal, real).holds(LOSSLESS)
    report = verify(ideal, real, tolerances={"trips": {schema.position("carbon_g"): 1e-9}})
    assert report.holds(IDEAL)
    assert [(rule.stream, rule.field, rule.within) for rule in report.tolerances] == [("trips", 1, 1e-9)]
    wrong = verify(ideal, {"trips": stream((0, ("ada", 11.0), 100))}, tolerances={"trips": {1: 0.5}})
    assert "expected ('ada', 10.0)" in str(wrong.stream("trips").first_incorrect)


def test_a_large_payload_is_compared_by_hash() -> None:
    ideal = {"notes": stream((0, "x" * 1000, 0), (1, "y" * 1000, 1))}
    report = verify(ideal, {"notes": stream((0, "x" * 1000, 0), (1, "y" * 999 + "z", 1))})
    assert report.measured.correct == 1
    shown = str(report.stream("notes").first_incorrect)
    assert re.match(r"notes\[1\] 'y+\.\.\., expected a payload with the hash [0-9a-f]{16}, due", shown)
    assert len(shown) < 300


def test_fingerprints_name_what_was_compared() -> None:
    ideal = {"a": stream((0, "x", 0)), "b": stream((0, "y", 1))}
    changed: list[dict[str, list[Element]]] = [
        {**ideal, "a": stream((0, "x", 1))},
        {**ideal, "a": stream((1, "x", 0))},
        {**ideal, "a": stream((0, "z", 0))},
        {**ideal, "a": stream((0, "x", 0), (0, "x", 0))},
        {"a": ideal["b"], "b": ideal["a"]},
        {"a": ideal["a"]},
    ]
    same = verify(ideal, dict(reversed(ideal.items()))).real_fingerprint
    others = [verify(ideal, real).real_fingerprint for real in changed]
    assert same == verify(ideal, ideal).real_fingerprint == verify(ideal, ideal).ideal_fingerprint
    assert len({same, *others}) == 1 + len(changed)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_promise_of_the_measured_factors_is_one_that_was_kept(part: int, whole: int) -> None:
    part = min(part, whole)
    lost, wrong = loss_factor(part, whole), error_factor(part, whole)
    assert wrong is not None
    assert part >= whole * Fraction(str(lost))
    assert part <= whole * Fraction(str(wrong))
    assert abs(lost - part / whole) < 1e-15
    assert abs(wrong - part / whole) < 1e-15


@pytest.mark.parametrize(("came", "factor"), [(7, 0.07), (29, 0.29), (57, 0.57), (58, 0.58)])
def test_a_factor_is_the_decimal_that_was_written(came: int, factor: float) -> None:
    # In binary arithmetic 100 * 0.07 is more than 7.
    ideal = {"a": stream(*((n, None, n) for n in range(100)))}
    real = {"a": ideal["a"][:came]}
    assert verify(ideal, real).holds(limited_loss(factor))
    assert not verify(ideal, {"a": ideal["a"][: came - 1]}).holds(limited_loss(factor))


def test_a_report_reads_back_from_json() -> None:
    report = verify(
        {"a": stream((0, (1, 2.0), 0), (1, "x", 4), (2, "y", 5)), "b": stream((0, "y", 1))},
        {"a": stream((0, (1, 2.1), 3), (0, "z", 3), (0, "z", 3), (2, "y", 1))},
        tolerances={"b": {}},
    )
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


class _Opaque:
    pass


some: Any = None
GOOD = {"a": stream((0, ("k", 1.0), 0), (1, ("k", 2.0), 1))}
BAD: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
    ("V600", lambda: verify({}, {}), lambda: verify({"a": []}, {})),
    ("V601", lambda: verify(GOOD, {"b": []}), lambda: verify(GOOD, {"a": []})),
    ("V601", lambda: Verifier(GOOD).take("b", GOOD["a"][0]), lambda: Verifier(GOOD).take("a", GOOD["a"][0])),
    ("V601", lambda: verify(GOOD, {}, tolerances={"b": {1: 0.1}}), lambda: verify({**GOOD, "b": []}, {"b": []})),
    ("V602", lambda: verify({"a": GOOD["a"][::-1]}, {}), lambda: verify({"a": GOOD["a"]}, {})),
    ("V602", lambda: verify({"a": [*GOOD["a"], GOOD["a"][1]]}, {}), lambda: verify({"a": GOOD["a"]}, {})),
    ("V603", lambda: verify({"a": stream((0, "x", 2), (1, "y", 1))}, {}), lambda: _sorted_then_numbered()),
    ("V604", lambda: verify({"a": stream((0, _Opaque(), 0))}, {}), lambda: verify({"a": stream((0, "x", 0))}, {})),
    ("V604", lambda: verify(GOOD, {"a": stream((0, 2**70, 0))}), lambda: verify(GOOD, {"a": stream((0, 2**60, 0))})),
    ("V604", lambda: verify(GOOD, {"a": stream((0, "\ud800", 0))}), lambda: verify(GOOD, {"a": stream((0, "x", 0))})),
    ("V605", lambda: verify(GOOD, {"a": [(0, "x", 0.5)]}), lambda: verify(GOOD, {"a": stream((0, "x", 500_000))})),  # type: ignore[list-item]
    ("V605", lambda: verify(GOOD, {"a": [(0, "x")]}), lambda: verify(GOOD, {"a": stream((0, "x", 0))})),  # type: ignore[list-item]
    ("V605", lambda: verify(GOOD, {"a": [some]}), lambda: verify(GOOD, {"a": stream((0, "x", 0))})),
    ("V606", lambda: verify(GOOD, {}, tolerances={"a": {2: 0.1}}), lambda: _with_tolerance({1: 0.1})),
    ("V606", lambda: verify(GOOD, {}, tolerances={"a": {"level": 0.1}}), lambda: _with_tolerance({1: 0.1})),
    ("V606", lambda: verify(GOOD, {}, tolerances={"a": {-1: 0.1}}), lambda: _with_tolerance({1: 0.1})),
    ("V607", lambda: verify(GOOD, {}, tolerances={"a": {1: 0}}), lambda: _with_tolerance({1: 1e-9})),
    ("V607", lambda: verify(GOOD, {}, tolerances={"a": {1: float("nan")}}), lambda: _with_tolerance({})),
    ("V607", lambda: verify(GOOD, {}, tolerances={"a": {1: some}}), lambda: _with_tolerance({1: 1e-9})),
    ("V611", lambda: verify(GOOD, {}).stream("b"), lambda: verify(GOOD, {}).stream("a")),
]


def _sorted_then_numbered() -> Report:
    came = sorted([(2, "x"), (1, "y")])
    return verify({"a": stream(*((n, payload, at) for n, (at, payload) in enumerate(came)))}, {})


def _with_tolerance(fields: Mapping[int | str, float]) -> Report:
    return verify(GOOD, {}, tolerances={"a": fields})


@pytest.mark.parametrize(("code", "mistake", "repaired"), BAD)
def test_a_mistake_is_refused_and_its_repair_works(
    code: str, mistake: Callable[[], object], repaired: Callable[[], object]
) -> None:
    with pytest.raises(ProgramError) as caught:
        mistake()
    assert caught.value.code == code
    assert caught.value.at is not None
    assert Path(caught.value.at.file).name == Path(__file__).name
    repaired()
