"""GENERATED geography: hospitals, schools, fast food, weather and traffic, made of a seed, and none of them real.

Sonora's authors simulated these too. Everything is a pure function of place and time, so each process that asks is told
the same and nothing has to be shipped: a cell of the grid draws its sites from its own number. The grid is the spatial
join as well: what lies within a distance of a place is in the nine cells around it, if cells are no narrower than that.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import NamedTuple

from modes import metres_between

SEED = 2011
CELL_DEG = 0.01
"""About 1.1 km from south to north, 0.8 km from west to east at 46 degrees."""
SITES = {"hospital": 0.15, "school": 0.6, "fast food": 1.5}
"""How many there are in a cell, on average."""
_DEPTH = 32
HOUR_US = 3_600_000_000


class Site(NamedTuple):
    """A place that was made up."""

    name: str
    kind: str
    lat_deg: float
    lon_deg: float


@lru_cache(maxsize=65_536)
def sites_of(row: int, column: int) -> tuple[Site, ...]:
    """The sites of a cell of the grid.

    >>> sites_of(4605, 1450) == sites_of(4605, 1450)
    True
    """
    chance = random.Random(f"{SEED}/{row}/{column}")
    found = []
    for kind, mean in SITES.items():
        for number in range(_drawn(chance, mean)):
            lat_deg, lon_deg = (row + chance.random()) * CELL_DEG, (column + chance.random()) * CELL_DEG
            found.append(Site(f"{kind} {row}/{column}/{number}", kind, round(lat_deg, 6), round(lon_deg, 6)))
    return tuple(found)


def near(lat_deg: float, lon_deg: float, within_m: float) -> list[tuple[float, Site]]:
    """The sites within a distance of at most 700 m, the nearest first.

    >>> all(metres_between(46.05, 14.5, s.lat_deg, s.lon_deg) <= 300 for _, s in near(46.05, 14.5, 300.0))
    True
    """
    row, column = math.floor(lat_deg / CELL_DEG), math.floor(lon_deg / CELL_DEG)
    found = []
    for r in (row - 1, row, row + 1):
        for c in (column - 1, column, column + 1):
            for site in sites_of(r, c):
                # Most are far away in latitude alone, which is a subtraction.
                if abs(site.lat_deg - lat_deg) * 111_195.0 <= within_m:
                    distance_m = metres_between(lat_deg, lon_deg, site.lat_deg, site.lon_deg)
                    if distance_m <= within_m:
                        found.append((distance_m, site))
    return sorted(found)


def wind_mps(at_us: int) -> float:
    """The wind, the same everywhere: a new draw each hour."""
    return _hourly_wind(at_us // HOUR_US)


def congestion(lat_deg: float, lon_deg: float, at_us: int) -> float:
    """How dense traffic is in a cell, 0 to 1: worst at 8 and 17 o'clock UTC."""
    hour = at_us / HOUR_US % 24
    rush = max(math.exp(-((hour - peak) ** 2) / 3.0) for peak in (8.0, 17.0))
    return min(1.0, (0.15 + 0.75 * rush) * _busyness(math.floor(lat_deg / CELL_DEG), math.floor(lon_deg / CELL_DEG)))


@lru_cache(maxsize=4096)
def _hourly_wind(hour: int) -> float:
    return round(random.Random(f"{SEED}/wind/{hour}").weibullvariate(3.5, 2.0), 2)


@lru_cache(maxsize=65_536)
def _busyness(row: int, column: int) -> float:
    return random.Random(f"{SEED}/traffic/{row}/{column}").uniform(0.4, 1.3)


def _drawn(chance: random.Random, mean: float) -> int:
    """A Poisson number, by counting how many arrivals fit into one."""
    passed = chance.expovariate(mean)
    number = 0
    while passed < 1.0 and number < _DEPTH:
        number += 1
        passed += chance.expovariate(mean)
    return number
