"""streamz on the fixes of bench/edge_engine.py: filter and projection, and per-key hopping means after them.

streamz has no windows of event time, so its side holds the least that a user would write in an `accumulate`: a
running sum for each open window of each key, and a result when the latest time has passed the window's end.
"""

# Runs where its peer is installed and this project is not, next to edge_input.
# mypy: disable-error-code="import-not-found,import-untyped"
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from edge_input import ACCURACY_MAX_M, KMH_PER_MPS, SIZE_US, SLIDE_US, Fix, digest, read
from streamz import Stream

Speed = tuple[str, int, float]
State = dict[int, dict[str, list[float]]]


def add(state: State, speed: Speed) -> tuple[State, list[tuple[str, int, float]]]:
    """One more speed in all its windows; the means of windows that ended."""
    user, at, kmh = speed
    last = at - at % SLIDE_US + SIZE_US
    for end in range(last - SIZE_US + SLIDE_US, last + 1, SLIDE_US):
        window = state.setdefault(end, {}).setdefault(user, [0, 0.0])
        window[0] += 1
        window[1] += kmh
    closed = [end for end in state if end <= at]
    return state, [row for end in sorted(closed) for row in means(end, state.pop(end))]


def means(end: int, window: dict[str, list[float]]) -> Iterable[tuple[str, int, float]]:
    """The results of the windows of one end."""
    return ((user, end, total / count) for user, (count, total) in window.items())


def stateless(fixes: list[Fix]) -> list[Speed]:
    """Filter and projection."""
    found: list[Speed] = []
    source: Any = Stream()
    source.filter(lambda fix: fix[5] <= ACCURACY_MAX_M).map(lambda fix: (fix[0], fix[1], fix[4] * KMH_PER_MPS)).sink(
        found.append
    )
    for fix in fixes:
        source.emit(fix)
    return found


def windowed(fixes: list[Fix]) -> list[tuple[str, int, float]]:
    """Filter, projection and means."""
    found: list[tuple[str, int, float]] = []
    state: State = {}
    source: Any = Stream()
    speeds = source.filter(lambda fix: fix[5] <= ACCURACY_MAX_M).map(lambda fix: (fix[0], fix[1], fix[4] * KMH_PER_MPS))
    speeds.accumulate(add, start=state, returns_state=True).flatten().sink(found.append)
    for fix in fixes:
        source.emit(fix)
    return [*found, *(row for end in sorted(state) for row in means(end, state[end]))]


if __name__ == "__main__":
    given = read(Path(sys.argv[2]))
    work = {"stateless": stateless, "windowed": windowed}[sys.argv[1]]
    start = time.process_time()
    rows = work(given)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "answer": digest(rows)}))
