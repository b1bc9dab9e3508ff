"""What tests of the report share: its programs, and days of generated life as histories.

The programs are loaded as `catchment run` loads them, from their file, with its folder on the path.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from catchment.program.program import Program
from catchment.program.site import DEVICE, Site
from catchment.program_file import load_program
from catchment.testing import History

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "peir"
TRACKS = ROOT / "examples" / "data" / "gpx"


def module(name: str) -> Any:
    """A module of the example."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return __import__(name)


@cache
def report(inference: Site = DEVICE) -> Program:
    """The program with the inference at that site."""
    load_program(str(FOLDER / "program.py"))
    # Another example may have a program.py too.
    placed = sys.modules.pop("program").placed
    program: Program = placed(inference)
    return program


def day(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The readings of a phone's sensors, by name."""
    return {path.stem: list(_rows(path)) for path in sorted(folder.glob("*.csv"))}


def history(program: Program, days: Iterable[tuple[str, dict[str, list[dict[str, Any]]]]]) -> History:
    """Fixes and shakes of people, in order of time; then everybody has nothing more to say."""
    events = [
        (reading["at"], user, to, reading)
        for user, readings in days
        for name, to in (("accelerometer", "shakes"), ("gps", "fixes"))
        for reading in readings.get(name, [])
    ]
    told = History(program)
    for _, user, to, reading in sorted(events, key=lambda event: event[:3]):
        told.send({"user": user, **reading}, to=f"{to}/sensor", device=f"{user}-phone")
    return told.end()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        for row in csv.DictReader(file):
            yield {name: _value(name, text) for name, text in row.items()}


def _value(name: str, text: str) -> Any:
    if name == "at":
        return int(text)
    if name in ("cell", "mode"):
        return text
    return text == "true" if name == "charging" else float(text)
