"""The edge engine: fixes filtered, projected and averaged per user over hopping windows, against a loop and two peers.

A million fixes of a hundred users, one per second each, of which a third is too inaccurate:

    stateless    filter and projection: the engine, a plain Python loop, streamz, Bytewax
    windowed     after that the mean of 60 s every 5 s per user: the engine, streamz, Bytewax without recovery

All sides give the same rows, held against each other by their digest, and all are timed by the processor's seconds of
their process: each runs in one thread, and the machine may be busy with others'. Making a dataflow is not timed, only
feeding it. Then: what a fresh interpreter takes to import the engine and to give the first result of a small program,
how much memory that holds, and whether memory stays flat over ten million fixes. Quick: 40,000 fixes, and 400,000 for
the memory.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import catchment as cm
from bench import harness
from bench.harness import Bar, Race, Reading, Side
from bench.peer import BENCH, Peer
from bench.peers.edge_input import ACCURACY_MAX_M, KMH_PER_MPS, SIZE_US, SLIDE_US, Fix, digest, fixes, write
from bench.peers.edge_start import held_kb
from catchment.engines.edge import EdgeEngine
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Source
from catchment.plan.rewrites import panes

STREAMZ = Peer("streamz", ("streamz==0.6.6",), "peers/edge_streamz.py")
BYTEWAX = Peer("bytewax", ("bytewax==0.21.1",), "peers/edge_bytewax.py")
REGION = Source("region", None)
BATCH = 1000
FAR_US = 10**18

Result = tuple[str, int, float]


class GpsFix(cm.Record):
    """What the region's sensor gives."""

    user: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    speed_mps: cm.Field[float] = cm.field(step=0.25)
    accuracy_m: cm.Field[float] = cm.field(step=0.1)


class Speed(cm.Record):
    """The projection."""

    user: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    kmh: cm.Field[float] = cm.field(step=0.1)


def program(*, windows: bool) -> Graph:
    """As an author writes it, and as the plan ships it."""
    speeds = cm.Program("speeds")

    @speeds.stream(at=cm.DEVICE)
    def good(device: cm.DeviceSite) -> cm.Stream[Speed]:
        good = device.sensor(GpsFix).where(GpsFix.accuracy_m <= ACCURACY_MAX_M)
        return good.select(Speed, kmh=GpsFix.speed_mps * KMH_PER_MPS)

    if windows:

        @speeds.stream(at=cm.DEVICE)
        def means(good: cm.Stream[Speed]) -> cm.Stream[Any]:
            hopping = cm.hop(cm.Duration(SIZE_US), cm.Duration(SLIDE_US))
            return good.key_by(Speed.user).window(hopping).agg(mean_kmh=cm.mean(Speed.kmh))

    planned, _ = panes.rewrite(graph_of(speeds))
    return planned


def engine(graph: Graph, give: Callable[[tuple[Any, ...]], None]) -> EdgeEngine:
    """The engine, whose last step gives rows."""
    made = EdgeEngine(graph)
    made.on_output((graph.vertices[-1].id, 0), lambda number, at, source, row: give(row))
    return made


def feed(running: EdgeEngine, rows: Iterable[Fix]) -> None:
    """All rows in batches, each with the promise that it allows."""
    step = running.graph.vertices[0].id
    given = iter(rows)
    while batch := list(islice(given, BATCH)):
        running.feed_many(step, REGION, batch)
        running.progress(step, REGION, batch[-1][1])


def with_loop(rows: list[Fix]) -> list[Result]:
    """What a script would do."""
    found: list[Result] = []
    for fix in rows:
        if fix[5] <= ACCURACY_MAX_M:
            found.append((fix[0], fix[1], fix[4] * KMH_PER_MPS))
    return found


def by_engine(rows: list[Fix], *, windows: bool) -> Side:
    """The engine as a side; a fresh one is made and connected before each run."""
    graph = program(windows=windows)

    def run() -> Reading:
        found: list[tuple[Any, ...]] = []
        running = engine(graph, found.append)
        running.progress(running.graph.vertices[0].id, REGION, 0)
        gc.collect()
        start = time.process_time()
        feed(running, rows)
        if windows:
            running.progress(running.graph.vertices[0].id, REGION, FAR_US)
        seconds = time.process_time() - start
        return Reading(seconds, digest(means_of(found) if windows else found))

    return Side("engine", run)


def by_loop(rows: list[Fix]) -> Side:
    """The loop as a side."""

    def run() -> Reading:
        gc.collect()
        start = time.process_time()
        found = with_loop(rows)
        seconds = time.process_time() - start
        return Reading(seconds, digest(found))

    return Side("loop", run)


def means_of(rows: Iterable[tuple[Any, ...]]) -> list[Result]:
    """(user, window's end, mean) of what the engine gives."""
    return [(row[0], row[2], row[5]) for row in rows]


