"""When payloads are the same: against an oracle on random values, and the cases that people ask about."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.reliability.payload import EXACT_BYTES_MAX, Field, Sameness, encode

INFINITY = math.inf
LONG = "x" * 100


def same(ideal: object, real: object, tolerances: dict[Field, float] | None = None) -> bool:
    rule = Sameness(tolerances or {})
    ideal_key, near = rule.split(ideal, encode(ideal))
    held = rule.hold(ideal_key)
    assert len(held) <= EXACT_BYTES_MAX + 1
    return rule.matches(held, near, *rule.split(real, encode(real)))


def oracle(one: Any, two: Any) -> bool:
    """The same value: numbers by ==, NaN as NaN, no bool a number, tuples as lists."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, int | float) and isinstance(two, int | float):
        return one == two or (one != one and two != two)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(oracle, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(oracle(one[name], two[name]) for name in one)
    return type(one) is type(two) and one == two


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)]),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, math.nan, -math.nan, INFINITY, -INFINITY, 2.0**53, 2.0**63, 2.0**64, 1e300]),
    st.sampled_from(["", "a", "1", LONG, LONG + "y"]),
    st.sampled_from([b"", b"a", b"1"]),
)
payloads = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(payloads, payloads)
@example(1, True)
@example([LONG, 0.0, 1], (LONG, -0.0, 1.0))
@example([LONG, math.nan], [LONG, -math.nan])
@example({"p": 1, "q": 2}, {"q": 2.0, "p": 1})
@example([LONG, 2**63], [LONG, 2.0**63])
def test_payloads_are_the_same_when_their_values_are(one: object, two: object) -> None:
    assert same(one, two) == oracle(one, two)
    assert same(one, one)


@pytest.mark.parametrize("padding", ["", LONG], ids=["kept", "hashed"])
@pytest.mark.parametrize(
    ("ideal", "real", "expected"),
    [
        (1.0, 1, True),
        (0.0, -0.0, True),
        (math.nan, INFINITY - INFINITY, True),
        (math.nan, None, False),
        (1, True, False),
        ("1", 1, False),
        ("a", b"a", False),
        (0.1 + 0.2, 0.3, False),
        (2**53 + 1, float(2**53), False),
        (None, 0, False),
    ],
)
def test_values_that_people_ask_about(padding: str, ideal: object, real: object, expected: bool) -> None:
    assert same((padding, ideal), (padding, real)) is expected


@pytest.mark.parametrize("padding", ["", LONG], ids=["kept", "hashed"])
@pytest.mark.parametrize(
    ("ideal", "real", "expected"),
    [
        (1.0, 1.5, True),
        (1.0, 0.5, True),
        (1.0, 1.5000001, False),
        (1, 1.25, True),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (INFINITY, INFINITY, True),
        (INFINITY, 1.0, False),
        (None, None, True),
        (None, 0.0, False),
        (True, 1.0, False),
        ("1", "1", True),
        (2**53 + 1, 2**53 + 1, True),
        (2**60, 2**60 + 1, False),
    ],
)
def test_a_tolerance_is_for_finite_numbers(padding: str, ideal: object, real: object, expected: bool) -> None:
    assert same((padding, ideal, 3), (padding, real, 3), {1: 0.5}) is expected
    assert same((padding, ideal, 3), (padding, real, 4), {1: 0.5}) is False
    assert same({"p": padding, "q": ideal}, {"q": real, "p": padding}, {"q": 0.5}) is expected


@pytest.mark.parametrize("real", [(), ("ada",), "ada", None, 7.0, {"mean": 7.0}])
def test_a_real_payload_without_the_field_differs(real: object) -> None:
    assert not same(("ada", 7.0), real, {1: 0.5})


def test_two_tolerances_apply_each_to_its_own_field() -> None:
    rule: dict[Field, float] = {2: 1.0, 0: 0.1}
    assert same((1.0, "k", 5.0), (1.05, "k", 6.0), rule)
    assert not same((1.0, "k", 5.0), (1.5, "k", 5.0), rule)
    assert not same((1.0, "k", 5.0), (1.0, "k", 6.5), rule)
    assert not same((1.0, "k", 5.0), (1.0, "j", 5.0), rule)


class _Reading(NamedTuple):
    user: str
    level: float


def test_a_subclass_of_tuple_is_compared_as_its_row() -> None:
    assert same(_Reading("ada", 1.0), ("ada", 1))


class _Pair(msgspec.Struct):
    p: int
    q: float


def test_a_struct_is_compared_as_a_mapping() -> None:
    assert same(_Pair(1, 2.0), {"q": 2, "p": 1})
