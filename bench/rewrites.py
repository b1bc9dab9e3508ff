"""What each rewrite of a plan buys: the same program with it and without it, on the edge engine.

Filters and columns that go toward the source are measured in what is sent: rows, and bytes of the frames' payload. The
others are measured in time, on one core, each on a program that it is for; overlapping windows are in bench/panes.py.
The edge engine shares equal expressions of one step by itself, so there the rewrite must cost nothing; what it buys an
engine that does not is measured on the reference engine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import catchment as cm
from bench import harness
from catchment.engines.edge import EdgeEngine
from catchment.engines.reference import evaluate
from catchment.plan.build import checked
from catchment.plan.graph import Graph
from catchment.plan.history import Element, Source
from catchment.plan.place import place
from catchment.plan.rewrites import REWRITES, rewritten
from catchment.program.types import Row
from catchment.sync.codecs import codec

SECOND_US = 1_000_000
NAMES = [name for name, _ in REWRITES]
SENT = ("push_filters", "push_columns")
LEAST = {
    "push_filters": 5,
    "push_columns": 3,
    "merge_filters": 1,
    "common_streams": 1.3,
    "common_expressions": 0.9,
    "common_expressions_by_reference": 1,
}
ADA = Source("phone", "ada")


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    accuracy_m: cm.Field[float] = cm.field(step=0.1)
    speed_mps: cm.Field[float] = cm.field(step=0.1)
    heading_deg: cm.Field[float] = cm.field(step=0.1)
    cell: cm.Field[str]


@cm.function
def gear(speed_mps: float) -> float:
    """Stands for an author's own function, which costs a few microseconds."""
    return float(sum(speed_mps > limit for limit in range(0, 40, 2)))


class Case(NamedTuple):
    """A rewrite, and streams in the cloud that it is for."""

    rewrite: str
    streams: Sequence[Callable[[cm.Stream[Fix]], cm.Stream[Any]]]
    by_reference: bool = False


HOME = (46.0667, 11.1167)


def near(fixes: cm.Stream[Fix]) -> cm.Stream[Any]:
    """Three columns of one distance."""
    away = cm.distance_m(Fix.lat_deg, Fix.lon_deg, *HOME)
    return fixes.select(user=Fix.user, away_m=away, km=away / 1000, far=away > 5_000)


def geared(fixes: cm.Stream[Fix]) -> cm.Stream[Any]:
    """Two columns of one declared function."""
    return fixes.select(user=Fix.user, gear=gear(Fix.speed_mps), fast=gear(Fix.speed_mps) > 10)


