"""`catchment log`: who reads a gateway's log, what that keeps of it, and an end to a reader that is gone."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from catchment.cloud.readers import Reading


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    readers = actions.add_parser("readers", help="say who reads the log, the one that keeps most of it first")
    readers.add_argument("--json", action="store_true", help="one JSON object per reader")
    drop = actions.add_parser("drop", help="let go of what a reader keeps that is no more")
    drop.add_argument("reader", help="its name, as `catchment log readers` shows it")
    for action in (readers, drop):
        action.add_argument("--data", type=Path, default=Path("catchment-data"), help="where the log is")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    from catchment.cloud.readers import drop, readings

    log = arguments.data / "log"
    if arguments.action == "readers":
        for reading in readings(log):
            print(msgspec.json.encode(reading).decode() if arguments.json else text(reading, now_s=time.time()))
        return 0
    gone = drop(log, arguments.reader)
    print(f"{gone.reader} is dropped; it kept {gone.held_bytes} bytes")
    left = readings(log)
    for partition in sorted(set(gone.confirmed).difference(*(one.confirmed for one in left))):
        print(f"  partition {partition} has no other reader: it is kept whole until one confirms")
    return 0


def text(reading: Reading, *, now_s: float) -> str:
    """What a person is told of a reader."""
    lines = [f"{reading.reader}: keeps {reading.held_bytes} bytes"]
    if not reading.confirmed:
        return f"{lines[0]}: no reader has confirmed anything there"
    owner = reading.owner
    if owner is None:
        lines.append("  no program of Catchment's: whether it still reads, only its keeper knows")
    elif reading.running:
        lines.append(f"  process {owner.process} runs it: {owner.program} in {owner.data}")
    else:
        lines.append(f"  nobody runs it; last: {owner.program} in {owner.data}")
    if reading.confirmed_s is not None:
        at = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(reading.confirmed_s))
        lines.append(f"  last confirmed at {at}, {max(0.0, now_s - reading.confirmed_s):.0f} s ago")
    lines.append("  confirmed: " + ", ".join(f"{n}: {offset}" for n, offset in sorted(reading.confirmed.items())))
    return "\n".join(lines)
