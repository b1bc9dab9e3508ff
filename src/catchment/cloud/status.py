"""What a supervisor says of itself, and what is true of it: the lock knows whether it lives, its file what it does.

`programs/NAME/status.json` is written several times a second, whole or not at all. `truth` corrects it by who holds the
lease, for how long that one has said nothing, and who waits to take over. Knows files; starts nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from catchment.cloud.flow import Standing
from catchment.cloud.latency import Delay, Spread
from catchment.cloud.lease import held, silence, standbys
from catchment.cloud.publication import SinkStanding

SILENT_S = 10.0
"""Who says nothing for so long is not said to run."""


class Status(msgspec.Struct):
    """What a supervisor says of itself, in status.json.

    `state` is starting, running, draining (the gateway has ended, and what is logged is still computed), stopping or
    stopped; `truth` adds died (nobody holds the lease) and silent (its holder lives and says nothing).
    """

    program: str
    plan: str
    generation: int
    process: int
    state: str
    queries: dict[str, str]
    given: dict[str, int]
    restarts: int = 0
    latency: dict[str, Delay] = msgspec.field(default_factory=dict)
    newest: dict[str, Spread] = msgspec.field(default_factory=dict)
    """Of the latest batch of each output: `latency` is of some minutes."""
    flow: dict[str, Standing] = msgspec.field(default_factory=dict)
    sinks: dict[str, SinkStanding] = msgspec.field(default_factory=dict)
    standbys: list[int] = msgspec.field(default_factory=list)
    silent_s: float = 0.0


def write(home: Path, status: Status) -> None:
    """Say it."""
    fresh = home / "status.tmp"
    with contextlib.suppress(OSError):  # a full disk must not stop what still runs
        fresh.write_bytes(msgspec.json.encode(status))
        fresh.replace(home / "status.json")


def truth(home: Path) -> Status:
    """What the supervisor of a program said of itself, corrected by the lock."""
    path = home / "status.json"
    status = msgspec.json.decode(path.read_bytes(), type=Status)
    status.standbys = standbys(home)
    holder = held(home)
    if holder is None:
        if status.state != "stopped":
            status.state = "died"
            status.queries = dict.fromkeys(status.queries, "not running")
        return status
    if holder != status.process:
        # It has just taken over, and what is in the file is its predecessor's.
        status.state, status.process = "starting", holder
        status.queries = dict.fromkeys(status.queries, "starting")
    elif (silent_s := silence(home)) > SILENT_S:
        status.state, status.silent_s = "silent", round(silent_s, 1)
    return status


def homes(data: Path) -> list[Path]:
    """Where each program of a data directory keeps what it says."""
    return sorted(path.parent for path in (data / "programs").glob("*/status.json"))
