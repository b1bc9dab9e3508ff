"""`catchment stop`: end what runs in a data directory, at the end of a batch, and wait until it has ended."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from pathlib import Path

from catchment.cli.run import DRAIN
from catchment.errors import ProgramError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("program", nargs="?", help="the program's name; all of them, if not told")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where programs keep everything")
    parser.add_argument(
        "--drain", action="store_true", help="take in nothing more, and first compute all that is logged"
    )
    parser.add_argument("--within", type=float, default=60.0, metavar="S", help="give up after so long (default: 60)")


def run(arguments: argparse.Namespace) -> int:
    """Ask each supervisor to end, and before it those that would take over; 0 once all have."""
    from catchment.cloud.lease import held, standbys

    homes = [path.parent for path in (arguments.data / "programs").glob("*/lease")]
    running = {home for home in homes if held(home) is not None or standbys(home)}
    chosen = {home for home in running if arguments.program in (None, home.name)}
    if not chosen:
        raise ProgramError(
            "E039",
            f"{arguments.program or 'a program'} is not running in {arguments.data}",
            why=f"running there: {', '.join(sorted(home.name for home in running)) or 'no program'}",
            fix="name another program or --data directory; `catchment status` lists them",
        )
    until = time.monotonic() + arguments.within
    waiting = [process for home in chosen for process in standbys(home)]
    _tell(waiting, signal.SIGTERM)
    while time.monotonic() < until and any(standbys(home) for home in chosen):
        time.sleep(0.05)
    _tell(
        [holder for home in chosen if (holder := held(home)) is not None], DRAIN if arguments.drain else signal.SIGTERM
    )
    while time.monotonic() < until:
        if all(held(home) is None for home in chosen):
            print(f"stopped: {', '.join(sorted(home.name for home in chosen))}")
            return 0
        time.sleep(0.1)
    still = [f"{home.name} (process {holder})" for home in chosen if (holder := held(home)) is not None]
    print(f"still running: {', '.join(sorted(still))}")
    return 1


def _tell(processes: list[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
