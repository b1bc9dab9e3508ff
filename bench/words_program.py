"""The week's words of each cell, as examples/keywords has them, and the texts of a fleet day by day.

Two programs that give the same: one whose weeks overlap, and one of a week at a time, whose log tells each week anew.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import catchment as cm
from bench import fleet_log
from bench.peer import BENCH
from catchment.program.types import Schema

EXAMPLE = BENCH.parent / "examples" / "keywords"
sys.path.insert(0, str(EXAMPLE))  # Spark's workers import what is importable here

from keywords import Mention, Popular, Text, mentioned  # type: ignore[import-not-found]  # noqa: E402

POPULAR: Schema = Popular.schema
WEEK, DAY_US = 7, fleet_log.DAY_US
BEGIN_US = fleet_log.BEGIN_US // (WEEK * DAY_US) * WEEK * DAY_US
GRACE_US = 300_000_000


def words(every_days: int, home: Path) -> cm.Program:
    """The week's ten words of each cell, each so many days."""
    week = cm.hop(size=cm.days(WEEK), every=cm.days(every_days), grace=cm.Duration(GRACE_US))
    fleet = cm.Program("words")

    @fleet.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=100, within=cm.hours(24))))
    def texts(device: cm.DeviceSite) -> cm.Stream[Any]:
        return device.sensor(Text, "texts")

    @fleet.stream(at=cm.CLOUD)
    def popular(texts: cm.Stream[Any]) -> cm.Stream[Any]:
        mentions = texts.flat_map(mentioned)
        return (
            mentions.key_by(Mention.cell)
            .window(week)
            .agg(Popular, keywords=cm.top(10, Mention.word), mentions=cm.count())
        )

    fleet.sink(popular, "parquet", path=str(home))
    return fleet


class Days:
    """What phones write on the days of `order`, which are told as days one after the other."""

    def __init__(self, order: list[int], phones: int, each: int) -> None:
        self.order = order
        self.phones = phones
        self.each = each

    @property
    def texts(self) -> int:
        """Of each phone: its days, and a last text that ends what is open."""
        return len(self.order) * self.each + 1

    def walk(self, phone: int, count: int) -> tuple[Any, ...]:
        """Times, places and texts of a phone."""
        per_day = self.phones * self.each
        given = _texts(per_day * (max(self.order) + 1))
        within = np.arange(self.each) * self.phones + phone
        which = np.concatenate([day * per_day + within for day in self.order] + [[phone]])
        step = DAY_US // (per_day + 1)
        at = np.concatenate([day * DAY_US + (within + 1) * step for day in range(len(self.order))])
        times = np.append(at, len(self.order) * DAY_US + GRACE_US + DAY_US // 24) + BEGIN_US
        lat, lon = (np.array([given[n][name] for n in which.tolist()]) for name in ("lat_deg", "lon_deg"))
        return times, lat, lon, np.array([given[n]["text"] for n in which.tolist()], object)


@lru_cache(maxsize=1)
def _texts(count: int) -> list[dict[str, Any]]:
    from texts import texts  # type: ignore[import-not-found]  # the example's own module

    return list(islice(texts(seed=7), count))
