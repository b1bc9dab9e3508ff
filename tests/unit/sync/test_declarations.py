"""Sync policies as declared: data that a plan carries, and mistakes that are refused where they are written."""

from collections.abc import Callable

import msgspec
import pytest

from catchment.errors import ProgramError
from catchment.program.expression import field_of
from catchment.program.reliability import LOSSLESS, limited_loss
from catchment.program.sync import (
    BUFFER,
    DROP_OLDEST,
    REFUSE,
    Batch,
    Bound,
    SampleDown,
    Sync,
    Thin,
    dead_reckoning,
    significant_change,
    trend,
    wait_when_metered,
)
from catchment.program.types import FLOAT, Duration

HOUR = Duration(3_600_000_000)
LAT, LON = field_of("Fix", "lat_deg", FLOAT), field_of("Fix", "lon_deg", FLOAT)


@pytest.mark.parametrize(
    "policy",
    [
        Sync(),
        Sync(batch=Batch(records=None, bytes=1000), filter=dead_reckoning(LAT, LON, within=10), codec="msgpack"),
        Sync(filter=significant_change("celsius", by=0.5, at_least_every=HOUR), priority=3),
        Sync(reliability=limited_loss(0.5), on_disconnect=SampleDown(10), outbox=Bound(when_full=Thin(3))),
        Sync(metered=wait_when_metered(HOUR), compression="deflate", on_disconnect="notify"),
    ],
)
def test_a_policy_travels_as_json(policy: Sync) -> None:
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Sync) == policy


def test_a_field_is_named_by_its_expression() -> None:
    assert dead_reckoning(LAT, LON, within=10) == dead_reckoning("lat_deg", "lon_deg", within=10.0)


@pytest.mark.parametrize(
    ("code", "mistake", "repair"),
    [
        ("S440", lambda: Batch(records=0), lambda: Batch(records=1)),
        ("S440", lambda: Batch(within=Duration(-1)), lambda: Batch(within=HOUR)),
        ("S441", lambda: Batch(records=None, within=None), lambda: Batch(records=100, within=HOUR)),
        ("S442", lambda: SampleDown(1), lambda: SampleDown(10, after=HOUR)),
        ("S443", lambda: Thin(1), lambda: Thin(2)),
        ("S444", lambda: Bound(records=0), lambda: Bound(records=None, bytes=None)),
        ("S445", lambda: wait_when_metered(Duration(0)), lambda: wait_when_metered(HOUR)),
        ("S446", lambda: Sync(codec="delta/zstd"), lambda: Sync(codec="delta", compression="zstd")),
        ("S447", lambda: dead_reckoning(LAT, LON, within=0), lambda: dead_reckoning(LAT, LON, within=10)),
        ("S447", lambda: trend(LAT, within=float("nan")), lambda: trend(LAT, within=0.1)),
        ("S448", lambda: significant_change(by=0.5), lambda: significant_change(LAT, by=0.5)),
        ("S449", lambda: significant_change(LAT + 1, by=0.5), lambda: significant_change(LAT, by=0.5)),
        (
            "S450",
            lambda: Sync(reliability=LOSSLESS, outbox=Bound(when_full=DROP_OLDEST)),
            lambda: Sync(reliability=limited_loss(0.5), outbox=Bound(when_full=DROP_OLDEST)),
        ),
        (
            "S450",
            lambda: Sync(reliability=LOSSLESS, on_disconnect=SampleDown(2)),
            lambda: Sync(reliability=LOSSLESS, on_disconnect=BUFFER, outbox=Bound(when_full=REFUSE)),
        ),
    ],
)
def test_a_mistake_is_refused_where_it_is_written_and_its_repair_works(
    code: str, mistake: Callable[[], object], repair: Callable[[], object]
) -> None:
    with pytest.raises(ProgramError) as caught:
        mistake()
    assert caught.value.code == code
    assert caught.value.at is not None
    assert caught.value.at.file == __file__
    repair()
