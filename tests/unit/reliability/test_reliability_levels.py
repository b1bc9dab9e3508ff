"""Reliability levels as an author declares them: their algebra, their JSON, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.program.clock_units import seconds
from catchment.program.reliability import (
    BEST_EFFORT,
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IDEAL,
    IN_STREAM_ORDER,
    LOSSLESS,
    LimitedDelay,
    LimitedLoss,
    Reliability,
    duration_text,
    limited_delay,
    limited_loss,
)
from catchment.program.types import Duration

losses = st.builds(
    limited_loss, st.sampled_from([0.1, 0.5, 0.99, 1, 1.0]), st.sampled_from([0, 0.0, -0.0, 0.25, 3, 3.0])
)
delays = st.builds(limited_delay, st.sampled_from([Duration(0), Duration(1), Duration(60_000_000)]))
single = st.one_of(losses, delays, st.sampled_from([IN_STREAM_ORDER, CROSS_STREAM_ORDER, IDEAL, BEST_EFFORT]))
levels = st.lists(single, max_size=4).map(lambda parts: BEST_EFFORT if not parts else _all(parts))


def _all(parts: list[Reliability]) -> Reliability:
    return parts[0] if len(parts) == 1 else parts[0] & _all(parts[1:])


@settings(deadline=None)
@given(levels, levels, levels)
def test_and_is_a_conjunction(a: Reliability, b: Reliability, c: Reliability) -> None:
    assert a & b == b & a
    assert (a & b) & c == a & (b & c)
    assert a & a == a
    assert a & BEST_EFFORT == a
    assert a & IDEAL == IDEAL
    assert hash(a & b) == hash(b & a)
    assert msgspec.json.encode(a & b) == msgspec.json.encode(b & a)


@settings(deadline=None)
@given(levels, levels, levels)
def test_implication_is_the_order_of_which_and_is_the_meet(a: Reliability, b: Reliability, c: Reliability) -> None:
    assert a.implies(a)
    assert (a & b).implies(a)
    assert (a.implies(b) and a.implies(c)) == a.implies(b & c)
    assert (a.implies(b) and b.implies(a)) == (a == b)
    if a.implies(b) and b.implies(c):
        assert a.implies(c)
    assert IDEAL.implies(a)
    assert a.implies(BEST_EFFORT)


def test_the_implications_that_an_author_relies_on() -> None:
    assert LOSSLESS.implies(limited_loss(0.3, 2))
    assert limited_loss(0.9, 0.1).implies(limited_loss(0.8, 0.2))
    assert not limited_loss(0.9, 0.1).implies(limited_loss(0.91, 0.2))
    assert not limited_loss(0.9, 0.1).implies(limited_loss(0.8, 0.09))
    assert limited_delay(seconds(5)).implies(limited_delay(seconds(6)))
    assert not limited_delay(seconds(5)).implies(limited_delay(seconds(4)))
    assert DELAY_FREE.implies(limited_delay(seconds(1)) & CROSS_STREAM_ORDER)
    assert not limited_delay(Duration(1)).implies(IN_STREAM_ORDER)
    assert CROSS_STREAM_ORDER.implies(IN_STREAM_ORDER)
    assert not IN_STREAM_ORDER.implies(CROSS_STREAM_ORDER)
    for one, two in itertools.permutations([LOSSLESS, limited_delay(seconds(1)), CROSS_STREAM_ORDER], 2):
        assert not one.implies(two)


def test_one_meaning_has_one_form() -> None:
    assert limited_loss(1) == LOSSLESS
    assert limited_delay(seconds(0)) == DELAY_FREE
    assert DELAY_FREE & CROSS_STREAM_ORDER == DELAY_FREE & IN_STREAM_ORDER == DELAY_FREE
    assert limited_loss(0.9, 0.1) & limited_loss(0.5, 0.05) == limited_loss(0.9, 0.05)
    assert Reliability(LimitedLoss(), LimitedDelay(Duration(0))) == LOSSLESS & DELAY_FREE == IDEAL


@settings(deadline=None)
@given(levels)
def test_json_round_trip(level: Reliability) -> None:
    assert msgspec.json.decode(msgspec.json.encode(level), type=Reliability) == level


@pytest.mark.parametrize(
    ("level", "document", "text"),
    [
        (BEST_EFFORT, b"{}", "BEST_EFFORT"),
        (LOSSLESS, b'{"loss":{"loss_factor":1.0,"error_factor":0.0}}', "LOSSLESS"),
        (
            limited_loss(0.9, 0.25) & IN_STREAM_ORDER,
            b'{"loss":{"loss_factor":0.9,"error_factor":0.25},"order":"in-stream"}',
            "limited_loss(0.9, 0.25) & IN_STREAM_ORDER",
        ),
        (DELAY_FREE, b'{"delay":{"within_us":0},"order":"cross-stream"}', "DELAY_FREE"),
        (
            LOSSLESS & limited_delay(seconds(90)) & CROSS_STREAM_ORDER,
            b'{"loss":{"loss_factor":1.0,"error_factor":0.0},"delay":{"within_us":90000000},"order":"cross-stream"}',
            "LOSSLESS & limited_delay(90 s) & CROSS_STREAM_ORDER",
        ),
        (
            IDEAL,
            b'{"loss":{"loss_factor":1.0,"error_factor":0.0},"delay":{"within_us":0},"order":"cross-stream"}',
            "IDEAL",
        ),
    ],
)
def test_the_form_that_others_read(level: Reliability, document: bytes, text: str) -> None:
    assert msgspec.json.encode(level) == document
    assert str(level) == text


def test_what_is_not_in_normal_form_is_read_into_it() -> None:
    assert msgspec.json.decode(b'{"delay":{"within_us":0},"order":"in-stream"}', type=Reliability) == DELAY_FREE
    assert msgspec.json.decode(b'{"loss":{"loss_factor":1,"error_factor":0}}', type=Reliability) == LOSSLESS


@pytest.mark.parametrize("us", [1, 999, 1_000, 1_001, 999_999, 1_000_000, 1_000_001, 86_400_000_000, -1_500])
def test_a_duration_is_printed_exactly(us: int) -> None:
    number, unit = duration_text(us).split()
    assert round(float(number) * {"us": 1, "ms": 1_000, "s": 1_000_000}[unit]) == us


nonsense: Any = "soon"
JOINED = "LOSSLESS & limited_delay(seconds(60)) & IN_STREAM_ORDER"


@pytest.mark.parametrize(
    ("code", "mistake", "repair"),
    [
        ("C300", lambda: limited_loss(0), "limited_loss(0.99)"),
        ("C300", lambda: limited_loss(1.01), "limited_loss(0.99)"),
        ("C300", lambda: limited_loss(float("nan")), "limited_loss(0.99)"),
        ("C300", lambda: limited_loss(nonsense), "limited_loss(0.99)"),
        ("C300", lambda: limited_loss(True), "limited_loss(0.99)"),
        ("C301", lambda: limited_loss(0.9, -0.1), "limited_loss(0.99, error_factor=0.01)"),
        ("C301", lambda: limited_loss(0.9, float("inf")), "limited_loss(0.99, error_factor=0.01)"),
        ("C301", lambda: limited_loss(0.9, nonsense), "limited_loss(0.99, error_factor=0.01)"),
        ("C302", lambda: limited_delay(Duration(-1)), "DELAY_FREE"),
        ("C302", lambda: limited_delay(60.0), "limited_delay(seconds(60))"),  # type: ignore[arg-type]
        ("C302", lambda: limited_delay(nonsense), "limited_delay(seconds(60))"),
        ("C303", lambda: Reliability(order=nonsense), JOINED),
        ("C303", lambda: Reliability(loss=nonsense), JOINED),
        ("C304", lambda: LOSSLESS & nonsense, "LOSSLESS & IN_STREAM_ORDER"),
        ("C304", lambda: nonsense & LOSSLESS, "LOSSLESS & IN_STREAM_ORDER"),
        ("C305", lambda: LOSSLESS and DELAY_FREE, "LOSSLESS & IN_STREAM_ORDER"),  # pyright: ignore
        ("C305", lambda: not LOSSLESS, "LOSSLESS & IN_STREAM_ORDER"),  # pyright: ignore
    ],
)
def test_a_bad_declaration_is_refused_at_the_authors_line(
    code: str, mistake: Callable[[], object], repair: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        mistake()
    assert caught.value.code == code
    assert caught.value.at is not None
    assert Path(caught.value.at.file).name == Path(__file__).name
    assert caught.value.at.line == mistake.__code__.co_firstlineno
    assert repair in caught.value.fix
    assert isinstance(eval(repair), Reliability)


def test_a_bad_level_in_a_document_is_refused_as_well() -> None:
    with pytest.raises(ProgramError, match="C300"):
        msgspec.json.decode(b'{"loss":{"loss_factor":2.0,"error_factor":0.0}}', type=Reliability)
    with pytest.raises(msgspec.ValidationError, match="order"):
        msgspec.json.decode(b'{"order":"sideways"}', type=Reliability)
