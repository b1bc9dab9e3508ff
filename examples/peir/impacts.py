"""What a way-point means for the air: carbon and particles given off, particles breathed in, fast food passed.

Each factor is published and cited beside its number. Where people and traffic are is `places`, which is generated.
Everything is a function of one way-point, so it runs anywhere and in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import catchment as cm
from places import congestion, near, wind_mps
from readings import Waypoint

MPH = 0.44704
MILE_KM = 1.609344
BARTH = (7.613534994965560, -0.138565467462594, 0.003915102063854, -0.000049451361017, 0.000000238630156)
"""ln(g CO2 per mile) of a typical Southern Californian car in traffic, as a polynomial of its mph between 5 and 80:
Barth and Boriboonsomsin, Real-World CO2 Impacts of Traffic Congestion, Transportation Research Record 2058, 2008."""
BARTH_MPH = (5.0, 80.0)
PM25_MG_PER_KM = {"exhaust": 4.5, "tyres": 2.9, "brakes": 2.2, "road": 3.1}
"""Exhaust: the limit of Euro 5b and 6 (Regulation (EU) 459/2012), so an upper bound. Wear of tyres, brakes and road:
the means of inventories in Timmers and Achten, Atmospheric Environment 134, 2016, table 4. What is stirred up again is
left out."""
BREATH_M3_PER_MIN = {"still": 4.2e-3, "walk": 1.2e-2, "bike": 2.6e-2, "motor": 4.2e-3}
"""Sedentary, light and moderate activity of adults of 21 to 31 years: US EPA, Exposure Factors Handbook, 2011, table
6-2."""
BACKGROUND_UG = 10.0
"""PM2.5 in the background at a wind of 2 m/s: an assumption of ours, near the annual mean of European towns."""
ROADSIDE_UG = 12.0
"""What full congestion adds in the middle of a road: an assumption of ours."""
FAST_FOOD_M = 100.0
SENSITIVE_M = 300.0
SENSITIVE = ("hospital", "school")
LEAST_USERS = 5
"""Of fewer people than that, nothing is said of a site."""


class Impact(cm.Record):
    """A way-point and what it does and suffers."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    mode: cm.Field[str]
    took_s: cm.Field[float] = cm.field(step=0.1)
    distance_m: cm.Field[float] = cm.field(step=0.1)
    walk_m: cm.Field[float] = cm.field(step=0.1)
    bike_m: cm.Field[float] = cm.field(step=0.1)
    motor_m: cm.Field[float] = cm.field(step=0.1)
    carbon_g: cm.Field[float] = cm.field(step=0.001)
    pm_mg: cm.Field[float] = cm.field(step=0.001)
    inhaled_ug: cm.Field[float] = cm.field(step=0.001)
    fast_food_s: cm.Field[float] = cm.field(step=0.1)
    outlet: cm.Field[str | None]


class Passage(cm.Record):
    """Somebody near a sensitive site."""

    site: cm.Field[str] = cm.key()
    kind: cm.Field[str]
    at: cm.Field[cm.Instant] = cm.event_time()
    who: cm.Field[str]
    took_s: cm.Field[float] = cm.field(step=0.1)
    pm_mg: cm.Field[float] = cm.field(step=0.001)
    inhaled_ug: cm.Field[float] = cm.field(step=0.001)


def co2_g_per_km(speed_mps: float) -> float:
    """Of a car that drives so fast; no car is driven more slowly than the curve knows for long, so it is held there.

    >>> [round(co2_g_per_km(kmh / 3.6)) for kmh in (10, 30, 60, 120)]
    [612, 277, 203, 232]
    """
    mph = min(max(speed_mps / MPH, BARTH_MPH[0]), BARTH_MPH[1])
    return math.exp(sum(factor * mph**power for power, factor in enumerate(BARTH))) / MILE_KM


def pm25_ug_per_m3(lat_deg: float, lon_deg: float, at_us: int) -> float:
    """What is in the air on a road there and then: of the generated weather and traffic."""
    thinned = 2.0 / max(wind_mps(at_us), 0.5)
    return (BACKGROUND_UG + ROADSIDE_UG * congestion(lat_deg, lon_deg, at_us)) * math.sqrt(thinned)


@cm.function(runs_on=(cm.CLOUD,))
def impact(waypoint: Waypoint) -> Impact:
    """The joins with weather, traffic and places, and the emission model."""
    took_s, distance_m, mode, at = waypoint.took_s, waypoint.distance_m, waypoint.mode, int(waypoint.at)
    lat_deg, lon_deg = waypoint.lat_deg, waypoint.lon_deg
    km = distance_m / 1000 if mode == "motor" else 0.0
    speed_mps = distance_m / took_s if took_s > 0 else 0.0
    food = next((site.name for _, site in near(lat_deg, lon_deg, FAST_FOOD_M) if site.kind == "fast food"), None)
    inhaled_ug = pm25_ug_per_m3(lat_deg, lon_deg, at) * BREATH_M3_PER_MIN[mode] * took_s / 60
    return Impact(
        user=waypoint.user,
        at=waypoint.at,
        lat_deg=lat_deg,
        lon_deg=lon_deg,
        mode=mode,
        took_s=took_s,
        distance_m=distance_m,
        walk_m=distance_m if mode == "walk" else 0.0,
        bike_m=distance_m if mode == "bike" else 0.0,
        motor_m=distance_m if mode == "motor" else 0.0,
        carbon_g=round(km * co2_g_per_km(speed_mps), 3) if km else 0.0,
        pm_mg=round(km * sum(PM25_MG_PER_KM.values()), 3),
        inhaled_ug=round(inhaled_ug, 3),
        fast_food_s=took_s if food is not None else 0.0,
        outlet=food,
    )


@cm.function(runs_on=(cm.CLOUD,))
def passages(impact: Impact) -> Iterable[Passage]:
    """The sensitive sites that the way-point is near: a join by place."""
    for _, site in near(impact.lat_deg, impact.lon_deg, SENSITIVE_M):
        if site.kind in SENSITIVE:
            yield Passage(
                site=site.name,
                kind=site.kind,
                at=impact.at,
                who=impact.user,
                took_s=impact.took_s,
                pm_mg=impact.pm_mg,
                inhaled_ug=impact.inhaled_ug,
            )
