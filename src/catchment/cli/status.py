"""`catchment status`: what runs in a data directory, from the lock and from what each supervisor last said."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from catchment.errors import ProgramError

_SINCE = (("after the append", "appended_ms"), ("after the upload", "received_ms"))


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where programs keep everything")
    parser.add_argument("--json", action="store_true", help="one JSON object per program")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per program, then one per query; 1 if none of them runs."""
    homes = sorted(path.parent for path in (arguments.data / "programs").glob("*/status.json"))
    if not homes:
        raise ProgramError(
            "E038",
            f"no program was run in {arguments.data}",
            why="it has no programs/NAME/status.json",
            fix="run one with `catchment run PROGRAM.py --data ...`, or name its --data directory",
        )
    found = [truth(home) for home in homes]
    for status in found:
        if arguments.json:
            print(json.dumps(status))
            continue
        process = f"process {status['process']}" if status["state"] != "stopped" else "no process"
        print(f"{status['program']}: {status['state']} ({process}, generation {status['generation']})")
        for name, state in status["queries"].items():
            print(f"  {name}: {state}")
        for name, one in status.get("flow", {}).items():
            behind = f"{one['behind_bytes']} bytes behind" if one["behind_bytes"] else "level with the log"
            print(f"  {name}: {behind}; its last batch took {one['batch_bytes']} bytes and {one['batch_ms']} ms")
        for name, count in status["given"].items():
            print(f"  {name}: {count} results since its start{_age(status.get('latency', {}).get(name))}")
    return 0 if any(status["state"] == "running" for status in found) else 1


def _age(delay: dict[str, Any] | None) -> str:
    """How old what they came from was: from its append on a device, and from the gateway's taking it."""
    spreads = [(word, delay[name]) for word, name in _SINCE if delay is not None and delay[name] is not None]
    said = [f"{one['p50']} ms {word} ({one['p95']} ms at 95 %, {one['p99']} ms at 99 %)" for word, one in spreads]
    return f", {' and '.join(said)}" if said else ""


def truth(home: Path) -> dict[str, Any]:
    """What a supervisor said of itself, corrected by whether it holds the lease."""
    from catchment.cloud.lease import held

    status: dict[str, Any] = json.loads((home / "status.json").read_bytes())
    holder = held(home)
    if holder is None and status["state"] != "stopped":
        status["state"] = "died"
        status["queries"] = dict.fromkeys(status["queries"], "not running")
    return status