def good(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
    """One fix in ten is exact enough."""
    return fixes.where(Fix.accuracy_m <= 10)


CASES = (
    Case("push_filters", [lambda fixes: good(fixes).key_by(Fix.user).state(n=cm.count(), order="arrival")]),
    Case("push_columns", [lambda fixes: fixes.key_by(Fix.user).state(mps=cm.max(Fix.speed_mps), order="arrival")]),
    Case(
        "merge_filters",
        [lambda fixes: fixes.where(Fix.speed_mps < 39).where(Fix.accuracy_m < 99).where(Fix.cell != "")],
    ),
    Case(
        "common_streams",
        [
            lambda fixes: near(fixes).where(cm.col("far")),
            lambda fixes: near(fixes).where(~cm.col("far")).changes(cm.col("km")),
            lambda fixes: near(fixes).where(cm.col("away_m") > 100),
        ],
    ),
    Case("common_expressions", [near]),
    Case("common_expressions", [geared]),
    Case("common_expressions", [geared], by_reference=True),
)


def graph_of(case: Case) -> Graph:
    """The checked graph of a case's program."""
    program = cm.Program("measured")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    for number, stream in enumerate(case.streams):
        _declare(program, f"result_{number}", stream, fixes)
    return checked(program)


def _declare(program: cm.Program, name: str, make: Callable[[cm.Stream[Fix]], cm.Stream[Any]], fixes: Any) -> None:
    def declared() -> cm.Stream[Any]:
        return make(fixes)

    declared.__name__ = name
    program.stream(at=cm.CLOUD)(declared)


def readings(count: int) -> list[Row]:
    """A walk with a sensor that is exact one time in ten."""
    draw = random.Random(7)
    rows = []
    lat_deg, lon_deg = HOME
    for number in range(count):
        lat_deg += draw.uniform(-1e-4, 1e-4)
        lon_deg += draw.uniform(-1e-4, 1e-4)
        accuracy_m = draw.uniform(1, 10) if draw.random() < 0.1 else draw.uniform(11, 100)
        speed_mps, heading_deg = draw.uniform(0, 40), draw.uniform(0, 360)
        cell = f"cell-{draw.randrange(50)}"
        rows.append(("ada", number * SECOND_US, lat_deg, lon_deg, accuracy_m, speed_mps, heading_deg, cell))
    return rows


def run(graph: Graph, rows: Sequence[Row]) -> dict[str, tuple[int, Any]]:
    """Of each result, how many elements it has and the last of them."""
    engine = EdgeEngine(graph)
    seen: dict[str, tuple[int, Any]] = {}
    for name, port in graph.streams:
        if name in graph.results:

            def take(number: int, at: int, source: Source, row: Row, name: str = name) -> None:
                seen[name] = (number, row)

            engine.on_output(port, take)
    engine.feed_many("fixes/sensor", ADA, rows)
    return seen


def sent(graph: Graph, rows: Sequence[Row]) -> tuple[int, int]:
    """Rows that the device part sends, and bytes of their payloads in batches of 100."""
    plan = place(graph)
    part = plan.part("fixes@device")
    engine = EdgeEngine(plan.graph(part))
    out: dict[str, list[Row]] = {name: [] for name in part.outputs}
    for name in part.outputs:

        def take(number: int, at: int, source: Source, row: Row, name: str = name) -> None:
            out[name].append(row)

        engine.on_output(plan.sync(name).source, take)
    engine.feed_many("fixes/sensor", ADA, rows)
    size = 0
    for name, given in out.items():
        stream = plan.sync(name)
        encoder = codec("delta/deflate")
        batches = (given[first : first + 100] for first in range(0, len(given), 100))
        size += sum(len(encoder.encode(plan.schemas[stream.schema], batch)) for batch in batches)
    return sum(map(len, out.values())), size


def by_reference(graph: Graph, rows: Sequence[Row]) -> dict[str, tuple[int, Any]]:
    """The same, by the reference engine."""
    history = tuple(Element("fixes/sensor", row[1], ADA, row) for row in rows)
    results = evaluate(graph, history, watch=[port for name, port in graph.streams if name in graph.results]).results
    named = {port: name for name, port in graph.streams}
    return {named[port]: (len(given), given[-1].row) for port, given in results.items() if given}


Engine = Callable[[Graph, Sequence[Row]], dict[str, tuple[int, Any]]]


def _side(name: str, engine: Engine, graph: Graph, rows: Sequence[Row]) -> harness.Side:
    # One process, no waiting: its own time is what the machine's other work does not touch.
    return harness.timed(name, lambda: engine(graph, rows), clock=time.process_time)


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    rows = readings(10_000 if quick else 100_000)
    ratios: dict[str, float] = {}
    bars: list[harness.Bar] = []
    for case in CASES:
        graph = graph_of(case)
        # Only this rewrite is on, so that no other changes what it meets; whatever it needs is in the program.
        others = [name for name in NAMES if name != case.rewrite]
        with_it, without = rewritten(graph, without=others), rewritten(graph, without=NAMES)
        if case.rewrite in SENT:
            (few, small), (many, large) = sent(with_it, rows), sent(without, rows)
            print(
                harness.table(
                    ["", "rows", "bytes"], [["with", f"{few}", f"{small}"], ["without", f"{many}", f"{large}"]]
                )
            )
            ratio = large / small
        else:
            engine, some = (by_reference, rows[: len(rows) // 50]) if case.by_reference else (run, rows)
            race = harness.race(
                [_side("with", engine, with_it, some), _side("without", engine, without, some)],
                rounds=3 if quick else 7,
                same=harness.nearly_equal,
            )
            print(race.table(count=len(some), unit="fixes"))
            ratio = race.ratio("with", over="without")
        kind = f"{case.rewrite}_by_reference" if case.by_reference else case.rewrite
        name = kind if kind not in ratios else f"{kind}_of_a_function"
        ratios[name] = ratio
        bars.append(harness.Bar(f"{name} with over without", ratio, at_least=LEAST[kind]))
        print(flush=True)
    return harness.conclude("rewrites", quick=quick, ratios=ratios, bars=bars)


if __name__ == "__main__":
    raise SystemExit(main())
