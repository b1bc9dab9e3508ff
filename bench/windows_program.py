"""Mean speed and count of readings per user in hopping windows: as a program, and as a PySpark programmer writes it.

Real tracks, walked at one reading a second by all users in step, so that Spark's one watermark for all of them throws
nothing away: devices that come back from a tunnel or a weekend, it would drop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import catchment as cm
from bench import fleet_log
from bench.trips_kernel import steps_mm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SECOND_US = 1_000_000
FASTEST_MMPS = 50_000
UPLOAD = 60
BEHIND_S = 180
"""How late an element may be, on both sides: Spark's watermark is that of all users, and a batch may end in the midst
of a round of uploads, of a minute each, in either partition of the log."""


class Speed(cm.Record):
    """How fast a phone was moving."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mmps: cm.Field[int]


class Pace(cm.Record):
    """What a window of a user's holds; its time is the last microsecond of the window."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    mean_mmps: cm.Field[float | None]
    readings: cm.Field[int]


def paces(size_s: int, every_s: int) -> cm.Program:
    """The program for windows of that size, that often."""
    fleet = cm.Program("paces")

    @fleet.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=UPLOAD, within=cm.minutes(1))))
    def speeds(device: cm.DeviceSite) -> cm.Stream[Speed]:
        return device.sensor(Speed, "speed")

    @fleet.stream(at=cm.CLOUD)
    def paces(speeds: cm.Stream[Speed]) -> cm.Stream[Pace]:
        window = cm.hop(cm.seconds(size_s), cm.seconds(every_s), grace=cm.seconds(BEHIND_S))
        found = speeds.key_by(Speed.user).window(window)
        return found.agg(Pace, mean_mmps=cm.mean(Speed.speed_mmps), readings=cm.count())

    fleet.deliver(paces, by=Pace.user)
    return fleet


def native(speeds: DataFrame, size_s: int, every_s: int) -> DataFrame:
    """The same, by Spark's own windows."""
    from pyspark.sql import functions as sql

    timed = speeds.withColumn("at", sql.timestamp_micros("at")).withWatermark("at", f"{BEHIND_S} seconds")
    window = sql.window("at", f"{size_s} seconds", f"{every_s} seconds")
    found = timed.groupBy(window, "user").agg(
        sql.avg("speed_mmps").alias("mean_mmps"), sql.count("speed_mmps").alias("readings")
    )
    end_us = sql.unix_micros("window.end")
    return found.select("user", (end_us - 1).alias("at"), "mean_mmps", "readings")


def walk(user: int, count: int) -> tuple[Any, ...]:
    """Speeds on a stretch of the tracks, a second apart; the last reading, an upload of its own, is a day later."""
    begin = fleet_log.stretch(user, count)
    times = fleet_log.BEGIN_US + np.arange(count, dtype=np.int64) * SECOND_US
    times[-1] += fleet_log.DAY_US
    return times, _speeds()[begin : begin + count]


@lru_cache(maxsize=1)
def _speeds() -> Any:
    at, lat, lon = fleet_log.points()
    length = steps_mm(lat[:-1], lon[:-1], lat[1:], lon[1:])
    speed = length * SECOND_US // np.diff(at)
    return np.append(np.minimum(speed, FASTEST_MMPS), 0)
