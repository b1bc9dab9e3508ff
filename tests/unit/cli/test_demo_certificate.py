"""The demo's certificate: KEPT for a run that lost nothing, and BROKEN, with the example, for each way to lose."""

from __future__ import annotations

from typing import Any

import pytest

from catchment.demo.certificate import Ideal, compared
from catchment.gateway.log import Entry, Kind
from catchment.program.reliability import IN_STREAM_ORDER, LOSSLESS
from catchment.reliability import Report, verify
from catchment.sync.codecs import codec
from tests.unit.gateway.page_kit import program

PLAN = program()
START = "phone · walks/steps · start 1/0000"
Rows = list[tuple[Any, ...]]


def upload(first: int, count: int, device: str = "phone", user: str = "ada") -> Entry:
    schema = PLAN.schemas[PLAN.sync("steps").schema]
    rows = [("", 1_000_000 * n, 46.0, 14.5, "walk") for n in range(first, first + count)]
    return Entry(
        kind=Kind.DATA,
        device=device,
        user=user,
        stream="walks/steps",
        schema=schema.fingerprint,
        codec="delta/deflate",
        epoch_counter=1,
        first=first,
        count=count,
        upto=first + count,
        received_us=5_000_000,
        payload=codec("delta/deflate").encode(schema, rows),
    )


def due(numbers: range) -> Rows:
    return [("ada", 1_000_000 * n, 46.0, 14.5, "walk", 1.5) for n in numbers]


def report(entries: list[Entry], held: Rows, numbered: int, before: int) -> Report:
    ideal = Ideal(PLAN)
    for entry in entries:
        ideal.take(entry)
    streams = list(compared(ideal, {"sums": {"ada": before}}, {"sums": {"ada": held}}, {START: numbered}))
    return verify({name: ideal for name, ideal, _ in streams}, {name: real for name, _, real in streams})


def test_what_arrived_once_and_in_order_is_kept() -> None:
    found = report([upload(0, 3), upload(3, 2)], due(range(5)), 5, 5)
    assert found.holds(LOSSLESS & IN_STREAM_ORDER)
    assert {stream.stream for stream in found.streams} == {START, "sums → ada"}


def test_what_was_logged_since_may_be_held_already_or_not_yet() -> None:
    for held in range(3, 6):
        assert report([upload(0, 3), upload(3, 2)], due(range(held)), 3, 3).holds(LOSSLESS & IN_STREAM_ORDER)


@pytest.mark.parametrize(
    ("held", "numbered", "fault"),
    [
        (due(range(4)), 5, "missing"),
        ([*due(range(4)), due(range(9, 10))[0]], 5, "incorrect"),
        ([*due(range(5)), due(range(5))[0]], 5, "incorrect"),
        ([*due(range(3)), *due(range(4, 5)), *due(range(3, 4))], 5, "incorrect"),
        (due(range(5)), 6, "missing"),
    ],
    ids=[
        "a result is lost",
        "a result is another",
        "a result came twice",
        "results changed places",
        "an upload is lost",
    ],
)
def test_whatever_was_lost_is_found(held: Rows, numbered: int, fault: str) -> None:
    found = report([upload(0, 3), upload(3, 2)], held, numbered, 5)
    assert not found.holds(LOSSLESS & IN_STREAM_ORDER)
    assert getattr(found.measured, fault) > 0


def test_an_upload_that_is_logged_twice_is_found() -> None:
    found = report([upload(0, 3), upload(0, 3)], due(range(3)), 3, 3)
    assert found.stream(START).measured.duplicates > 0
    assert not found.holds(LOSSLESS & IN_STREAM_ORDER)
