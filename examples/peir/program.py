"""The personal environmental impact report: what somebody's ways do to the air, and the air to them.

Sonora's first service (its section 5, Figures 2, 6 and 13). On the phone: GPS, accelerometer, GSM and battery, sampled
as the battery and the walls allow; the mode of transport. In the cloud: trips, carbon, particles, exposure, per user
and per sensitive site. Back on the phone: its user's own report. `placed(inference=cm.CLOUD)` moves the inference off
the phone; see README.md beside this file.
"""

from __future__ import annotations

from typing import Any

import catchment as cm
from catchment.program.window import Window
from impacts import LEAST_USERS, Impact, Passage, impact, passages
from legs import Leg, SplitLegs
from modes import GAIT, GAP, TransportMode, published
from readings import Cell, Charge, Evidence, Fix, Indoors, Power, Shake, Waypoint
from surroundings import InferIndoors

EVERY = cm.seconds(5)
STRIDES = cm.hop(cm.seconds(6.4), cm.seconds(3.2))
"""Windows of the accelerometer: their DFT has a line each 1/6.4 Hz."""
STEP_LINES = range(8, 15)
"""1.25 to 2.2 Hz: the pace of steps."""
ENOUGH = 30
"""Of the 32 readings that a window has when none is missing: gaps look like oscillations."""
MINUTE = cm.minutes(1)
TABLES = "peir-tables"
"""Where results are kept: a folder where the program is started."""
QUIET = cm.minutes(10)
"""A phone that is connected and says nothing for so long has nothing older to say."""


class Strides(cm.Record):
    """The spectrum of a few seconds."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    count: cm.Field[int]
    spectrum: cm.Field[tuple[float, ...]]


class Footprint(cm.Record):
    """What somebody did to the air, and it to them, in an hour or a day."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    window_start: cm.Field[cm.Instant]
    window_end: cm.Field[cm.Instant]
    distance_m: cm.Field[float | None] = cm.field(step=0.1)
    carbon_g: cm.Field[float | None] = cm.field(step=0.001)
    pm_mg: cm.Field[float | None] = cm.field(step=0.001)
    inhaled_ug: cm.Field[float | None] = cm.field(step=0.001)
    fast_food_s: cm.Field[float | None] = cm.field(step=0.1)


class Trip(cm.Record):
    """A way from somewhere to somewhere, between two silences of five minutes."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    started: cm.Field[cm.Instant]
    ended: cm.Field[cm.Instant]
    waypoints: cm.Field[int]
    distance_m: cm.Field[float] = cm.field(step=0.1)
    walk_m: cm.Field[float] = cm.field(step=0.1)
    bike_m: cm.Field[float] = cm.field(step=0.1)
    motor_m: cm.Field[float] = cm.field(step=0.1)
    carbon_g: cm.Field[float] = cm.field(step=0.001)
    pm_mg: cm.Field[float] = cm.field(step=0.001)
    inhaled_ug: cm.Field[float] = cm.field(step=0.001)
    outlets: cm.Field[int]


class SiteReport(cm.Record):
    """What passes near a hospital or a school, of enough people that it is nobody's own."""

    site: cm.Field[str] = cm.key()
    kind: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    window_start: cm.Field[cm.Instant]
    window_end: cm.Field[cm.Instant]
    users: cm.Field[int]
    pm_mg: cm.Field[float | None] = cm.field(step=0.001)
    inhaled_ug: cm.Field[float | None] = cm.field(step=0.001)


