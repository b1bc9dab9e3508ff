"""`catchment status`: what runs in a data directory, from the lock and from what each supervisor last said."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from catchment.errors import ProgramError

if TYPE_CHECKING:
    from catchment.cloud.latency import Delay
    from catchment.cloud.status import Status


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where programs keep everything")
    parser.add_argument("--json", action="store_true", help="one JSON object per program")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per program, then one per query; 1 if none of them runs."""
    from catchment.cloud.status import homes, truth

    programs = homes(arguments.data)
    if not programs:
        raise ProgramError(
            "E038",
            f"no program was run in {arguments.data}",
            why="it has no programs/NAME/status.json",
            fix="run one with `catchment run PROGRAM.py --data ...`, or name its --data directory",
        )
    found = [truth(home) for home in programs]
    for status in found:
        print(msgspec.json.encode(status).decode() if arguments.json else text(status))
    return 0 if any(status.state in ("running", "draining") for status in found) else 1


def text(status: Status) -> str:
    """What a person is told of a program."""
    process = "no process" if status.state in ("stopped", "died") else f"process {status.process}"
    silent = f" for {status.silent_s:.0f} s" if status.state == "silent" else ""
    lines = [f"{status.program}: {status.state}{silent} ({process}, generation {status.generation})"]
    lines += [f"  process {process} stands by, to take over" for process in status.standbys]
    lines += [f"  {name}: {state}" for name, state in status.queries.items()]
    for name, one in status.flow.items():
        behind = f"{one.behind_bytes} bytes behind" if one.behind_bytes else "level with the log"
        lines.append(f"  {name}: {behind}; its last batch took {one.batch_bytes} bytes and {one.batch_ms} ms")
    for name, count in status.given.items():
        lines.append(f"  {name}: {count} results since its start{_age(status.latency.get(name))}")
    for name, sink in status.sinks.items():
        trouble = f"; in trouble: {sink.trouble}" if sink.trouble else ""
        lines.append(f"  {name}: {sink.results} results kept, {sink.waiting} portions waiting{trouble}")
    return "\n".join(lines)


def _age(delay: Delay | None) -> str:
    """How old what they came from was: from its append on a device, and from the gateway's taking it."""
    if delay is None:
        return ""
    spreads = [("after the append", delay.appended_ms), ("after the upload", delay.received_ms)]
    said = [
        f"{one.p50} ms {word} ({one.p95} ms at 95 %, {one.p99} ms at 99 %)" for word, one in spreads if one is not None
    ]
    return f", {' and '.join(said)}" if said else ""
