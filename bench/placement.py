"""Sonora's section 5.4: the mode of transport inferred on the phone, and in the cloud (its Figure 13).

The environmental report (examples/peir) with `placed(DEVICE)` and with `placed(CLOUD)`, on a phone's whole stack
(agent, edge engine, outbox, sync streams) and on virtual time: hours of a generated day, with GPS, GSM, battery and
accelerometer, for a phone that asks for results every ten minutes. What it sends, what the radio and the sensors take
by the model of energy, and the processor time of the phone's own stack on this machine, which the model leaves out.
Both must know the same way-points: those of the cloud are computed of what was logged.

Sonora's phone sent its readings over WiFi in batches and was relieved of a .NET program; so its 40 % are not expected
here, where inference takes less than sending what it needs.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import harness
from bench.harness import Bar
from bench.phone import SECOND_US, Phone
from catchment.program.program import Program
from catchment.program.site import CLOUD, DEVICE, Site
from catchment.program.types import Row
from catchment.testing import History, run
from tests.examples.peir import module, report

SENSORS = ("gps", "gsm", "battery", "accelerometer")


class Spent(NamedTuple):
    """What the hours took at one placement."""

    sent_bytes: int
    radio_j: float
    sensors_j: float
    processor_s: float
    waypoints: list[dict[str, Any]]


def spent(site: Site, folder: Path, hours: float) -> Spent:
    """Live through them."""
    phone = Phone(
        report(site), *(f"{name}=replay:{folder / name}.csv,sampled=true,then=done,power={name}" for name in SENSORS)
    )
    phone.poll_us = 600 * SECOND_US
    phone.start()
    start = time.process_time()
    phone.run(round(hours * 3600) * SECOND_US)
    processor_s = time.process_time() - start
    used = phone.used
    return Spent(phone.carried_bytes, used.radio_j, sum(used.sensors_j.values()), processor_s, waypoints(phone, site))


def waypoints(phone: Phone, site: Site) -> list[dict[str, Any]]:
    """As the cloud knows them: logged, or inferred of what was logged."""
    if site is DEVICE:
        return named(phone, "waypoints")
    program: Program = report(DEVICE)
    told = History(program)
    readings = [(row["at"], to, row) for to in ("shakes", "fixes") for row in named(phone, to)]
    for _, to, row in sorted(readings, key=lambda one: one[:2]):
        # What was read and not sent had been asked for its accuracy already.
        told.send(row if to == "shakes" else row | {"accuracy_m": 0.0}, to=f"{to}/sensor", device="phone")
    return [dict(row) for row in run(program, told.end(), engine="edge")["waypoints"]]


def named(phone: Phone, stream: str) -> list[dict[str, Any]]:
    """The logged elements of a stream, by field."""
    names = phone.plan.schemas[phone.plan.sync(stream).schema].names
    rows: list[Row] = phone.gateway.rows(phone.plan, stream)
    return [dict(zip(names, row, strict=True)) for row in rows]


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    hours = 1.5 if quick else 10.0
    mobility = module("mobility")
    with tempfile.TemporaryDirectory() as directory:
        chance = random.Random(3)
        mobility.write_day(Path(directory), mobility.Person(chance), chance, accelerometer=True)
        found = {name: spent(site, Path(directory), hours) for name, site in (("phone", DEVICE), ("cloud", CLOUD))}
    phone, cloud = found["phone"], found["cloud"]
    rows = [
        [name, f"{one.sent_bytes / 1e3:.1f}", f"{one.radio_j:,.0f}", f"{one.sensors_j:,.0f}", f"{one.processor_s:.2f}"]
        for name, one in found.items()
    ]
    headings = ["inference on the", "KB sent", "radio J", "sensors J", "processor s"]
    print(f"{hours:g} hours, {len(phone.waypoints):,} way-points\n{harness.table(headings, rows)}\n", flush=True)
    # Of what was sent in both: the end of the day is on its way in one of them, and inferred at once in the other.
    shared = min(len(phone.waypoints), len(cloud.waypoints))
    differ = sum(one != other for one, other in zip(phone.waypoints, cloud.waypoints, strict=False))
    return harness.conclude(
        "placement",
        quick=quick,
        ratios={
            "bytes, cloud over phone": cloud.sent_bytes / phone.sent_bytes,
            "radio, cloud over phone": cloud.radio_j / phone.radio_j,
            "processor, cloud over phone": cloud.processor_s / phone.processor_s,
        },
        bars=[
            Bar("way-points that differ", float(differ), at_most=0),
            Bar("share of way-points that both know", shared / len(phone.waypoints), at_least=0.95),
        ],
        figures={"hours": hours}
        | {name: {**one._asdict(), "waypoints": len(one.waypoints)} for name, one in found.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
