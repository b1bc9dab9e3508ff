"""A script: everything that a world is made of and that will go wrong in it, as data, from one seed.

Promises: the same seed gives the same script, and the same script the same run. A script can be written down, shortened
and run again (`shrink`), because the luck of each part of a world is its own: leaving out a misfortune changes
nothing else. Knows no world.
"""

from __future__ import annotations

import random

import msgspec

from catchment.program.sync import DROP_OLDEST, Batch, Bound, SampleDown, Sync, Thin
from catchment.program.types import Duration
from catchment.sim.chance import Chance
from catchment.sim.clock import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from catchment.sim.network import Conditions


class Misfortune(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happens to somebody, so long after the start."""

    at_us: int
    kind: str
    who: int = 0
    """Which device or gateway, counted from 0 and around."""
    for_us: int = 0
    count: int = 1
    """Of actions until it happens, or of things that it takes, as the kind says."""


class StreamPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stream of a device."""

    name: str
    every_us: int
    policy: Sync


class DevicePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device."""

    streams: tuple[StreamPlan, ...]
    by_post: bool = False
    eager: bool = False
    drift_ppm: int = 0
    wall_off_us: int = 0
    codecs: tuple[str, ...] = ("none",)


class Script(msgspec.Struct, frozen=True, omit_defaults=True):
    """A world and its fate."""

    seed: int
    devices: tuple[DevicePlan, ...]
    gateways: int = 1
    partitions: int = 1
    active_us: int = 60 * SECOND_US
    usual: Conditions = Conditions()
    misfortunes: tuple[Misfortune, ...] = ()


def script_of(seed: int) -> Script:
    """The script of a seed."""
    luck = Chance(seed).stream("script")
    devices = tuple([_device(luck) for _ in range(luck.choice((1, 1, 1, 2, 2, 3)))])
    gateways = luck.choice((1, 1, 1, 2))
    active_us = luck.randint(20, 90) * SECOND_US
    return Script(
        seed=seed,
        devices=devices,
        gateways=gateways,
        partitions=luck.choice((1, 1, 2)),
        active_us=active_us,
        usual=_weather(luck),
        misfortunes=tuple(sorted([_misfortune(luck, active_us) for _ in range(luck.randint(1, 7))], key=_when)),
    )


def _when(misfortune: Misfortune) -> int:
    return misfortune.at_us


def _device(luck: random.Random) -> DevicePlan:
    streams = []
    if luck.random() < 0.9:
        policy = Sync(
            batch=Batch(records=luck.choice((1, 5, 20)), within=Duration(luck.choice((1, 4, 10)) * SECOND_US)),
            outbox=Bound(records=luck.choice((None, None, 40))),
            codec="none",
            compression=luck.choice(("off", "off", None)),
        )
        streams.append(StreamPlan("fixes", luck.choice((2, 4, 8)) * SECOND_US, policy))
    if luck.random() < 0.3 or not streams:
        policy = Sync(
            batch=Batch(records=luck.choice((2, 10))),
            outbox=Bound(records=luck.choice((4, 12)), when_full=luck.choice((DROP_OLDEST, Thin(2), Thin(3)))),
            on_disconnect=luck.choice(("buffer", "notify", SampleDown(3, after=Duration(2 * SECOND_US)))),
            codec="none",
            compression="off",
            priority=luck.choice((0, 1)),
        )
        streams.append(StreamPlan("noise", luck.choice((2, 4)) * SECOND_US, policy))
    return DevicePlan(
        tuple(streams),
        by_post=luck.random() < 0.3,
        eager=luck.random() < 0.3,
        drift_ppm=luck.choice((0, 0, -100, 40, 100)),
        wall_off_us=luck.choice((0, 0, -3 * HOUR_US, 40 * MINUTE_US, -20_000 * DAY_US)),
        codecs=luck.choice((("none",), ("none", "msgpack"))),
    )


def _weather(luck: random.Random) -> Conditions:
    if luck.random() < 0.5:
        return Conditions(delay_us=(2_000, 60_000))
    return Conditions(
        delay_us=(5_000, luck.choice((100_000, 2_000_000))),
        loss=luck.choice((0.0, 0.02, 0.1)),
        duplicate=luck.choice((0.0, 0.05)),
        reorder=luck.choice((0.0, 0.05)),
        garble=luck.choice((0.0, 0.0, 0.02)),
    )


SHORT = (1 * SECOND_US, 40 * SECOND_US)
LONG = (2 * HOUR_US, 21 * DAY_US)

KINDS: dict[str, tuple[int, tuple[int, int], tuple[int, int]]] = {
    "device killed": (6, (1, 20 * SECOND_US), (1, 1)),
    "device killed at an action": (10, (1, 10 * SECOND_US), (1, 60)),
    "device reboots": (4, (1, 60 * SECOND_US), (1, 1)),
    "device loses power at an action": (6, (1, 30 * SECOND_US), (1, 60)),
    "device's disk lied": (4, (1, 10 * SECOND_US), (1, 8)),
    "device's backup restored": (4, (1, 20 * SECOND_US), (1, 1)),
    "device's image rots": (3, (1, 5 * SECOND_US), (1, 3)),
    "device lives twice": (3, (10 * SECOND_US, 60 * SECOND_US), (0, 1)),
    "device's disk is full": (4, SHORT, (1, 1)),
    "device's disk is read-only": (4, SHORT, (1, 1)),
    "device's disk fails": (4, SHORT, (1, 1)),
    "device suspended": (3, SHORT, (1, 1)),
    "device stops cleanly": (3, SHORT, (1, 1)),
    "device's wall clock jumps": (3, (1, 1), (-72, 72)),
    "device's policy changes": (3, (1, 1), (1, 1)),
    "device's link is metered": (2, SHORT, (1, 1)),
    "device claims the future": (2, (1, 1), (1, 1)),
    "device offline": (6, SHORT, (1, 1)),
    "device offline for long": (2, LONG, (0, 2)),
    "device's link is bad": (5, SHORT, (1, 4)),
    "gateway killed": (5, (1, 20 * SECOND_US), (1, 1)),
    "gateway killed at an action": (12, (1, 10 * SECOND_US), (1, 50)),
    "gateway stops cleanly": (3, (1, 10 * SECOND_US), (1, 1)),
    "gateway held": (3, SHORT, (1, 1)),
    "gateway stands still at an action": (7, (1 * SECOND_US, 30 * SECOND_US), (1, 40)),
    "gateway's disk is slow": (4, (100_000, 20 * SECOND_US), (1, 40)),
    "gateway's clock jumps": (2, (1, 1), (-48, 48)),
    "machine loses power": (4, (1, 20 * SECOND_US), (1, 1)),
    "machine loses power at an action": (10, (1, 20 * SECOND_US), (1, 50)),
    "log's disk is full": (4, SHORT, (1, 1)),
    "log's writes fail": (4, SHORT, (1, 1)),
    "log's writes fail and cannot be taken back": (3, SHORT, (1, 1)),
    "log's syncs fail": (5, SHORT, (1, 1)),
    "log's files cannot be replaced": (3, SHORT, (1, 1)),
    "log rots": (3, SHORT, (1, 1)),
    "marks rot": (2, SHORT, (1, 1)),
    "gateways cut off": (4, SHORT, (1, 1)),
    "results": (6, (1, 1), (1, 5)),
    "reader confirms": (3, (1, 1), (1, 1)),
    "reader falls behind": (2, (60 * SECOND_US, 200 * SECOND_US), (1, 1)),
    "reader restarts": (2, (1, 1), (1, 1)),
}
"""Every misfortune: how often, how long it may last, and how much it may take."""
_NAMES = list(KINDS)
_WEIGHTS = [weight for weight, _, _ in KINDS.values()]


def _misfortune(luck: random.Random, active_us: int) -> Misfortune:
    (kind,) = luck.choices(_NAMES, _WEIGHTS)
    _, (shortest_us, longest_us), (fewest, most) = KINDS[kind]
    return Misfortune(
        at_us=luck.randint(0, active_us),
        kind=kind,
        who=luck.randrange(4),
        # Short ones as often as long ones, on every scale.
        for_us=int(shortest_us * (longest_us / shortest_us) ** luck.random()),
        count=luck.randint(fewest, most),
    )
