"""Bytewax on the fixes of bench/edge_engine.py, on one worker and without recovery: filter, projection, hopping means.

`ordered=False` lets it fold as elements come, which is its faster way.
"""

# Runs where its peer is installed and this project is not, next to edge_input.
# mypy: disable-error-code="import-not-found,import-untyped"
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main
from edge_input import ACCURACY_MAX_M, KMH_PER_MPS, SIZE_US, SLIDE_US, Fix, digest, read

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BATCH = 1000
Timed = tuple[datetime, Fix]


def count_and_sum() -> list[float]:
    """The accumulator of a mean."""
    return [0, 0.0]


def add(total: list[float], speed: tuple[datetime, float]) -> list[float]:
    """One more."""
    total[0] += 1
    total[1] += speed[1]
    return total


def merged(one: list[float], other: list[float]) -> list[float]:
    """Both."""
    return [one[0] + other[0], one[1] + other[1]]


def speed_of(timed: Timed) -> tuple[str, tuple[datetime, float]]:
    """The projection, keyed by user."""
    at, fix = timed
    return fix[0], (at, fix[4] * KMH_PER_MPS)


def flow(fixes: list[Timed], found: list[Any], *, windows: bool) -> Dataflow:
    """The dataflow."""
    made = Dataflow("speeds")
    stream = op.input("fixes", made, TestingSource(fixes, batch_size=BATCH))
    good = op.filter("good", stream, lambda timed: timed[1][5] <= ACCURACY_MAX_M)
    speeds = op.map("speed", good, speed_of)
    if not windows:
        op.output("out", speeds, TestingSink(found))
        return made
    clock: Any = win.EventClock(lambda speed: speed[0], wait_for_system_duration=timedelta(seconds=10))
    hopping = win.SlidingWindower(
        length=timedelta(microseconds=SIZE_US), offset=timedelta(microseconds=SLIDE_US), align_to=EPOCH
    )
    means = win.fold_window("means", speeds, clock, hopping, count_and_sum, add, merged, ordered=False)
    op.output("out", means.down, TestingSink(found))
    return made


if __name__ == "__main__":
    asked = sys.argv[1]
    given = [(EPOCH + timedelta(microseconds=fix[1]), fix) for fix in read(Path(sys.argv[2]))]
    out: list[Any] = []
    dataflow = flow(given, out, windows=asked == "windowed")
    start = time.process_time()
    run_main(dataflow)
    seconds = time.process_time() - start
    if asked == "windowed":
        rows = [(user, number * SLIDE_US + SIZE_US, total / count) for user, (number, (count, total)) in out]
    else:
        rows = [(user, (at - EPOCH) // timedelta(microseconds=1), kmh) for user, (at, kmh) in out]
    print(json.dumps({"seconds": seconds, "answer": digest(rows)}))
