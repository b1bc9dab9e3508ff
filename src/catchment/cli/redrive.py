"""`catchment redrive PROGRAM`: give the program again what is in its quarantine, once it can compute it."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("program", help="the program's name")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where programs keep everything")
    parser.add_argument("--step", help="only what failed at this step")
    parser.add_argument("--list", action="store_true", help="say what there is, and re-drive nothing")


def run(arguments: argparse.Namespace) -> int:
    """Print what was done; 1 if something cannot be re-driven."""
    from catchment.cloud import lease
    from catchment.cloud.redrive import failed, redrive
    from catchment.cloud.remembered import plan_of

    home = arguments.data / "programs" / arguments.program
    plan_of(arguments.data, arguments.program)
    if arguments.list:
        found = failed(arguments.data / "quarantine" / "programs" / arguments.program, home)
        for (step, reason), count in Counter((each.step, each.reason) for each in found).most_common():
            if arguments.step in (None, step):
                print(f"{count} at {step}: {reason}")
        return 0
    held = lease.take(home, arguments.program)
    try:
        done = redrive(arguments.data, arguments.program, step=arguments.step)
    finally:
        held.release()
    print(f"re-driven: {done.appended}; they are computed when the program runs")
    for (step, why), count in Counter((each.step, why) for each, why in done.left).most_common():
        print(f"not re-driven: {count} at {step}: {why}")
    return 1 if done.left else 0
