"""Sonora's Figure 2: how often the GPS is read is a stream too, and streams compose.

The figure's way first, line by line: a timer, counted, thinned while the battery is low, silent indoors, and a reading
for each signal that is left. Below it the same as a declaration, with which a device leaves the receiver off.
Run it: `python examples/figures/figure_2.py`. What it prints stands beside it, in figure_2.txt.
"""

from __future__ import annotations

import catchment as cm
from catchment.testing import History, run

SLOWER = 3


class Context(cm.Record):
    """What the phone knows of itself."""

    at: cm.Field[cm.Instant] = cm.event_time()
    battery_low: cm.Field[bool]
    indoors: cm.Field[bool]


class Signal(cm.Record):
    """A moment to read the GPS at, and the number of the timer's signal."""

    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int | None]
    battery_low: cm.Field[bool | None]
    indoors: cm.Field[bool | None]


class Location(cm.Record):
    """A reading of the GPS."""

    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)


@cm.function
def query_gps(signal: Signal) -> Location:
    """Line 13: `GPS.Query()`; a real one asks the receiver."""
    return Location(at=signal.at, lat_deg=46.0 + (signal.n or 0) / 100)


figure = cm.Program("figure_2")


@figure.stream(at=cm.DEVICE)
def context(device: cm.DeviceSite) -> cm.Stream[Context]:
    """The phone's own state, whenever it changes."""
    return device.sensor(Context, "context")


@figure.stream(at=cm.DEVICE)
def beats(device: cm.DeviceSite) -> cm.Stream[cm.Record]:
    """Lines 1-2 and 4-7: a timer, and the number of each signal."""
    return device.timer(cm.seconds(30)).state(n=cm.count())


@figure.stream(at=cm.DEVICE)
def signals(beats: cm.Stream[cm.Record], context: cm.Stream[Context]) -> cm.Stream[Signal]:
    """Lines 8-12: while the battery is low one signal in three passes; indoors, none does."""
    known = beats.combine(context, Signal).changes(Signal.n)
    return known.where(~Signal.n.is_null() & (~Signal.battery_low | (Signal.n % SLOWER == 0)) & ~Signal.indoors)


@figure.stream(at=cm.DEVICE)
def gps(signals: cm.Stream[Signal]) -> cm.Stream[Location]:
    """Line 13: a reading for each signal."""
    return signals.map(query_gps)


@figure.stream(at=cm.DEVICE)
def declared(device: cm.DeviceSite) -> cm.Stream[Location]:
    """The same, said rather than done."""
    every = cm.adaptive(cm.seconds(30), slow_down=SLOWER, when=device.battery.low).unless(device.indoors)
    return device.sensor(Location, "gps", every=every)


def main() -> None:
    """Ten minutes: outdoors, then on a low battery, then indoors, then out again."""
    history = History(figure)
    for minute, low, indoors in ((0, False, False), (3, True, False), (6, True, True), (8, False, False)):
        history.send({"at": cm.minutes(minute), "battery_low": low, "indoors": indoors}, to="context")
    for n in range(1, 20):
        history.send({"at": cm.seconds(30 * n)}, to="beats")
    for location in run(figure, history.end())["gps"]:
        print(f"{location['at'] // cm.seconds(1):4d} s  {location['lat_deg']:.2f}")


if __name__ == "__main__":
    main()
