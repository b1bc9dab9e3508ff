"""The `catchment` command: one subcommand per file of this package.

`main` imports only the subcommand that was asked for, so that a device's command starts fast. A subcommand is
a module with `configure(parser)`, which declares its arguments, and `run(arguments)`, which returns the exit
code. To add one: write the module, and add its line to `COMMANDS`.

Exit codes: 0 it did what was asked; 1 it answers "no"; 2 it could not do it, and the reason and the fix are on
standard error; 130 it was interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from catchment.errors import CatchmentError

# Name and summary. The summary is here and not in the module so that `--help` imports none of them.
COMMANDS: dict[str, str] = {
    "demo": "show it all at work: gateway, Spark, sixty simulated devices, and a page to watch them on",
    "run": "run a program: gateway, Spark and queries as one thing",
    "status": "say what runs in a data directory",
    "stop": "end what runs in a data directory, cleanly",
    "forget": "delete what is kept of a device or a user",
    "table": "show what a program keeps as Parquet files",
    "backfill": "compute a program from a log that is there, beside what runs on it",
    "redrive": "give a program again what is in its quarantine, once it can compute it",
    "log": "say who reads a gateway's log and what that keeps of it, and drop a reader that is no more",
    "state": "say what a program remembers of a key",
    "doctor": "say what this machine has for Catchment, what is missing, and how to get it",
    "explain": "say how a program becomes its plan: its graph, each rewrite, its parts, and why",
    "device": "run a program's device part on this machine, and ask a running one",
    "gateway": "run the service that devices talk to, and look after its devices",
}

_COULD_NOT, _INTERRUPTED = 2, 130


class Command(Protocol):
    """What a module of this package offers."""

    @staticmethod
    def configure(parser: argparse.ArgumentParser) -> None: ...

    @staticmethod
    def run(arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(words)
        sys.stdout.flush()
    except CatchmentError as error:
        print(error, file=sys.stderr)
        return _COULD_NOT
    except KeyboardInterrupt:
        # The cursor stands behind the terminal's ^C.
        print(file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # `catchment doctor | head -1`: the reader has what it wanted. Python flushes again at exit, to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _run(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="catchment",
        description="One stream program across a fleet: on the devices, around them, and in the cloud on Apache Spark.",
        epilog="`catchment COMMAND --help` says more about one of them.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    chosen: Command | None = None
    for name, summary in COMMANDS.items():
        its_parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if words[:1] == [name]:
            chosen = cast(Command, importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))
            chosen.configure(its_parser)
    arguments = parser.parse_args(words)
    if arguments.version:
        print(f"catchment {_version()} (Python {sys.version.split()[0]})")
        return 0
    if chosen is None:
        parser.print_help()
        return 0
    return chosen.run(arguments)


def _version() -> str:
    # Imported here: reading an installed package's metadata costs more than everything else in this module.
    from importlib.metadata import version

    return version("catchment")
