"""Sonora's Tables 3 and 4 beside ours: what sensors and the radio take, and what policies save of it.

This compares policies by the model of `catchment/device/power.py`, whose parameters come from the same two tables; it
measures no phone. What is ours is what the device did: each figure is of a run of its whole stack (agent, edge engine,
outbox, sync streams) on virtual time, whose readings and transfers the meter of that run followed.

Table 3: sensors read every 5 s, one at a time for five minutes, and together for thirty, half of these indoors: fixed,
and with GPS and accelerometer resting indoors while GSM tells where one is. Of these figures the model knows the first
five; the last one it predicts.

Table 4: thirty minutes of GPS fixes, one a second, in a stream of about 1 KB/s when each goes at once: so, in a batch a
minute, and that compressed; then what is there beyond Sonora, the `delta` codec and dead reckoning within 10 m. As in
the paper, the sensors' own draw is left out, and traffic is what the phone sent.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal

import catchment as cm
from bench import harness
from bench.harness import Bar
from bench.phone import SECOND_US, Fix, Phone, following, track_file
from catchment.device.power import BASE_W, PERIOD_US, TABLE_3_W, TABLE_4_BYTES, TABLE_4_W, Used
from catchment.device.surroundings import Surroundings
from catchment.program.sync import Sync, dead_reckoning

MINUTES = 30
EVERY = cm.Duration(PERIOD_US)
TOGETHER = ("accelerometer", "battery", "gps")
A_MINUTE = cm.Batch(records=1000, within=cm.minutes(1))


class Sample(cm.Record):
    """What a sensor says."""

    at: cm.Field[cm.Instant] = cm.event_time()
    value: cm.Field[int]


def sensing(kinds: tuple[str, ...], rests_indoors: tuple[str, ...] = ()) -> cm.Program:
    """A program that reads these sensors every five seconds; some of them only outdoors."""
    program = cm.Program("sensing")

    @program.stream(at=cm.DEVICE)
    def samples(device: cm.DeviceSite) -> cm.Stream[Sample]:
        """Of all sensors."""
        streams = []
        for kind in kinds:
            every = cm.adaptive(EVERY)
            streams.append(
                device.sensor(Sample, kind, every=every.unless(device.indoors) if kind in rests_indoors else every)
            )
        first, *others = streams
        return first.union(*others) if others else first

    return program


def sensors_w(
    kinds: tuple[str, ...], minutes: int, rests_indoors: tuple[str, ...] = (), *, goes_in: bool = True
) -> float:
    """What sensing takes, by the meter of a run; with `goes_in`, indoors for the second half of it."""
    phone = Phone(sensing(kinds, rests_indoors), *[f"{kind}=generate:power={kind}" for kind in kinds])
    phone.start()
    for half in range(2):
        phone.around = Surroundings(indoors=goes_in and half == 1)
        # The reading that falls on the end belongs to what follows.
        phone.run(minutes * 30 * SECOND_US - half)
    used = phone.used
    return (used.base_j + sum(used.sensors_j.values())) / used.seconds


class Sent:
    """A run with that policy."""

    def __init__(self, policy: Sync, minutes: int, directory: Path) -> None:
        track = track_file(directory / "track.csv", minutes * 60 + 60)
        phone = Phone(following(policy, every_s=1), f"gps=replay:{track}")
        phone.start()
        phone.run(minutes * 60 * SECOND_US)
        used: Used = phone.used
        self.watts = (used.base_j + used.radio_j) / used.seconds
        self.sent_bytes = phone.carried_bytes
        self.logged = phone.logged("fixes")


def policies() -> dict[str, Sync]:
    """From everything at once to everything that can be saved."""
    clear: Literal["off"] = "off"
    reckoning = dead_reckoning(Fix.lat_deg, Fix.lon_deg, within=10)
    return {
        "none": Sync(batch=cm.Batch(records=1), codec="none", compression=clear),
        "batch": Sync(batch=A_MINUTE, codec="none", compression=clear),
        "batch and zip": Sync(batch=A_MINUTE, codec="none", compression="deflate"),
        "batch and delta": Sync(batch=A_MINUTE),
        "batch, delta and dead reckoning": Sync(batch=A_MINUTE, filter=reckoning),
    }


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    minutes = 10 if quick else MINUTES
    print("Table 3, watts\n")
    found = {kind: sensors_w((kind,), 5, goes_in=False) for kind in ("accelerometer", "gsm", "battery", "gps")}
    found["fixed"] = sensors_w(TOGETHER, MINUTES)
    found["adaptive"] = sensors_w((*TOGETHER, "gsm"), MINUTES, rests_indoors=("gps", "accelerometer"))
    rows = [[name, f"{TABLE_3_W[name]:.2f}", f"{watts:.2f}"] for name, watts in found.items()]
    print(harness.table(["sensors", "Sonora", "ours"], rows))
    saved, theirs = 1 - found["adaptive"] / found["fixed"], 1 - TABLE_3_W["adaptive"] / TABLE_3_W["fixed"]
    print(f"\nadaptive sensing saves {saved:.0%} here, {theirs:.0%} in the paper\n\nTable 4, {minutes} minutes\n")
    with tempfile.TemporaryDirectory() as directory:
        sent = {name: Sent(policy, minutes, Path(directory)) for name, policy in policies().items()}
    rows = [
        [
            name,
            f"{TABLE_4_W[name]:.2f}" if name in TABLE_4_W else "",
            f"{one.watts:.2f}",
            f"{TABLE_4_BYTES[name] / 1e6 * minutes / MINUTES:.3f}" if name in TABLE_4_BYTES else "",
            f"{one.sent_bytes / 1e6:.3f}",
            str(one.logged),
        ]
        for name, one in sent.items()
    ]
    headings = ["policy", "Sonora W", "ours W", "Sonora MB", "ours MB", "elements that arrived"]
    print(harness.table(headings, rows) + f"\n\nof which {BASE_W:.2f} W are the phone's own\n")
    furthest_w = max(abs(watts - TABLE_3_W[name]) for name, watts in found.items())
    none, best = sent["none"], sent["batch, delta and dead reckoning"]
    less = {name: 1 - one.sent_bytes / none.sent_bytes for name, one in sent.items()}
    return harness.conclude(
        "energy",
        quick=quick,
        ratios={f"watts, none over {name}": none.watts / one.watts for name, one in sent.items() if name != "none"},
        bars=[
            Bar("W between ours and Sonora's Table 3, at most", furthest_w, at_most=0.01),
            Bar("saved by adaptive sensing (Sonora: 0.30)", saved, at_least=0.29),
            Bar(
                "saved by batching, of all that is drawn (Sonora: 0.63)",
                1 - sent["batch"].watts / none.watts,
                at_least=0.6,
            ),
            Bar("traffic saved by batch and zip (Sonora: 0.812)", less["batch and zip"], at_least=0.812),
            Bar(
                "traffic of delta over that of zip",
                sent["batch and delta"].sent_bytes / sent["batch and zip"].sent_bytes,
                at_most=1,
            ),
            Bar("watts with all that there is (Sonora's batch and zip: 0.45)", best.watts, at_most=0.45),
        ],
        figures={"table_3_w": found, "table_4": {name: vars(one) for name, one in sent.items()}},
    )


if __name__ == "__main__":
    sys.exit(main())
