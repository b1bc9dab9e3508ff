"""Incremental windows: what panes buy over the same engine with that rewrite off.

Two patients' electrocardiograms at 250 Hz; mean, variance and the transform of 8 coefficients, every second over the
last 2, 12 and 60 seconds. Off, an element is added to each window that holds it; on, to one pane. Both sides give the
same results, and are timed by the processor's seconds. Quick: a tenth of the readings.
"""

from __future__ import annotations

import gc
import math
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import catchment as cm
from bench import harness
from bench.harness import Bar, Reading, Side
from catchment.engines.edge import EdgeEngine
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Source
from catchment.plan.rewrites import panes
from catchment.program.types import Row

WARD = Source("ward", None)
RATE_HZ = 250
PATIENTS = ("p-1", "p-2")
OVERLAPS = (2, 12, 60)
LEAST = {12: 5.0, 60: 20.0}
FAR_US = 10**18


class Reading_mV(cm.Record):  # noqa: N801  the unit is part of the name
    """One sample."""

    patient: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    mv: cm.Field[float] = cm.field(step=0.005)


AGGREGATES: dict[str, Callable[[], Any]] = {
    "mean": lambda: cm.mean(Reading_mV.mv),
    "variance": lambda: cm.variance(Reading_mV.mv),
    "dft": lambda: cm.dft(Reading_mV.mv, bins=8),
}


def program(aggregate: str, overlap: int) -> Graph:
    """As an author writes it."""
    ward = cm.Program("ward")

    @ward.stream(at=cm.DEVICE)
    def windows(device: cm.DeviceSite) -> cm.Stream[Any]:
        hopping = cm.hop(cm.seconds(overlap), cm.seconds(1))
        return device.sensor(Reading_mV).key_by(Reading_mV.patient).window(hopping).agg(value=AGGREGATES[aggregate]())

    return graph_of(ward)


def readings(seconds: int, seed: int = 3) -> list[list[Row]]:
    """Beats with noise, whole thousandths of a millivolt, by second."""
    draw = random.Random(seed)
    found = []
    for second in range(seconds):
        rows: list[Row] = []
        for sample in range(RATE_HZ):
            at = second * 1_000_000 + sample * (1_000_000 // RATE_HZ)
            for patient, rate_hz in zip(PATIENTS, (1.1, 1.4), strict=True):
                beat = math.exp(-(((at / 1e6 * rate_hz) % 1 - 0.5) ** 2) / 0.002)
                rows.append((patient, at, round(1.2 * beat + draw.gauss(0, 0.05), 3)))
        found.append(rows)
    return found


def side(name: str, graph: Graph, seconds: list[list[Row]]) -> Side:
    """A graph on a fresh engine, fed second by second."""

    def run() -> Reading:
        found: list[Row] = []
        engine = EdgeEngine(graph)
        engine.on_output(("windows/aggregated", 0), lambda number, at, source, row: found.append(row))
        engine.progress("windows/sensor", WARD, 0)
        gc.collect()
        start = time.process_time()
        for number, rows in enumerate(seconds, 1):
            engine.feed_many("windows/sensor", WARD, rows)
            engine.progress("windows/sensor", WARD, number * 1_000_000)
        engine.progress("windows/sensor", WARD, FAR_US)
        return Reading(time.process_time() - start, found)

    return Side(name, run)


def same(one: Any, other: Any) -> bool:
    """Equal; floats within 1e-9, of their size or of a millivolt, since coefficients may cancel to nothing."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    seconds = readings(70 if quick else 600)
    count = sum(map(len, seconds))
    ratios: dict[str, float] = {}
    bars: list[Bar] = []
    rows: list[list[str]] = []
    for aggregate in AGGREGATES:
        for overlap in OVERLAPS:
            graph = program(aggregate, overlap)
            by_panes, changes = panes.rewrite(graph)
            assert [change.done for change in changes] == [True]
            sides = [side("panes", by_panes, seconds), side("whole", graph, seconds)]
            race = harness.race(sides, rounds=3, warm_ups=1 if quick else 0, same=same)
            ratio = ratios[f"{aggregate}, overlap {overlap}"] = race.ratio("panes", over="whole")
            rows.append([aggregate, str(overlap), *(_rate(count, race.median(name)) for name in ("panes", "whole"))])
            rows[-1].append(f"{ratio:.1f}x")
            if overlap in LEAST:
                claim = f"{aggregate}, overlap of {overlap}: {LEAST[overlap]:g} times as fast by panes"
                bars.append(Bar(claim, ratio, at_least=LEAST[overlap]))
    headings = ["aggregate", "overlap", "panes, readings/s", "whole, readings/s", "panes are"]
    print(f"{count:,} readings\n{harness.table(headings, rows)}\n", flush=True)
    return harness.conclude("panes", quick=quick, ratios=ratios, bars=bars, figures={"readings": count})


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
