"""Sonora's Figure 1: the basic operations on streams, one after the other, in Catchment's words.

Run it: `python examples/figures/figure_1.py`. What it prints stands beside it, in figure_1.txt.
"""

from __future__ import annotations

import catchment as cm
from catchment.testing import History, run

MAX_ERROR_M = 20.0


class Location(cm.Record):
    """A reading of the GPS."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    precision_m: cm.Field[float] = cm.field(step=0.1)


class Matched(cm.Record):
    """A location on the map."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    street: cm.Field[str]


class Temperature(cm.Record):
    """A reading of the thermometer."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    celsius: cm.Field[float] = cm.field(step=0.1)


@cm.function
def trip_segmentation(location: Location) -> None:
    """Lines 1-3: a callback that is triggered by each element."""
    print(f"  triggered by {location.user} at {location.lat_deg:.3f}, {location.lon_deg:.3f}")


@cm.function
def match_location_on_map(location: Location) -> Matched:
    """Lines 10-13: a function of one element."""
    return Matched(user=location.user, at=location.at, street="Main" if location.lat_deg < 45.95 else "Hill")


figure = cm.Program("figure_1")


@figure.stream(at=cm.DEVICE)
def gps(device: cm.DeviceSite) -> cm.Stream[Location]:
    """Lines 5-8: an active stream, read each 30 seconds; lines 1-3: what subscribes to it."""
    return device.sensor(Location, "gps", every=cm.seconds(30)).subscribe(trip_segmentation)


@figure.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=100, within=cm.minutes(1)), codec="delta"))
def matched(gps: cm.Stream[Location]) -> cm.Stream[Matched]:
    """Lines 10-13: filter, then project; lines 30-31: batched and compressed on the way to the cloud."""
    return gps.where(Location.precision_m < MAX_ERROR_M).map(match_location_on_map)


@figure.stream(at=cm.DEVICE)
def temperatures(device: cm.DeviceSite) -> cm.Stream[Temperature]:
    """Another active stream."""
    return device.sensor(Temperature, "thermometer", every=cm.seconds(1))


@figure.stream(at=cm.DEVICE)
def averages(temperatures: cm.Stream[Temperature]) -> cm.Stream[cm.Record]:
    """Lines 15-17: the mean of every five seconds."""
    return temperatures.window(cm.tumble(cm.seconds(5))).agg(mean_celsius=cm.mean(Temperature.celsius))


@figure.stream(at=cm.DEVICE)
def peak(temperatures: cm.Stream[Temperature]) -> cm.Stream[cm.Record]:
    """Lines 18-21: a stateful stream, the highest temperature so far."""
    return temperatures.state(peak_celsius=cm.max(Temperature.celsius), order="arrival")


@figure.stream(at=cm.CLOUD)
def streets(matched: cm.Stream[Matched]) -> cm.Stream[cm.Record]:
    """Lines 22-24: partitioned by user; lines 25-28: in the cloud, what the device appended arrives and triggers."""
    return matched.key_by(Matched.user).window(cm.tumble(cm.minutes(5))).agg(streets=cm.collect(Matched.street))


def main() -> None:
    """Feed it and print what it gives."""
    history = History(figure)
    for n in range(4):
        place = {"user": "ada", "at": cm.seconds(30 * n), "lat_deg": 45.9 + n / 40, "lon_deg": 14.5}
        history.send({**place, "precision_m": 50.0 if n == 1 else 5.0}, to="gps")
    for n, celsius in enumerate([18.0, 19.5, 21.0, 20.5, 20.0, 19.0, 18.5]):
        history.send({"user": "ada", "at": cm.seconds(n), "celsius": celsius}, to="temperatures")
    print("subscribed:")
    ran = run(figure, history.end())
    for name in ("matched", "averages", "peak", "streets"):
        print(f"{name}:")
        for element in ran[name]:
            shown = {key: value for key, value in element.items() if key not in ("at", "revision")}
            print("  " + ", ".join(f"{key}={value}" for key, value in shown.items()))


if __name__ == "__main__":
    main()
