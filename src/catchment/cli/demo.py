"""`catchment demo`: a program running live in this one process, until Ctrl-C.

Devices and cloud are one edge engine here; `catchment run` and `catchment device run` put the same program on many
machines.
"""

from __future__ import annotations

import argparse
import time

from catchment.program.clock_units import iso
from catchment.program.types import Instant, Row

WALKERS = ("ada", "bob", "cyd")
STEP_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("--seconds", type=float, default=None, help="end after so long; by default at Ctrl-C")
    parser.add_argument("--seed", type=int, default=1, help="of the walkers")


def run(arguments: argparse.Namespace) -> int:
    """Make readings, feed them, print what comes out."""
    from catchment.demo.moving import moving, walkers
    from catchment.engines.edge import EdgeEngine
    from catchment.plan.graph import graph_of
    from catchment.plan.history import Source

    print("the program `moving`, in this process: three made-up walkers, a fix every half second,")
    print("and per walker the mean speed of the last 6 s, every 2 s. Ctrl-C ends it.\n")
    print(f"{'window ends':>12}  {'walker':8}  {'mean m/s':>8}  {'fixes':>5}  mode")
    graph = graph_of(moving)
    engine = EdgeEngine(graph)
    schema = moving.streams["paces"].schema

    def show(number: int, at: int, source: Source, row: Row) -> None:
        pace = dict(zip(schema.names, row, strict=True))
        clock = iso(Instant(at + 1))[11:19]
        print(f"{clock:>12}  {pace['user']:8}  {pace['mean_mps']:8.2f}  {pace['fixes']:5}  {pace['mode']}", flush=True)

    engine.on_output(dict(graph.streams)["paces"], show)
    until = time.monotonic() + arguments.seconds if arguments.seconds is not None else None
    for readings in walkers(WALKERS, arguments.seed):
        now = time.time_ns() // 1000
        for name, reading in readings.items():
            phone = Source(f"{name}-phone", name)
            engine.element("fixes/sensor", now, phone, (name, now, *reading))
            engine.progress("fixes/sensor", phone, now)
        engine.tick(now)
        if until is not None and time.monotonic() >= until:
            return 0
        time.sleep(STEP_S)
    return 0
