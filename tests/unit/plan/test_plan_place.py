"""Placement: parts are what is connected at a site, streams travel once, and a policy binds to one crossing."""

from __future__ import annotations

from typing import Any

import pytest

import catchment as cm
from catchment.errors import InternalError, ProgramError
from catchment.plan.build import build
from catchment.plan.crossing import inert
from catchment.plan.document import write
from catchment.plan.explain import explain
from catchment.plan.graph import graph_of
from catchment.plan.physical import Plan, SyncStream
from catchment.program import steps
from tests.unit.plan.programs import Fix, SegmentTrips, Trip, everything, peir, same

FAST, SLOW, OTHER = cm.Sync(priority=9), cm.Sync(priority=1), cm.Sync(priority=5)


class Place:
    """A program under construction: a device stream, and what a test makes of it."""

    def __init__(self, sync: cm.Sync | None = None) -> None:
        self.program = program = cm.Program("place")

        @program.stream(at=cm.DEVICE, sync=sync)
        def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
            return device.sensor(Fix)

        self.fixes = fixes

    def stream(self, name: str, stream: Any, at: cm.Site = cm.CLOUD, sync: cm.Sync | None = None) -> Any:
        def declared() -> cm.Stream[Any]:
            made: cm.Stream[Any] = stream()
            return made

        declared.__name__ = name
        return self.program.stream(at=at, sync=sync)(declared)

    @property
    def plan(self) -> Plan:
        return build(self.program, without=["push_columns"])

    @property
    def policies(self) -> dict[str, cm.Sync]:
        return {stream.name: stream.policy for stream in self.plan.syncs}


def test_the_parts_of_the_design_s_own_example() -> None:
    plan = build(peir())
    assert [(part.name, part.inputs, part.outputs, part.sources) for part in plan.parts] == [
        ("fixes@device", (), ("fixes",), ("fixes/sensor",)),
        ("trips@cloud", ("fixes",), ("footprint",), ()),
        ("deliver_footprint@device", ("footprint",), (), ()),
    ]
    up, down = plan.syncs
    assert (up.direction, up.from_part, up.target, up.deliver) == ("up", "fixes@device", "fixes/sync", None)
    assert (down.direction, down.to_part) == ("down", "deliver_footprint@device")
    assert down.deliver == steps.Deliver("user", "user", "latest")
    assert up.policy.batch.within == cm.seconds(60)
    assert plan.schemas[up.schema].name == "Fix"
    (reference,) = plan.part("trips@cloud").functions
    assert reference.startswith("tests.unit.plan.programs:SegmentTrips@")


def test_each_part_is_a_graph_of_its_own() -> None:
    plan = build(everything())
    for part in plan.parts:
        graph = plan.graph(part)
        before: set[str] = set()
        for vertex in graph.vertices:
            assert {name for name, _ in vertex.inputs} <= before
            assert vertex.site == part.site
            before.add(vertex.id)
        assert {name for (name, _), _ in graph.loops} <= before
    ids = [vertex.id for part in plan.parts for vertex in part.vertices]
    assert len(ids) == len(set(ids))


def test_region_and_fleet_have_parts() -> None:
    plan = build(everything())
    assert [part.name for part in plan.at(cm.REGION)] == ["near@region"]
    assert [part.name for part in plan.at(cm.FLEET)] == ["speeds@fleet"]
    by_name = {stream.name: stream for stream in plan.syncs}
    assert (by_name["near"].from_part, by_name["near"].to_part) == ("near@region", "speeds@fleet")


def test_consumers_at_one_site_share_what_is_sent() -> None:
    place = Place()
    place.stream("one", lambda: place.fixes.map(as_trip_of_fix))
    place.stream("two", lambda: place.fixes.key_by(Fix.user).process(SegmentTrips(gap=cm.minutes(5))))
    (stream,) = place.plan.syncs
    assert stream.name == "fixes"
    assert [part.name for part in place.plan.at(cm.CLOUD)] == ["one@cloud"]


def test_different_policies_are_different_streams() -> None:
    place = Place()
    place.stream("one", lambda: place.fixes.map(as_trip_of_fix), sync=FAST)
    place.stream("two", lambda: place.fixes.changes(Fix.user), sync=SLOW)
    assert place.policies == {"fixes": FAST, "fixes.2": SLOW}
    assert [part.name for part in place.plan.at(cm.CLOUD)] == ["one@cloud", "two@cloud"]


def test_what_is_not_connected_is_another_part() -> None:
    place = Place()

    @place.program.stream(at=cm.DEVICE)
    def cells(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix, "cells")

    assert [part.name for part in place.plan.parts] == ["fixes@device", "cells@device"]


def test_a_policy_binds_to_the_next_crossing_downstream() -> None:
    place = Place(sync=SLOW)
    thinned = place.stream("thinned", lambda: place.fixes.changes(Fix.accuracy_m), at=cm.DEVICE)
    place.stream("up", lambda: thinned.map(as_trip_of_fix))
    assert place.policies == {"thinned": SLOW}


