"""`catchment run PROGRAM.py`: gateway, Spark and queries as one thing, with nothing to start beforehand."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catchment.program_file import load_program

if TYPE_CHECKING:
    from catchment.cloud.supervisor import Options

STOP = (signal.SIGINT, signal.SIGTERM)
DRAIN = signal.SIGUSR1
"""Take in nothing more, compute all that is logged, and end. `catchment stop --drain` sends it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("program", help="the program's file, or FILE.py:name")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where everything is kept")
    parser.add_argument("--host", default="127.0.0.1", help="where the gateway listens")
    parser.add_argument("--port", type=int, default=8080, help="the gateway's port")
    parser.add_argument("--certificate", type=Path, metavar="PEM", help="the gateway speaks TLS, with this chain")
    parser.add_argument("--key", type=Path, metavar="PEM", help="the certificate's private key")
    parser.add_argument("--address", metavar="URL", help="at which devices reach the gateway (default: host and port)")
    parser.add_argument("--master", default="local[*]", help="Spark's master; local[*] needs nothing else")
    parser.add_argument(
        "--executors",
        type=_executors,
        metavar="LEAST:MOST",
        help="on a standalone cluster: so many executors, by how much there is to do (default: all that it has)",
    )
    parser.add_argument("--trigger-ms", type=int, default=100, help="the shortest time between two batches")
    parser.add_argument("--standby", action="store_true", help="wait while another runs the program, and take over")
    parser.add_argument(
        "--take-over-after",
        type=float,
        default=60.0,
        metavar="S",
        help="as a standby, end a holder that has said nothing for so long (default: 60)",
    )
    parser.add_argument("--quick", action="store_true", help="compile less: for trials and tests that live for minutes")


def run(arguments: argparse.Namespace) -> int:
    """Run until interrupted; then stop cleanly."""
    from catchment.cloud.cluster import elastic
    from catchment.cloud.supervisor import Options

    said = {"--certificate": arguments.certificate, "--key": arguments.key, "--address": arguments.address}
    options = Options(
        data=arguments.data.resolve(),
        host=arguments.host,
        port=arguments.port,
        master=arguments.master,
        trigger_ms=arguments.trigger_ms,
        quick=arguments.quick,
        gateway=[word for name, value in said.items() if value is not None for word in (name, str(value))],
        standby=arguments.standby,
        silent_s=arguments.take_over_after,
        spark=elastic(*arguments.executors) if arguments.executors else {},
    )
    return supervise(arguments.program, options)


def _executors(text: str) -> tuple[int, int]:
    """Two numbers, the first from 1 and not above the second.

    >>> _executors("1:4")
    (1, 4)
    """
    least, _, most = text.partition(":")
    if not (least.isdigit() and most.isdigit() and 1 <= int(least) <= int(most)):
        raise argparse.ArgumentTypeError(f"{text!r} is not LEAST:MOST, such as 1:4")
    return int(least), int(most)


def supervise(program: str, options: Options) -> int:
    """Run a program's cloud side until it ends or is told to."""
    from catchment.cloud.supervisor import SparkDiedError, Supervisor
    from catchment.gateway.journal import say, write_to
    from catchment.plan.build import build

    write_to(sys.stderr)
    for noisy in ("py4j", "pyspark"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    told: set[int] = set()

    def tell(number: int, frame: Any) -> None:
        told.add(number)

    for number in (*STOP, DRAIN):
        signal.signal(number, tell)
    plan = build(load_program(program))
    try:
        Supervisor(plan, options, lambda: bool(told & set(STOP)), lambda: DRAIN in told).run()
    except SparkDiedError as gone:
        if told:
            return 0
        # A process whose JVM died cannot start another one. This one begins anew, as itself.
        say("spark_died", error=str(gone).partition("\n")[0])
        os.execv(sys.executable, [sys.executable, "-m", "catchment", *sys.argv[1:]])
    return 0
