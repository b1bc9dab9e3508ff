"""Popular keywords (Sonora, Table 2): seven daily results of a seven-day window, of daily tallies against from scratch.

The program is examples/keywords; texts are its generator's. Each day's texts are fed and the day is closed, which gives
the week's ten words of each of the 33 by 33 cells. Two sides, by the operators that run in the cloud's buckets:

    tallies    as planned: each day is counted once, and a week is put together of seven days
    scratch    each day a fresh engine counts the whole week's texts, as a nightly job without views would

A second week is what is timed, so that each of its days has six before it; both sides give the same words. Times are
the processor's seconds of one process: Sonora's are seconds of two to eight machines for 2 GB of texts a day, and the
scale here is printed. Then: how long the engine takes to answer one ask. Quick: 300 texts a day instead of 5,000.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from itertools import islice
from typing import Any

import msgspec

import catchment as cm
from bench import harness
from bench.harness import Bar, Reading, Side
from bench.peer import BENCH
from catchment.engines.edge import EdgeEngine
from catchment.plan.graph import Graph, Vertex, graph_of
from catchment.plan.history import Source
from catchment.plan.rewrites import panes
from catchment.program import steps
from catchment.program_file import load_program

EXAMPLE = BENCH.parent / "examples" / "keywords"
PHONES = Source("phones", None)
DAY_US = 86_400_000_000
WEEK_US = 7 * DAY_US
WARM_DAYS, TIMED_DAYS = 6, 7
SONORA_DAY_MB = 2_000.0
ASKS = 200

Days = list[list[tuple[Any, ...]]]


def made(texts_a_day: int) -> Days:
    """Rows of `Text`, by day."""
    sys.path.insert(0, str(EXAMPLE))
    from texts import texts  # type: ignore[import-not-found]  # the example's own module

    given = texts(seed=7)
    days: Days = []
    for day in range(WARM_DAYS + TIMED_DAYS):
        step = DAY_US // (texts_a_day + 1)
        days.append(
            [
                ("ada", day * DAY_US + (n + 1) * step, text["lat_deg"], text["lon_deg"], text["text"])
                for n, text in enumerate(islice(given, texts_a_day))
            ]
        )
    return days


def source(graph: Graph, stream: str) -> str:
    """The step that the stream's sensor is."""
    return next(vertex.id for vertex in graph.vertices if vertex.id.startswith(f"{stream}/") and not vertex.inputs)


def fed(
    graph: Graph, days: Days, per_day: list[float], found: list[tuple[Any, ...]], until: int | None = None
) -> EdgeEngine:
    """An engine that has seen all days; `per_day` takes the processor's seconds of each of the timed ones."""
    engine = EdgeEngine(graph)
    last = next(v.id for v in reversed(graph.vertices) if v.id.startswith("popular/"))
    engine.on_output((last, 0), lambda number, at, source, row: found.append(row))
    texts, asks = source(graph, "texts"), source(graph, "asks")
    engine.progress(asks, PHONES, 0)
    for number, rows in enumerate(days):
        if number == WARM_DAYS:
            found.clear()
            gc.collect()
        start = time.process_time()
        engine.feed_many(texts, PHONES, rows)
        engine.progress(texts, PHONES, until or (number + 1) * DAY_US + cm.minutes(10))
        if number >= WARM_DAYS:
            per_day.append(time.process_time() - start)
    return engine


def with_tallies(graph: Graph, days: Days, kept: list[list[float]]) -> Side:
    """All days through the plan; what counts is the second week."""

    def run() -> Reading:
        per_day: list[float] = []
        found: list[tuple[Any, ...]] = []
        fed(graph, days, per_day, found)
        kept.append(per_day)
        # By day, with the words and mentions of each cell.
        return Reading(sum(per_day), sorted((row[1], row[0], row[2], row[3]) for row in found))

    return Side("tallies", run)


