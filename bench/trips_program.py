"""The program of bench/cloud_keyed.py: trips of a fleet, cut where nobody moved for five minutes.

A module of its own, because Spark's workers import the author's process by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import catchment as cm
from bench.peers.trips import GAP_US, step_mm
from bench.trips_kernel import steps_mm


class Fix(cm.Record):
    """Where a phone was."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)


class Trip(cm.Record):
    """A trip that is over, and how many fixes the user has had by then."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    since: cm.Field[cm.Instant]
    fixes: cm.Field[int]
    length_mm: cm.Field[int]
    seen: cm.Field[int]


class Going(cm.State):
    """The trip that a user is on."""

    since: int = 0
    last: int = 0
    lat_deg: float = 0.0
    lon_deg: float = 0.0
    fixes: int = 0
    length_mm: int = 0
    seen: int = 0


class SegmentTrips(cm.Process[Fix, Trip, Going]):
    """A fix `gap` or more after the one before ends the trip."""

    gap: int = GAP_US

    def on_element(self, element: Fix, state: Going, context: cm.Context) -> list[Trip]:
        ended = []
        if state.fixes and element.at - state.last < self.gap:
            state.length_mm += step_mm(state.lat_deg, state.lon_deg, element.lat_deg, element.lon_deg)
            state.fixes += 1
        else:
            if state.fixes:
                ended.append(
                    Trip(
                        user=element.user,
                        at=cm.Instant(state.last),
                        since=cm.Instant(state.since),
                        fixes=state.fixes,
                        length_mm=state.length_mm,
                        seen=state.seen,
                    )
                )
            state.since, state.fixes, state.length_mm = element.at, 1, 0
        state.last, state.lat_deg, state.lon_deg = element.at, element.lat_deg, element.lon_deg
        state.seen += 1
        return ended

    def on_elements(self, elements: cm.Elements) -> None:
        at, starts, state = elements.at, elements.starts, elements.state
        lat, lon = elements["lat_deg"], elements["lon_deg"]
        first, last = starts[:-1], starts[1:] - 1
        begun = state["fixes"] > 0

        def before(values: Any, held: Any) -> Any:
            shifted = np.concatenate([values[:1], values[:-1]])
            shifted[first] = held
            return shifted

        pause = at - before(at, state["last"])
        begins = pause >= self.gap
        begins[first] |= ~begun
        steps = steps_mm(before(lat, state["lat_deg"]), before(lon, state["lon_deg"]), lat, lon)
        steps[begins] = 0
        # Trips as runs: what is left of each key's open one, then one from each beginning on.
        runs = np.union1d(first, np.flatnonzero(begins))
        ends = np.append(runs[1:], len(at)) - 1
        key = np.searchsorted(starts, runs, side="right") - 1
        goes_on = ~begins[runs]
        since = np.where(goes_on, state["since"][key], at[runs])
        fixes = ends - runs + 1 + np.where(goes_on, state["fixes"][key], 0)
        length = np.add.reduceat(steps, runs) + np.where(goes_on, state["length_mm"][key], 0)
        seen = state["seen"][key] + ends + 1 - starts[key]
        held = np.flatnonzero(begun & begins[first])
        over = np.flatnonzero(ends != last[key])
        names = np.array([name for name, *_ in elements.keys], object)
        elements.give(
            first[held],
            {
                "user": names[held],
                "at": state["last"][held],
                **{name: state[name][held] for name in ("since", "fixes", "length_mm", "seen")},
            },
        )
        elements.give(
            ends[over] + 1,
            {
                "user": names[key[over]],
                "at": at[ends[over]],
                "since": since[over],
                "fixes": fixes[over],
                "length_mm": length[over],
                "seen": seen[over],
            },
        )
        open_ = np.flatnonzero(ends == last[key])
        for name, values in (("since", since), ("fixes", fixes), ("length_mm", length), ("seen", seen)):
            state[name] = values[open_]
        state["last"], state["lat_deg"], state["lon_deg"] = at[last], lat[last], lon[last]


fleet = cm.Program("fleet")


@fleet.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=100, within=cm.seconds(60))))
def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
    """What a phone's GPS gives."""
    return device.sensor(Fix, "gps")


@fleet.stream(at=cm.CLOUD)
def trips(fixes: cm.Stream[Fix]) -> cm.Stream[Trip]:
    """Each user's trips."""
    return fixes.key_by(Fix.user).process(SegmentTrips())


fleet.deliver(trips, by=Trip.user)
