"""Programs that the tests of plans share: the one of the design's first page, and one with a step of every kind."""

from __future__ import annotations

from collections.abc import Iterable

import catchment as cm


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    accuracy_m: cm.Field[float] = cm.field(step=0.1)
    speed_mps: cm.Field[float | None] = cm.field(step=0.1, default=None)


class Trip(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    carbon_g: cm.Field[float] = cm.field(step=0.1)


class Footprint(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    carbon_g: cm.Field[float]


class Peak(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    carbon_g: cm.Field[float]
    seen: cm.Field[tuple[int, ...]] = cm.field(default=())
    tag: cm.Field[bytes] = cm.field(default=b"\x00\xff")


class Open(cm.State):
    since: int | None = None


class SegmentTrips(cm.Process[Fix, Trip, Open]):
    gap: cm.Duration

    def on_element(self, element: Fix, state: Open, context: cm.Context) -> list[Trip]:
        if state.since is None:
            state.since = element.at
        if element.at - state.since < self.gap:
            return []
        state.since = None
        return [Trip(user=element.user, at=element.at, carbon_g=1.0)]


class Spread(cm.UserAggregate[float, tuple[float, float], float]):
    def lift(self, value: float) -> tuple[float, float]:
        return value, value

    def merge(self, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
        return min(left[0], right[0]), max(left[1], right[1])

    def lower(self, summary: tuple[float, float]) -> float:
        return summary[1] - summary[0]


@cm.function
def highest(state: Peak, trip: Trip) -> Peak:
    return Peak(user=trip.user, at=trip.at, carbon_g=max(state.carbon_g, trip.carbon_g), seen=state.seen, tag=state.tag)


@cm.function
def halves(trip: Trip) -> Iterable[Trip]:
    return [trip.replace(carbon_g=trip.carbon_g / 2), trip.replace(carbon_g=trip.carbon_g / 2)]


@cm.function
def same(trip: Trip) -> Trip:
    return trip


@cm.function
def note(trip: Trip) -> bool:
    return True


@cm.function
def taxed(carbon_g: float) -> float:
    return carbon_g * 1.2


def peir() -> cm.Program:
    """The design's own example."""
    program = cm.Program("peir")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        every = cm.adaptive(cm.seconds(5), slow_down=4, when=device.battery.low)
        return device.sensor(Fix, every=every).where(Fix.accuracy_m <= 20).moved(by=cm.metres(10))

    @program.stream(at=cm.CLOUD, sync=cm.Sync(batch=cm.Batch(records=100, within=cm.seconds(60))))
    def trips(fixes: cm.Stream[Fix]) -> cm.Stream[Trip]:
        return fixes.key_by(Fix.user).process(SegmentTrips(gap=cm.minutes(5)))

    @program.stream(at=cm.CLOUD)
    def footprint(trips: cm.Stream[Trip]) -> cm.Stream[Footprint]:
        hourly = cm.hop(size=cm.hours(1), every=cm.minutes(5), grace=cm.minutes(1), idle=cm.minutes(2))
        return trips.key_by(Trip.user).window(hourly).agg(carbon_g=cm.sum(Trip.carbon_g))

    program.deliver(footprint, to=cm.DEVICE, by=Footprint.user)
    return program


def everything() -> cm.Program:
    """A step of every kind, at four sites, with a loop and values that JSON has no form for."""
    program = cm.Program("everything")
    again = program.loop(Trip, "again")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix, every=cm.seconds(1)).changes(Fix.lat_deg, Fix.lon_deg)

    @program.stream(at=cm.REGION)
    def near(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        return fixes.where(cm.distance_m(Fix.lat_deg, Fix.lon_deg, 46.0, float("inf")) > 2**60)

    @program.stream(at=cm.FLEET)
    def speeds(near: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        return near.window(cm.hop(cm.seconds(10), cm.seconds(5))).agg(
            fast=cm.top(3, Fix.speed_mps), spread=Spread()(Fix.accuracy_m)
        )

    @program.stream(at=cm.CLOUD, reliability=cm.LOSSLESS)
    def trips(fixes: cm.Stream[Fix]) -> cm.Stream[Trip]:
        made = fixes.key_by(Fix.user).process(SegmentTrips(gap=cm.minutes(5)), ttl=cm.days(1))
        return made.union(again.where(Trip.carbon_g > 1)).subscribe(note)

    @program.stream(at=cm.CLOUD)
    def peaks(trips: cm.Stream[Trip]) -> cm.Stream[Peak]:
        start = Peak(user="", at=cm.Instant(0), carbon_g=float("-inf"), seen=(1, 2**60))
        return trips.map(same).flat_map(halves).key_by(Trip.user).fold(highest, start, order="arrival")

    @program.stream(at=cm.CLOUD)
    def totals(trips: cm.KeyedStream[Trip]) -> cm.Stream[Footprint]:
        return trips.key_by(Trip.user).state(Footprint, carbon_g=cm.sum(Trip.carbon_g))

    @program.stream(at=cm.CLOUD)
    def pairs(trips: cm.Stream[Trip], totals: cm.KeyedStream[Footprint]) -> cm.Stream[Footprint]:
        keyed = trips.key_by(Trip.user)
        joined = keyed.join(totals, Footprint, within=(cm.minutes(1), cm.minutes(1)), carbon_g=taxed(Trip.carbon_g))
        latest = keyed.join_latest(totals, Footprint, outer=True, carbon_g=Trip.carbon_g)
        within = keyed.join(totals, Footprint, within=cm.tumble(cm.minutes(1)), carbon_g=Trip.carbon_g)
        return joined.union(latest, within)

    @program.stream(at=cm.CLOUD)
    def matched(trips: cm.Stream[Trip], totals: cm.Stream[Footprint]) -> cm.Stream[cm.Record]:
        return trips.key_by(Trip.user).zip(totals, user=Trip.user, mine=Trip.carbon_g, all=Footprint.carbon_g)

    @program.stream(at=cm.CLOUD)
    def both(trips: cm.Stream[Trip], totals: cm.Stream[Footprint]) -> cm.Stream[cm.Record]:
        pair: cm.Stream[cm.Record] = trips.key_by(Trip.user).combine(
            totals, user=Trip.user, mine=Trip.carbon_g, all=Footprint.carbon_g
        )
        return pair.select(mine=pair["mine"].or_else(0.0))

    @program.stream(at=cm.CLOUD)
    def best(trips: cm.Stream[Trip]) -> cm.Stream[cm.Record]:
        return trips.window(cm.session(cm.minutes(1))).top(3, by=Trip.carbon_g)

    @program.stream(at=cm.CLOUD)
    def every_tenth(trips: cm.Stream[Trip]) -> cm.Stream[cm.Record]:
        return trips.window(cm.count_window(10)).agg(n=cm.count())

    @program.stream(at=cm.CLOUD)
    def beats(cloud: cm.CloudSite) -> cm.Stream[cm.Beat]:
        return cloud.timer(cm.minutes(1))

    @program.stream(at=cm.CLOUD)
    def outside(cloud: cm.CloudSite) -> cm.Stream[Trip]:
        return cloud.read(Trip, "files", path="trips/").union(cloud.source(Trip))

    program.sink(trips, "parquet", path="out/")
    program.close_loop("again", trips)
    return program
