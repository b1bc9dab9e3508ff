"""`catchment backfill PROGRAM.py --into DIR`: compute a program from a log that is there, beside what runs on it."""

from __future__ import annotations

import argparse
from pathlib import Path

from catchment.errors import ProgramError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("program", help="the program's file, or FILE.py:name")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where the log is")
    parser.add_argument("--into", type=Path, required=True, help="where state and results go: another directory")
    parser.add_argument(
        "--from",
        dest="start",
        default="earliest",
        metavar="OFFSET",
        help="where in the log to begin (default: earliest)",
    )
    parser.add_argument("--master", default="local[*]", help="Spark's master; local[*] needs nothing else")
    parser.add_argument("--quick", action="store_true", help="compile less: for trials and tests that live for minutes")


def run(arguments: argparse.Namespace) -> int:
    """Compute until the log is caught up with; the next time goes on from there."""
    from catchment.cli.run import supervise
    from catchment.cloud.supervisor import Options

    data, into = arguments.data.resolve(), arguments.into.resolve()
    if into == data or not (data / "log" / "log.json").exists():
        raise ProgramError(
            "E134",
            f"{arguments.data} cannot be backfilled into {arguments.into}",
            why="results go beside those that are there" if into == data else f"there is no log in {arguments.data}",
            fix="name the directory of the program that runs with --data, and another one with --into",
        )
    if arguments.start not in ("earliest", "latest") and not arguments.start.isdigit():
        raise ProgramError(
            "E135",
            f"{arguments.start!r} is no position in the log",
            why="a position is an offset, or one of the words earliest and latest",
            fix="leave --from out to begin with the earliest, or give a number such as --from 4096",
        )
    options = Options(
        into, master=arguments.master, quick=arguments.quick, log=data / "log", start=arguments.start, trigger_ms=0
    )
    return supervise(arguments.program, options)
