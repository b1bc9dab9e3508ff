"""`catchment forget DEVICE` or `--user USER`: delete what is kept of it, wherever that is, and let it in no more."""

from __future__ import annotations

import argparse
from pathlib import Path

from catchment.errors import ProgramError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("device", nargs="?", help="the device's name; the last one of a user takes the user along")
    parser.add_argument("--user", help="a user, with all devices")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where everything is kept")
    parser.add_argument("--wait", type=float, default=180.0, metavar="S", help="for a running gateway (default: 180)")


def run(arguments: argparse.Namespace) -> int:
    """Say what was deleted; 1 if the log is not done: results may then still come, so it is to be asked again."""
    from catchment.cloud.forgetting import forget, whom

    if (arguments.device is None) == (arguments.user is None):
        raise ProgramError(
            "E051",
            "it is not said who is to be forgotten",
            why="one device, or one user with all devices, is forgotten at a time",
            fix="catchment forget DEVICE, or catchment forget --user USER",
        )
    if not (arguments.data / "enrolment.db").exists():
        raise ProgramError(
            "E052",
            f"there is nothing kept in {arguments.data}",
            why="the directory has no enrolment.db",
            fix="name the directory that the program runs with: --data DIR",
        )
    who = whom(arguments.data, device=arguments.device, user=arguments.user)
    done = forget(arguments.data, who, wait_s=arguments.wait)
    names = ", ".join(sorted(who.devices)) or "no device"
    print(f"forgotten: {names}{''.join(f' of {user}' for user in who.users)}")
    print(f"  credentials: {done.devices} deleted")
    for number in done.partitions:
        print(f"  log, partition {number}: written anew")
    for number in done.left:
        print(f"  log, partition {number}: not done: it goes on by itself while the program runs; then ask again")
    for sink, rows in done.tables.items():
        print(f"  {sink}: {rows} rows deleted")
    print(f"  waiting for sinks: {done.results} results deleted; quarantine: {done.lines} lines deleted")
    return 1 if done.left else 0
