"""What the sensors of a phone read, and what a way-point is once the mode of transport is known.

Every field has the resolution that it is worth keeping to: what crosses to the cloud is rounded to it and no more, and
sums are exact.
"""

from __future__ import annotations

import catchment as cm


class Fix(cm.Record):
    """A reading of the GPS."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    accuracy_m: cm.Field[float] = cm.field(step=0.1)


class Shake(cm.Record):
    """A reading of the accelerometer: its magnitude, gravity and all."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    magnitude_g: cm.Field[float] = cm.field(step=0.001)


class Cell(cm.Record):
    """The cell that the phone is in, and how well it hears it."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[str]
    signal_dbm: cm.Field[float] = cm.field(step=0.1)


class Charge(cm.Record):
    """The battery."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    level: cm.Field[float] = cm.field(step=0.001)
    charging: cm.Field[bool]


class Indoors(cm.Record):
    """Whether the phone is inside a building."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    indoors: cm.Field[bool]


class Power(cm.Record):
    """What the sampling rules know of the battery."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    battery_level: cm.Field[float] = cm.field(step=0.001)
    battery_low: cm.Field[bool]


class Evidence(cm.Record):
    """What speaks for a mode of transport: a place, or how strongly the body sways at the pace of steps."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float | None] = cm.field(step=1e-6)
    lon_deg: cm.Field[float | None] = cm.field(step=1e-6)
    gait_g: cm.Field[float | None] = cm.field(step=0.001)


class Waypoint(cm.Record):
    """A place on the way, how it was reached from the one before, and in which mode."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    mode: cm.Field[str]
    distance_m: cm.Field[float] = cm.field(step=0.1)
    took_s: cm.Field[float] = cm.field(step=0.1)
