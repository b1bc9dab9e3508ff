"""`catchment run PROGRAM.py`: gateway, Spark and queries as one thing, with nothing to start beforehand."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from catchment.program_file import load_program


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("program", help="the program's file, or FILE.py:name")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where everything is kept")
    parser.add_argument("--host", default="127.0.0.1", help="where the gateway listens")
    parser.add_argument("--port", type=int, default=8080, help="the gateway's port")
    parser.add_argument("--master", default="local[*]", help="Spark's master; local[*] needs nothing else")
    parser.add_argument("--trigger-ms", type=int, default=100, help="the shortest time between two batches")
    parser.add_argument("--quick", action="store_true", help="compile less: for trials and tests that live for minutes")


def run(arguments: argparse.Namespace) -> int:
    """Run until interrupted; then stop cleanly."""
    from catchment.cloud.supervisor import Options, SparkDiedError, Supervisor
    from catchment.gateway.journal import say, write_to
    from catchment.plan.build import build

    write_to(sys.stderr)
    for noisy in ("py4j", "pyspark"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    told: list[int] = []

    def tell(number: int, frame: Any) -> None:
        told.append(number)

    signal.signal(signal.SIGINT, tell)
    signal.signal(signal.SIGTERM, tell)
    options = Options(
        data=arguments.data.resolve(),
        host=arguments.host,
        port=arguments.port,
        master=arguments.master,
        trigger_ms=arguments.trigger_ms,
        quick=arguments.quick,
    )
    plan = build(load_program(arguments.program))
    try:
        Supervisor(plan, options, stopping=lambda: bool(told)).run()
    except SparkDiedError as gone:
        if told:
            return 0
        # A process whose JVM died cannot start another one. This one begins anew, as itself.
        say("spark_died", error=str(gone).partition("\n")[0])
        os.execv(sys.executable, [sys.executable, "-m", "catchment", *sys.argv[1:]])
    return 0
