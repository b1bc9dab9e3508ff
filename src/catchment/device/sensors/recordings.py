"""Recordings: files of readings, read one by one from any position that was reached before.

    .csv        a header and rows (.tsv with tabs)
    .jsonl      one JSON object per line (.ndjson too)
    .gpx        track points: lat_deg, lon_deg, elevation_m, time, and what else a point holds

Promises: `next` gives what is there and moves `position` behind it; a record that cannot be read is a `Torn` in its
place, and the next one follows. Knows files. Must not know schemas or the time.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from xml.etree import ElementTree

import msgspec

from catchment.device.sensors.sensor import Values
from catchment.errors import ProgramError


class Torn(NamedTuple):
    """A record that cannot be read, and why."""

    why: str


class Recording(Protocol):
    """An open recording."""

    @property
    def position(self) -> int:
        """Where the next record starts, in a unit of its own."""
        ...

    def next(self) -> Values | Torn | None:
        """The next record; None at the end."""
        ...


def open_recording(path: Path, position: int = 0) -> Recording:
    """The recording in that file, from a position that it had before."""
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise ProgramError(
            "D620",
            f"{path.name} is no recording that can be played",
            why=f"recordings are {', '.join(_KINDS)} files",
            fix="convert it, or write a sensor of your own: --sensor NAME=python:module:factory",
        )
    try:
        return kind(path, position)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise ProgramError(
            "D621",
            f"{path.name} cannot be played",
            why=str(error),
            fix="give a file that is there, may be read, and begins as its kind does",
        ) from None


class _Lines:
    """A file of text by lines that knows how many bytes were read."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.position = 0

    def go_to(self, position: int) -> None:
        self._file.seek(position)
        self.position = position

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline()
        if not line:
            raise StopIteration
        start, self.position = self.position, self.position + len(line)
        return line.decode("utf-8-sig" if start == 0 else "utf-8")


class Table:
    """Comma- or tab-separated values under a header."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._lines = _Lines(path)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        # A quoted cell may hold line breaks: the reader takes as many lines as a record has, and no more.
        self._rows = csv.reader(self._lines, delimiter=delimiter, strict=True)
        header = next(self._rows, None)
        if header is None:
            raise ValueError("it is empty: a table begins with the names of its columns")
        self._names = [name.strip() for name in header]
        if position:
            self._lines.go_to(position)

    @property
    def position(self) -> int:
        """The byte after the last record."""
        return self._lines.position

    def next(self) -> Values | Torn | None:
        """The next row by column."""
        while True:
            try:
                cells = next(self._rows, None)
            except (csv.Error, UnicodeDecodeError) as error:
                return Torn(str(error))
            if cells is None:
                return None
            if not cells:
                continue
            if len(cells) != len(self._names):
                return Torn(f"it has {len(cells)} cells under {len(self._names)} columns")
            return dict(zip(self._names, cells, strict=True))


class Objects:
    """One JSON object per line."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._lines = _Lines(path)
        self._decode: Callable[[str], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode
        self._lines.go_to(position)

    @property
    def position(self) -> int:
        """The byte after the last record."""
        return self._lines.position

    def next(self) -> Values | Torn | None:
        """The next object."""
        while True:
            try:
                line = next(self._lines, None)
                if line is None:
                    return None
                if line.strip():
                    return self._decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                return Torn(str(error))


_POINT_NAMES = {"ele": "elevation_m", "speed": "speed_mps", "course": "course_deg"}


class Track:
    """The points of a GPX file, in their order; the position counts them."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self.position = 0
        events = ElementTree.iterparse(path, events=("start", "end"))
        _, self._root = next(events)
        self._events: Iterator[tuple[str, ElementTree.Element]] = events
        if _bare(self._root.tag) != "gpx":
            raise ValueError(f"it is an XML file of <{_bare(self._root.tag)}>, not of <gpx>")
        while self.position < position and self.next() is not None:
            pass

    def next(self) -> Values | Torn | None:
        """The next point."""
        try:
            for event, element in self._events:
                if event == "end" and _bare(element.tag) == "trkpt":
                    self.position += 1
                    values = _point(element)
                    # What was read need not be kept: tracks may be long.
                    self._root.clear()
                    return values
        except ElementTree.ParseError as error:
            # There is no telling where the next point would begin.
            self._events = iter(())
            self.position += 1
            return Torn(str(error))
        return None


def _point(element: ElementTree.Element) -> Values:
    values: dict[str, str] = {"lat_deg": element.get("lat", ""), "lon_deg": element.get("lon", "")}
    for child in element.iter():
        name = _bare(child.tag)
        if child is not element and child.text and child.text.strip():
            values.setdefault(_POINT_NAMES.get(name, name), child.text.strip())
    return values


def _bare(tag: str) -> str:
    return tag.rpartition("}")[2]


_KINDS: dict[str, Callable[[Path, int], Recording]] = {
    ".csv": Table,
    ".tsv": Table,
    ".jsonl": Objects,
    ".ndjson": Objects,
    ".gpx": Track,
}
