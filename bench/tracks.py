"""Real GPS tracks for benchmarks: GeoLife where its sample lies beside the project, else the tracks that ship with it.

GeoLife's licence is non-commercial, so it is read from `../shared/data` and never copied. Both are given as one track
per person or file: points in the order in which a device would have recorded them, times in µs, degrees at 1e-6.
"""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "examples" / "data" / "gpx"
GEOLIFE = Path("shared") / "data" / "gps" / "geolife_sample_2users.txt.gz"
DIGITS = 6


class Point(NamedTuple):
    """Where somebody was, and when."""

    at_us: int
    lat_deg: float
    lon_deg: float


class Tracks(NamedTuple):
    """All tracks, and what to call them."""

    source: str
    tracks: list[list[Point]]

    @property
    def points(self) -> int:
        """How many there are."""
        return sum(map(len, self.tracks))


@lru_cache(maxsize=1)
def load(points_max: int | None = None) -> Tracks:
    """The tracks; with `points_max`, at most so many points of each."""
    found = next((place / GEOLIFE for place in ROOT.parents if (place / GEOLIFE).is_file()), None)
    source, tracks = (
        ("the GPX tracks of examples/data", _gpx()) if found is None else ("GeoLife", _geolife(found, points_max))
    )
    return Tracks(source, [track[:points_max] for track in tracks])


def _geolife(path: Path, points_max: int | None) -> list[list[Point]]:
    tracks: dict[str, list[Point]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            track = tracks.setdefault(row["uid"], [])
            if points_max is None or len(track) < points_max:
                at = datetime.fromisoformat(row["datetime"]).replace(tzinfo=UTC)
                track.append(_point(at, row["lat"], row["lng"]))
    return list(tracks.values())


def _gpx() -> list[list[Point]]:
    tracks = []
    for path in sorted(SHIPPED.glob("*.gpx")):
        track = []
        for point in ElementTree.parse(path).iterfind(".//{*}trkpt"):
            at = point.findtext("{*}time")
            if at is not None:
                track.append(_point(datetime.fromisoformat(at), point.attrib["lat"], point.attrib["lon"]))
        tracks.append(track)
    return tracks


def _point(at: datetime, lat: str, lon: str) -> Point:
    return Point(round(at.timestamp() * 1e6), round(float(lat), DIGITS), round(float(lon), DIGITS))