def test_the_nearest_policy_wins() -> None:
    place = Place(sync=SLOW)
    thinned = place.stream("thinned", lambda: place.fixes.changes(Fix.accuracy_m), at=cm.DEVICE, sync=FAST)
    place.stream("up", lambda: thinned.map(as_trip_of_fix))
    assert place.policies == {"thinned": FAST}
    assert [vertex.stream for vertex in inert(graph_of(place.program))] == ["fixes"]


def test_a_policy_in_the_middle_of_a_stream_binds_downstream_and_that_of_the_stream_upstream() -> None:
    place = Place()
    trips = place.stream("trips", lambda: place.fixes.map(as_trip_of_fix).sync(FAST), sync=SLOW)
    place.program.deliver(trips, by=Trip.user)
    assert place.policies == {"fixes": SLOW, "trips": FAST}


def test_two_policies_for_one_crossing_are_refused() -> None:
    place = Place(sync=SLOW)
    place.stream("trips", lambda: place.fixes.map(as_trip_of_fix), sync=FAST)
    with pytest.raises(ProgramError, match="C250"):
        build(place.program)


def test_a_policy_that_binds_to_nothing_is_said_to_be_inert() -> None:
    place = Place(sync=OTHER)
    account = explain(graph_of(place.program))
    assert [(note.about, note.what) for note in account.notes] == [("fixes", "its sync policy does nothing")]


def test_delivered_results_are_a_source_on_the_device() -> None:
    place = Place()
    trips = place.stream("trips", lambda: place.fixes.map(as_trip_of_fix))
    mine = place.program.deliver(trips, by=Trip.user)
    place.stream("heavy", lambda: mine.where(Trip.carbon_g > 1), at=cm.DEVICE)
    part = place.plan.part("deliver_trips@device")
    assert [vertex.id for vertex in part.vertices] == ["trips/sync", "deliver_trips/deliver", "heavy/where"]


def test_a_stream_brought_up_as_it_is() -> None:
    place = Place()
    place.stream("up", lambda: place.fixes)
    assert [(part.name, [v.id for v in part.vertices]) for part in place.plan.parts] == [
        ("fixes@device", ["fixes/sensor"]),
        ("up@cloud", ["fixes/sync", "up/union"]),
    ]


def test_late_elements_travel_by_a_stream_of_their_own() -> None:
    place = Place()
    counts = place.stream(
        "counts", lambda: place.fixes.window(cm.tumble(cm.minutes(1))).agg(n=cm.count()), at=cm.DEVICE
    )
    place.stream("all", lambda: counts.state(n=cm.sum(counts["n"]), order="arrival"))
    place.stream("late", lambda: counts.late.state(n=cm.count(), order="arrival"))
    assert [(s.name, s.source) for s in place.plan.syncs] == [
        ("counts", ("counts/aggregated", 0)),
        ("counts.2", ("counts/aggregated", 1)),
    ]
    schemas = [place.plan.schemas[s.schema].name for s in place.plan.syncs]
    assert schemas == ["Fix_windows", "Fix"]


def test_a_loop_that_crosses_comes_round_by_a_sync_stream() -> None:
    place = Place()
    again = place.program.loop(Fix, "again")
    place.stream("one", lambda: place.fixes.where(Fix.accuracy_m > 2), at=cm.DEVICE)
    place.stream("all", lambda: again.where(Fix.accuracy_m > 1))
    place.program.close_loop("again", place.program.streams["one"])
    (stream,) = place.plan.syncs
    part = place.plan.part(stream.to_part)
    (loop,) = part.loops
    assert loop[0] == (stream.target, 0)
    assert isinstance(next(v for v in part.vertices if v.id == loop[1]).step, steps.Feedback)


def test_what_is_not_in_the_plan_cannot_be_asked_of_it() -> None:
    plan = build(peir())
    with pytest.raises(InternalError, match="I301"):
        plan.part("none@device")
    with pytest.raises(InternalError, match="I302"):
        plan.sync("none")
    stream: SyncStream = plan.sync("fixes")
    assert stream.source == ("fixes/moved", 0)


def test_code_that_no_other_process_can_find_is_not_shipped() -> None:
    @cm.function
    def here(trip: Trip) -> Trip:
        return trip

    place = Place()
    place.stream("trips", lambda: place.fixes.map(as_trip_of_fix).map(here))
    plan = place.plan  # runs in this process
    with pytest.raises(ProgramError) as refused:
        write(plan)
    assert refused.value.code == "C313"
    assert "here" in refused.value.what
    # The repair: a function at the top level of a module.
    moved = Place()
    moved.stream("trips", lambda: moved.fixes.map(as_trip_of_fix).map(same))
    assert write(moved.plan)


@cm.function
def as_trip_of_fix(fix: Fix) -> Trip:
    return Trip(user=fix.user, at=fix.at, carbon_g=1.0)