def placed(
    inference: cm.Site = cm.DEVICE,
    speeds: list[list[float]] | None = None,
    within: cm.Duration = MINUTE,
    tables: str | None = TABLES,
) -> cm.Program:
    """The program with transport-mode inference at that site; `speeds` are trained tables instead of published ones.

    A reading waits on the phone for others to be sent with, but no longer than `within`. Results are kept in the folder
    `tables`, where there is one, beside what each phone is sent.
    """
    peir = cm.Program("peir")

    @peir.stream(at=cm.DEVICE)
    def indoors(device: cm.DeviceSite) -> cm.Stream[Indoors]:
        """GSM is on anyway, so it costs little to ask it whether the GPS is worth asking."""
        cells = device.sensor(Cell, "gsm", every=cm.seconds(30))
        return cells.key_by(Cell.user).process(InferIndoors(), order="arrival")

    @peir.stream(at=cm.DEVICE)
    def power(device: cm.DeviceSite) -> cm.Stream[Power]:
        """A battery that charges is not low."""
        charges = device.sensor(Charge, "battery", every=cm.minutes(1))
        return charges.select(Power, battery_level=Charge.level, battery_low=(Charge.level <= 0.2) & ~Charge.charging)

    peir.sink(indoors, "surroundings")
    peir.sink(power, "surroundings")

    @peir.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=100, within=within)))
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        """Figure 2: slower on a low battery, not at all indoors; then what says nothing new is left out."""
        every = cm.adaptive(EVERY, slow_down=4, when=device.battery.low).unless(device.indoors)
        good = device.sensor(Fix, "gps", every=every).where(Fix.accuracy_m <= 20)
        return good.key_by(Fix.user).moved(by=cm.metres(10))

    @peir.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=1000, within=within)))
    def shakes(device: cm.DeviceSite) -> cm.Stream[Shake]:
        """Five times a second, where a phone has an accelerometer."""
        every = cm.adaptive(cm.seconds(0.2), slow_down=4, when=device.battery.low).unless(device.indoors)
        return device.sensor(Shake, "accelerometer", every=every)

    @peir.stream(at=inference)
    def gaits(shakes: cm.Stream[Shake]) -> cm.Stream[Evidence]:
        """The strongest sway at the pace of steps, by a DFT that is computed of panes."""
        strides = (
            shakes.key_by(Shake.user)
            .window(STRIDES)
            .agg(Strides, count=cm.count(), spectrum=cm.dft(Shake.magnitude_g, bins=STEP_LINES.stop))
        )
        strongest = Strides.spectrum.item(STEP_LINES.start)
        for line in STEP_LINES[1:]:
            strongest = cm.greatest(strongest, Strides.spectrum.item(line))
        sway_g = cm.round_to(2.0 * strongest / Strides.count.cast(float), 0.001)
        return strides.where(Strides.count >= ENOUGH).select(Evidence, lat_deg=None, lon_deg=None, gait_g=sway_g)

    @peir.stream(at=inference, sync=cm.Sync(batch=cm.Batch(records=100, within=within)))
    def waypoints(fixes: cm.Stream[Fix], gaits: cm.Stream[Evidence]) -> cm.Stream[Waypoint]:
        """Figure 13: change `at=`, and the hidden Markov model runs elsewhere."""
        evidence = fixes.select(Evidence, gait_g=None).union(gaits)
        mode = TransportMode(speeds=speeds or published(), gaits=[list(row) for row in GAIT])
        return evidence.key_by(Evidence.user).process(mode, closing=cm.Closing(idle=QUIET), ttl=cm.hours(12))

    @peir.stream(at=cm.CLOUD)
    def impacts(waypoints: cm.Stream[Waypoint]) -> cm.Stream[Impact]:
        """Joined with weather, traffic and places (generated), through the emission model (published)."""
        return waypoints.map(impact)

    @peir.stream(at=cm.CLOUD)
    def trips(impacts: cm.Stream[Impact]) -> cm.Stream[Trip]:
        """The unit of the report."""
        return (
            impacts.key_by(Impact.user)
            .window(cm.session(GAP, idle=QUIET))
            .agg(
                Trip,
                started=cm.min(Impact.at),
                ended=cm.max(Impact.at),
                waypoints=cm.count(),
                outlets=cm.count_distinct(Impact.outlet),
                distance_m=cm.sum(Impact.distance_m),
                walk_m=cm.sum(Impact.walk_m),
                bike_m=cm.sum(Impact.bike_m),
                motor_m=cm.sum(Impact.motor_m),
                carbon_g=cm.sum(Impact.carbon_g),
                pm_mg=cm.sum(Impact.pm_mg),
                inhaled_ug=cm.sum(Impact.inhaled_ug),
            )
            .where(Trip.distance_m >= 100.0)
        )

    @peir.stream(at=cm.CLOUD)
    def legs(impacts: cm.Stream[Impact]) -> cm.Stream[Leg]:
        """How each part of a trip was gone."""
        return impacts.key_by(Impact.user).process(SplitLegs(gap=GAP), closing=cm.Closing(idle=QUIET))

    def footprint(impacts: cm.Stream[Impact], window: Window) -> cm.Stream[Footprint]:
        return (
            impacts.key_by(Impact.user)
            .window(window)
            .agg(
                Footprint,
                distance_m=cm.sum(Impact.distance_m),
                carbon_g=cm.sum(Impact.carbon_g),
                pm_mg=cm.sum(Impact.pm_mg),
                inhaled_ug=cm.sum(Impact.inhaled_ug),
                fast_food_s=cm.sum(Impact.fast_food_s),
            )
        )

    @peir.stream(at=cm.CLOUD)
    def hourly(impacts: cm.Stream[Impact]) -> cm.Stream[Footprint]:
        """The last hour, every five minutes."""
        return footprint(impacts, cm.hop(cm.hours(1), cm.minutes(5), idle=QUIET))

    @peir.stream(at=cm.CLOUD)
    def daily(impacts: cm.Stream[Impact]) -> cm.Stream[Footprint]:
        """Each day."""
        return footprint(impacts, cm.tumble(cm.days(1), idle=QUIET))

    def site_report(impacts: cm.Stream[Impact], size: cm.Duration) -> cm.Stream[SiteReport]:
        # Windows that do not overlap: the difference of two that do would be about fewer people than either.
        return (
            impacts.flat_map(passages)
            .key_by(Passage.site, Passage.kind)
            .window(cm.tumble(size, idle=QUIET))
            .agg(
                SiteReport,
                users=cm.count_distinct(Passage.who),
                pm_mg=cm.sum(Passage.pm_mg),
                inhaled_ug=cm.sum(Passage.inhaled_ug),
            )
            .where(SiteReport.users >= LEAST_USERS)
        )

    @peir.stream(at=cm.CLOUD)
    def sites_hourly(impacts: cm.Stream[Impact]) -> cm.Stream[SiteReport]:
        """Hospitals and schools, by the hour."""
        return site_report(impacts, cm.hours(1))

    @peir.stream(at=cm.CLOUD)
    def sites_daily(impacts: cm.Stream[Impact]) -> cm.Stream[SiteReport]:
        """And by the day."""
        return site_report(impacts, cm.days(1))

    peir.deliver(trips, by=Trip.user, keep="all")
    peir.deliver(hourly, by=Footprint.user)
    peir.deliver(daily, by=Footprint.user, keep="all")
    if tables is not None:
        kept: dict[str, cm.Stream[Any]] = {"trips": trips, "legs": legs, "hourly": hourly, "daily": daily}
        kept |= {"sites_hourly": sites_hourly, "sites_daily": sites_daily}
        for name, stream in kept.items():
            peir.sink(stream, "parquet", path=f"{tables}/{name}", every=MINUTE)
    return peir


peir = placed()