def from_scratch(graph: Graph, days: Days) -> Side:
    """A fresh engine for each day of the second week, whose only window is the week that ends there."""
    week = msgspec.structs.replace(graph, vertices=tuple(_of_one_week(vertex) for vertex in graph.vertices))

    def run() -> Reading:
        seconds, found = 0.0, []
        for last in range(WARM_DAYS, WARM_DAYS + TIMED_DAYS):
            back = (last - WARM_DAYS) * DAY_US  # the week begins at 0, where a window of seven days does
            rows = [(row[0], row[1] - back, *row[2:]) for day in days[last - WARM_DAYS : last + 1] for row in day]
            gc.collect()
            start = time.process_time()
            given: list[tuple[Any, ...]] = []
            fed(week, [rows], [], given, until=WEEK_US + cm.minutes(10))
            seconds += time.process_time() - start
            found += [(row[1] + back, row[0], row[2], row[3]) for row in given]
        return Reading(seconds, sorted(found))

    return Side("scratch", run)


def _of_one_week(vertex: Vertex) -> Vertex:
    if not isinstance(vertex.step, steps.Aggregated):
        return vertex
    alone = msgspec.structs.replace(vertex.step.window, every=WEEK_US)
    return msgspec.structs.replace(vertex, step=msgspec.structs.replace(vertex.step, window=alone))


def answer_ms(graph: Graph, days: Days) -> float:
    """The median time from an ask at the engine to its answer."""
    given: list[float] = []
    engine = EdgeEngine(graph)
    last = next(v.id for v in reversed(graph.vertices) if v.id.startswith("answers/"))
    engine.on_output((last, 0), lambda number, at, source, row: given.append(time.perf_counter()))
    texts, asks = source(graph, "texts"), source(graph, "asks")
    engine.progress(asks, PHONES, 0)
    for number, rows in enumerate(days[:7]):
        engine.feed_many(texts, PHONES, rows)
        engine.progress(texts, PHONES, (number + 1) * DAY_US + cm.minutes(10))
    took = []
    for n in range(ASKS):
        at = 7 * DAY_US + n
        start = time.perf_counter()
        engine.element(asks, at, PHONES, ("ada", at, 45.90 + 0.0016 * n, 14.30 + 0.0023 * n))
        took.append(given[-1] - start)
    assert len(given) == ASKS, f"{ASKS} asks had {len(given)} answers"
    return statistics.median(took) * 1e3


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    texts_a_day = 300 if quick else 5_000
    program = graph_of(load_program(str(EXAMPLE / "keywords.py")))
    planned, _ = panes.rewrite(program)
    days = made(texts_a_day)
    day_mb = sum(len(row[4]) for row in days[-1]) / 1e6
    kept: list[list[float]] = []
    race = harness.race(
        [with_tallies(planned, days, kept), from_scratch(program, days)],
        rounds=1 if quick else 3,
        warm_ups=0,
    )
    texts_timed = texts_a_day * TIMED_DAYS
    print(f"{texts_a_day:,} texts a day, {day_mb:.2f} MB: one in {SONORA_DAY_MB / day_mb:,.0f} of Sonora's 2 GB")
    print(race.table(texts_timed, "texts"))
    by_day = [statistics.median(times) for times in zip(*kept, strict=True)]
    print(harness.table(["day", "seconds"], [[str(n + 1), f"{s:.3f}"] for n, s in enumerate(by_day)]))
    latency_ms = answer_ms(planned, days)
    print(f"an ask is answered by the engine in {latency_ms:.3f} ms (Sonora, over the network: 2,800 ms)\n")
    ratio = race.ratio("tallies", over="scratch")
    # Sonora's on eight machines: 296.7 s from scratch, 111.2 s with daily views.
    bars = [Bar("daily tallies over from scratch: Sonora's factor of 2.67", ratio, at_least=296.7 / 111.2)]
    figures = {
        "texts_a_day": texts_a_day,
        "day_mb": round(day_mb, 3),
        "by_day_s": [round(s, 4) for s in by_day],
        "tallies_s": round(race.median("tallies"), 4),
        "scratch_s": round(race.median("scratch"), 4),
        "answer_ms": round(latency_ms, 4),
    }
    return harness.conclude("keywords", quick=quick, ratios={"scratch": ratio}, bars=bars, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