def stateless_race(rows: list[Fix], path: Path, rounds: int) -> Race:
    """Filter and projection, beside peers."""
    sides = [
        by_engine(rows, windows=False),
        STREAMZ.side("stateless", str(path)),
        BYTEWAX.side("stateless", str(path)),
    ]
    return harness.race(sides, rounds=rounds, warm_ups=1)


def race_with_loop(rows: list[Fix], rounds: int) -> Race:
    """Engine and loop by themselves: with a peer's ten seconds between two that take less than one, the ratio would say
    how busy the machine was.
    """
    return harness.race([by_engine(rows, windows=False), by_loop(rows)], rounds=rounds, warm_ups=1)


def windowed_race(rows: list[Fix], path: Path, rounds: int) -> Race:
    """All of it. What comes first in a process is slower by little here, so no round is wasted on warming up."""
    sides = [
        by_engine(rows, windows=True),
        STREAMZ.side("windowed", str(path)),
        BYTEWAX.side("windowed", str(path)),
    ]
    return harness.race(sides, rounds=rounds, warm_ups=0)


def memory(count: int) -> dict[str, Any]:
    """Runs in a process of its own: what is held after each tenth of so many fixes, made as they are fed."""
    given = 0

    def give(row: tuple[Any, ...]) -> None:
        nonlocal given
        given += 1

    running = engine(program(windows=True), give)
    held = []
    rows = fixes(count)
    for _ in range(10):
        feed(running, islice(rows, count // 10))
        held.append(held_kb())
    return {"held_kb": held, "given": given}


def fresh(*words: str) -> str:
    """The last line that a fresh interpreter prints."""
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    return ran.stdout.strip().rpartition("\n")[2]


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--memory", type=int, default=0, help="only feed so many fixes, and say what is held")
    chosen = parser.parse_args()
    if chosen.memory:
        print(json.dumps(memory(chosen.memory)))
        return 0
    quick = chosen.quick
    count, memory_count, rounds = (40_000, 400_000, 3) if quick else (1_000_000, 10_000_000, 3)

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "fixes.csv"
        rows = list(fixes(count))
        write(path, rows)
        looped = race_with_loop(rows, rounds if quick else 15)
        print(f"\nfilter and projection of {count:,} fixes\n{looped.table(count, 'fixes')}", flush=True)
        stateless = stateless_race(rows, path, rounds if quick else 5)
        print(f"\nthe same beside peers\n{stateless.table(count, 'fixes')}", flush=True)
        windowed = windowed_race(rows, path, rounds)
        print(f"\nand hopping means, 60 s every 5 s\n{windowed.table(count, 'fixes')}", flush=True)
        del rows

    starts = [json.loads(fresh(str(BENCH / "peers" / "edge_start.py"))) for _ in range(5)]
    first = min(starts, key=lambda each: float(each["cpu"]))
    print(
        f"\na fresh interpreter gives its first result after {first['cpu']:.3f} s of the processor's time "
        f"({first['wall']:.3f} s) and holds {first['held_kb']:,} kB"
    )
    held = json.loads(fresh("-m", "bench.edge_engine", "--memory", str(memory_count)))["held_kb"]
    growth = max(held[2:]) / held[1]
    print(f"after each tenth of {memory_count:,} fixes it holds {', '.join(f'{kb:,}' for kb in held)} kB\n", flush=True)

    ratios = {
        "loop, stateless": looped.ratio("engine", over="loop"),
        "streamz, stateless": stateless.ratio("engine", over="streamz"),
        "streamz, windowed": windowed.ratio("engine", over="streamz"),
        "bytewax, stateless": stateless.ratio("engine", over="bytewax"),
        "bytewax, windowed": windowed.ratio("engine", over="bytewax"),
    }
    bars = [
        Bar("filter and projection: at least half of a plain loop", ratios["loop, stateless"], at_least=0.5),
        Bar("filter and projection: three times streamz", ratios["streamz, stateless"], at_least=3),
        Bar("with windows: three times streamz", ratios["streamz, windowed"], at_least=3),
        Bar("filter and projection: 0.7 of Bytewax", ratios["bytewax, stateless"], at_least=0.7),
        Bar("with windows: 0.7 of Bytewax", ratios["bytewax, windowed"], at_least=0.7),
        Bar("seconds to the first result of a fresh interpreter", first["cpu"], at_most=0.3),
        Bar("MB held then", first["held_kb"] / 1024, at_most=40),
        Bar("memory after the last fix over memory after a fifth", growth, at_most=1.05),
    ]
    figures = {"fixes": count, "held_kb": held, "first_result": first}
    return harness.conclude("edge_engine", quick=quick, ratios=ratios, bars=bars, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
