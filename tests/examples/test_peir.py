"""The environmental report: one meaning on every engine and at either site, and nobody's own shown to others."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from catchment.plan.build import build
from catchment.program import steps
from catchment.program.site import CLOUD, DEVICE
from catchment.program.window import TimeWindow
from catchment.testing import History, Ran, run
from tests.examples.peir import TRACKS, day, history, module, report
from tests.unit.device.device_world import DAY_US, MINUTE_US, World

PEOPLE = 6
OUTPUTS = ("waypoints", "trips", "legs", "hourly", "daily", "sites_hourly", "sites_daily")
Days = list[tuple[str, dict[str, list[dict[str, Any]]]]]


@pytest.fixture(scope="session")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Days:
    """A day of some people: one recorded track, the others generated, two with an accelerometer."""
    folder = tmp_path_factory.mktemp("lives")
    made = list(module("mobility").devices(PEOPLE, 5, folder, tracks=TRACKS))[2:]
    walker = folder / "walker"
    walker.mkdir()
    chance = random.Random(3)
    module("mobility").write_day(walker, module("mobility").Person(chance), chance, accelerometer=True)
    return [(user, day(folder / device)) for device, user, _ in made] + [("walker", day(walker))]


@pytest.fixture(scope="session")
def ran(lives: Days) -> Ran:
    return run(report(), history(report(), lives), engine="edge")


def test_the_mode_is_inferred_on_the_phone_and_in_the_cloud_with_the_same_results(lives: Days, ran: Ran) -> None:
    assert [sync.name for sync in build(report(DEVICE)).syncs if sync.direction == "up"] == ["waypoints"]
    assert {sync.name for sync in build(report(CLOUD)).syncs if sync.direction == "up"} == {"fixes", "shakes"}
    in_cloud = run(report(CLOUD), history(report(CLOUD), lives), engine="edge")
    for output in OUTPUTS:
        assert in_cloud[output] == ran[output], output
    assert len(ran["waypoints"]) > 1000


def test_the_edge_and_the_reference_tell_the_same_report(lives: Days) -> None:
    # The definition is slow to evaluate: a morning of two people, one with an accelerometer, says as much.
    short = [
        (user, {name: [r for r in rows if r["at"] < lives[0][1]["gps"][0]["at"] + 4500e6] for name, rows in d.items()})
        for user, d in lives[-2:]
    ]
    told = history(report(), short)
    reference, edge = (run(report(), told, engine=engine) for engine in ("reference", "edge"))
    for output in OUTPUTS:
        assert reference[output] == edge[output], output
    assert reference["trips"]


def test_nothing_is_quarantined_and_modes_are_mostly_right(lives: Days, ran: Ran) -> None:
    assert ran.failures == ()
    truth = {(user, r["at"]): r["mode"] for user, d in lives for r in d.get("truth", [])}
    pairs = [(truth[w["user"], w["at"]], w["mode"]) for w in ran["waypoints"] if (w["user"], w["at"]) in truth]
    share = sum(true == found for true, found in pairs) / len(pairs)
    assert share > 0.8, Counter(pairs)


def test_trips_and_legs_account_for_every_metre(ran: Ran) -> None:
    for trip in ran["trips"]:
        legs = [leg for leg in ran["legs"] if leg["user"] == trip["user"] and leg["trip"] == trip["started"]]
        assert sum(leg["distance_m"] for leg in legs) == pytest.approx(trip["distance_m"], abs=0.2)
        assert sum(leg["carbon_g"] for leg in legs) == pytest.approx(trip["carbon_g"], abs=0.01)
        assert trip["walk_m"] + trip["bike_m"] + trip["motor_m"] <= trip["distance_m"] + 0.1
        assert (trip["carbon_g"] > 0) == (trip["motor_m"] > 0)
    walked = sum(day["carbon_g"] for day in ran["daily"])
    assert walked == pytest.approx(sum(leg["carbon_g"] for leg in ran["legs"]), abs=0.1)


def test_a_report_goes_to_its_own_user_and_to_nobody_else() -> None:
    plan = build(report())
    down = [sync for sync in plan.syncs if sync.direction == "down"]
    assert {sync.name for sync in down} == {"trips", "hourly", "daily"}
    for sync in down:
        assert sync.deliver is not None
        assert (sync.deliver.to, sync.deliver.by) == ("user", "user")
        # The gateway stamps it from the enrolment: no device can name another's user.
        assert plan.schemas[sync.schema].column("user").stamp == "user"
    sites = [v for v in plan.part("impacts@cloud").vertices if v.schemas[0].name == "SiteReport"]
    assert sites
    assert all("user" not in vertex.schemas[0].names and "who" not in vertex.schemas[0].names for vertex in sites)


def passing(users: int) -> History:
    """So many people walk past the same school at the same time."""
    places = module("places")
    school = next(s for column in range(9) for s in places.sites_of(4605, 1450 + column) if s.kind == "school")
    told = History(report())
    for n in range(30):
        for user in range(users):
            at = int(module("mobility").BEGIN) + n * 10_000_000
            place = {"lat_deg": school.lat_deg - 0.002 + n * 14 / 111_195, "lon_deg": school.lon_deg}
            fix = {"user": f"u{user}", "at": at, **place, "accuracy_m": 5.0}
            told.send(fix, to="fixes/sensor", device=f"p{user}")
    return told.end()


def test_of_a_site_nothing_is_said_until_enough_people_passed() -> None:
    enough = module("impacts").LEAST_USERS
    assert run(report(), passing(enough - 1), engine="edge")["sites_hourly"] == []
    found = run(report(), passing(enough), engine="edge")["sites_hourly"]
    assert found
    assert {row["users"] for row in found} == {enough}
    steps_of_sites = [v.step for v in build(report()).part("impacts@cloud").vertices if "site" in v.schemas[0].names]
    windows = [step.window for step in steps_of_sites if isinstance(step, steps.Aggregated)]
    assert windows
    # Overlapping windows would differ by a few people, whose part is the difference.
    assert all(isinstance(window, TimeWindow) and window.size == window.every for window in windows)


def test_a_phone_without_an_accelerometer_says_how_it_moves_while_it_moves(tmp_path: Path) -> None:
    made = list(module("mobility").devices(4, 5, tmp_path, speed="60", tracks=TRACKS))
    sensors = made[-1][2]
    assert sensors["accelerometer"] == "none"
    world = World(report(), *(f"{name}={text}" for name, text in sensors.items()))
    # The recording is of another day: what the phone's own clock says is no promise about it.
    world.machine.true_us = int(module("mobility").BEGIN) + 300 * DAY_US
    world.start()
    world.run(5 * MINUTE_US)
    assert len(world.gateway.rows(world.plan, "waypoints")) > 100
    # What it promises is how far it has come in its day, although nothing of the sensor is ever to come.
    played_us = int(module("mobility").BEGIN) + 60 * 5 * MINUTE_US
    assert played_us - 60 * MINUTE_US < world.gateway.promises("waypoints")[-1] <= played_us


def test_walls_are_heard_by_gsm(lives: Days) -> None:
    user, readings = lives[-1]
    told = History(report())
    for reading in readings["gsm"]:
        told.send({"user": user, **reading}, to="indoors/sensor", device="p")
    changes = run(report(), told.end(), engine="edge")["indoors"]
    outdoors = {r["at"] // 60_000_000 for r in readings["truth"]}
    state, right, asked = False, 0, 0
    found = iter([*changes, {"at": 1 << 62, "indoors": False}])
    coming = next(found)
    for minute in range(readings["gsm"][0]["at"] // 60_000_000, readings["gsm"][-1]["at"] // 60_000_000):
        while coming["at"] // 60_000_000 <= minute:
            state, coming = coming["indoors"], next(found)
        right, asked = right + (state == (minute not in outdoors)), asked + 1
    # Until it has been outdoors once, it cannot know what a wall takes.
    assert right / asked > 0.8
