"""The demo's program: where people move, how fast on average, and when one of them stops.

Positions come from `walkers`, a mobility model that is made up: each walker keeps a speed for a while, then another.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import catchment as cm


class Fix(cm.Record):
    """A position."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    speed_mps: cm.Field[float] = cm.field(step=0.1)
    accuracy_m: cm.Field[float] = cm.field(step=0.1)


class Pace(cm.Record):
    """How fast somebody was on average, and how."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    mean_mps: cm.Field[float]
    fixes: cm.Field[int]
    mode: cm.Field[str]


moving = cm.Program("moving")


@moving.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=100, within=cm.seconds(5))))
def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
    """Good readings of the GPS."""
    return device.sensor(Fix, "gps", every=cm.seconds(0.5)).where(Fix.accuracy_m <= 20)


@moving.stream(at=cm.CLOUD)
def paces(fixes: cm.Stream[Fix]) -> cm.Stream[Pace]:
    """Every two seconds, the mean of the last six."""
    window = cm.hop(size=cm.seconds(6), every=cm.seconds(2))
    mean = fixes.key_by(Fix.user).window(window).agg(mean_mps=cm.mean(Fix.speed_mps), fixes=cm.count())
    mode = cm.when(cm.col("mean_mps") < 0.5, "still").when(cm.col("mean_mps") < 2.5, "walk").otherwise("motor")
    return mean.select(Pace, mode=mode)


moving.deliver(paces, by=Pace.user)


def walkers(names: tuple[str, ...], seed: int) -> Iterator[dict[str, tuple[float, float, float, float]]]:
    """Of each walker twice a second: latitude, longitude, speed and accuracy. Generated, not real."""
    chance = random.Random(seed)
    places = {name: (46.05 + 0.01 * n, 14.5) for n, name in enumerate(names)}
    speeds = dict.fromkeys(names, 1.4)
    while True:
        readings = {}
        for name in names:
            if chance.random() < 0.05:
                speeds[name] = chance.choice((0.0, 1.4, 1.6, 11.0))
            speed = max(0.0, speeds[name] + chance.gauss(0, 0.2))
            lat, lon = places[name]
            places[name] = (lat + speed * 0.5 / 111_320, lon)
            readings[name] = (*places[name], round(speed, 1), chance.choice((4.0, 6.0, 9.0, 45.0)))
        yield readings
