"""Wherever an expression is accepted, a text of SQL is, and it is the same step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import catchment as cm
from catchment.program.stream import Stream
from catchment.testing import alone


class Hotspot(cm.Record):
    bssid: cm.Field[str]
    dbm: cm.Field[float] = cm.field(step=1.0)


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float]
    lon_deg: cm.Field[float]
    speed_mps: cm.Field[float]
    heard: cm.Field[Hotspot | None] = cm.field(default=None)


class Total(cm.UserAggregate[float, float, float]):
    """A sum in the author's own words."""

    def merge(self, left: float, right: float) -> float:
        return left + right


Fixes = Stream[Fix]
Way = Callable[[Fixes], Any]


def both_ways(made: Callable[[Any], cm.Aggregate[Any]]) -> tuple[Way, Way]:
    """An aggregate of an expression, and of the text that writes it."""
    doubled = Fix.speed_mps * 2
    return (
        lambda f: f.window(MINUTE).agg(x=made(doubled)),
        lambda f: f.window(MINUTE).agg(x=made("speed_mps * 2")),
    )


MINUTE = cm.tumble(cm.minutes(1))
NEAR = (cm.minutes(1), cm.minutes(1))
WAYS: dict[str, tuple[Way, Way]] = {
    "where": (lambda f: f.where(Fix.speed_mps > 2), lambda f: f.where("speed_mps > 2")),
    "select": (lambda f: f.select(kmh=Fix.speed_mps * 3.6), lambda f: f.select(kmh="SPEED_MPS * 3.6")),
    "key_by": (lambda f: f.key_by(Fix.user).changes(Fix.lat_deg), lambda f: f.key_by("user").changes("lat_deg")),
    "moved": (
        lambda f: f.moved(by=5, lat_deg=Fix.lat_deg, lon_deg=Fix.lon_deg),
        lambda f: f.moved(by=5, lat_deg="lat_deg", lon_deg="lon_deg"),
    ),
    "top": (lambda f: f.window(MINUTE).top(2, by=-Fix.speed_mps), lambda f: f.window(MINUTE).top(2, by="-speed_mps")),
    "state": (lambda f: f.state(most=cm.max(Fix.speed_mps)), lambda f: f.state(most=cm.max("speed_mps"))),
    "when": (
        lambda f: f.select(pace=cm.when(Fix.speed_mps > 2, "fast").when(Fix.speed_mps > 1, "walk").otherwise("slow")),
        lambda f: f.select(pace=cm.when("speed_mps > 2", "fast").when("speed_mps > 1", "walk").otherwise("slow")),
    ),
    "nested": (
        lambda f: f.where(Fix.heard.get("dbm") > -70),
        lambda f: f.where("heard.dbm > -70"),
    ),
    "join": (
        lambda f: f.key_by("user").join(f.key_by("user"), within=NEAR, more=cm.right(Fix.speed_mps) - Fix.speed_mps),
        lambda f: f.key_by("user").join(f.key_by("user"), within=NEAR, more="right.speed_mps - left.speed_mps"),
    ),
    "join_latest": (
        lambda f: f.key_by("user").join_latest(f.key_by("user"), more=cm.right(Fix.speed_mps) - Fix.speed_mps),
        lambda f: f.key_by("user").join_latest(f.key_by("user"), more="right.speed_mps - left.speed_mps"),
    ),
    "zip": (
        lambda f: f.zip(f, more=cm.right(Fix.speed_mps) - Fix.speed_mps),
        lambda f: f.zip(f, more="right.speed_mps - left.speed_mps"),
    ),
    "combine": (
        lambda f: f.combine(f, more=cm.right(Fix.speed_mps) - Fix.speed_mps),
        lambda f: f.combine(f, more="right.speed_mps - left.speed_mps"),
    ),
    **{
        made.__name__: both_ways(made)
        for made in (cm.sum, cm.mean, cm.variance, cm.min, cm.max, cm.first, cm.last, cm.count_distinct, cm.collect)
    },
    "top values": (
        lambda f: f.window(MINUTE).agg(x=cm.top(3, Fix.user)),
        lambda f: f.window(MINUTE).agg(x=cm.top(3, "user")),
    ),
    "spectrum": (
        lambda f: f.window(MINUTE).agg(x=cm.dft(Fix.speed_mps, 4)),
        lambda f: f.window(MINUTE).agg(x=cm.dft("speed_mps", 4)),
    ),
    "own aggregate": (
        lambda f: f.window(MINUTE).agg(x=Total()(Fix.speed_mps)),
        lambda f: f.window(MINUTE).agg(x=Total()("speed_mps")),
    ),
}


def steps(way: Way) -> list[str]:
    """The steps that the way makes, last first. A field named without its record is the same field."""
    found, made = [], alone(lambda fixes: way(fixes), fixes=Fix).streams["alone"].declared
    while made.inputs:
        found.append(repr(made.step).replace("'Fix'", "None"))
        made = made.inputs[0][0]
    return found


@pytest.mark.parametrize("name", WAYS)
def test_a_text_is_the_expression_that_it_writes(name: str) -> None:
    as_expression, as_text = WAYS[name]
    assert steps(as_text) == steps(as_expression)


def test_a_sensor_is_slowed_down_by_a_text() -> None:
    by_text = cm.adaptive(cm.seconds(5), slow_down=4, when="battery_low").unless("indoors")
    site = cm.DeviceSite
    assert by_text == cm.adaptive(cm.seconds(5), slow_down=4, when=site.battery.low).unless(site.indoors)


def test_a_sync_filter_looks_at_fields_named_in_texts() -> None:
    assert cm.significant_change("speed_mps", by=1) == cm.significant_change(Fix.speed_mps, by=1)
    assert cm.trend("speed_mps", within=1) == cm.trend(Fix.speed_mps, within=1)
    by_text = cm.dead_reckoning("lat_deg", "lon_deg", within=cm.metres(5))
    assert by_text == cm.dead_reckoning(Fix.lat_deg, Fix.lon_deg, within=cm.metres(5))


def test_results_are_delivered_by_a_field_named_in_a_text() -> None:
    program = cm.Program("p")

    @program.stream(at=cm.CLOUD)
    def fixes(cloud: cm.CloudSite) -> cm.Stream[Fix]:
        return cloud.source(Fix)

    program.deliver(fixes, by="user")
    with pytest.raises(cm.ProgramError, match="C233"):
        program.deliver(fixes, by="nobody")


@pytest.mark.parametrize(("text", "code"), [("upper(user)", "C204"), ("nobody", "C226"), ("speed_mps +", "C131")])
def test_a_text_that_is_no_key_is_refused(text: str, code: str) -> None:
    with pytest.raises(cm.ProgramError, match=code):
        alone(lambda fixes: fixes.key_by(text).changes("lat_deg"), fixes=Fix)


def test_a_field_that_no_element_has_is_found_when_the_text_is_placed() -> None:
    choice = cm.when("sped_mps > 2", "fast").otherwise("slow")
    with pytest.raises(cm.ProgramError, match="sped_mps"):
        alone(lambda fixes: fixes.select(pace=choice), fixes=Fix)


def test_an_aggregate_of_a_text_that_names_no_field_says_the_line_of_the_aggregate() -> None:
    with pytest.raises(cm.ProgramError, match="C226") as refused:
        alone(lambda fixes: fixes.state(most=cm.max("sped_mps")), fixes=Fix)
    assert refused.value.at is not None
    assert refused.value.at.file.endswith("test_texts_of_sql.py")
