"""Train the speed table of the mode model on labelled GeoLife tracks, and say how good it is.

    python examples/peir/train_modes.py [--out table.json]

GeoLife (Zheng et al., Microsoft Research Asia) is licensed for non-commercial use only: nothing of it is in this
repository, and what this script learns stays where you write it. The program ships with `modes.published()` instead:
docs/decisions/0120. The tracks are looked for as `shared/data/gps/geolife_modes_labelled.tar.gz` beside this repository
or one of the folders above it.

A labelled segment is a run of one user's fixes under one label. Labels other than walk, bike and motorised ones are
left out. Fixes are thinned as on the phone: at least `EVERY_S` apart and 10 m from the one before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import catchment as cm
from catchment.program.process import Context
from modes import GAIT, MODES, SPEED_EDGES_MPS, TransportMode, metres_between, published, smoothed
from readings import Evidence

ARCHIVE = Path("shared", "data", "gps", "geolife_modes_labelled.tar.gz")
EVERY_S = 5
MOVED_M = 10.0
LABELS = {"walk": "walk", "bike": "bike", "bus": "motor", "car": "motor", "taxi": "motor", "train": "motor"}
PRIOR_WEIGHT = 20.0
"""So many fixes is a published row worth: a band that never occurred in a few tracks is not impossible."""


class Fix(NamedTuple):
    """A place at a time."""

    at_us: int
    lat_deg: float
    lon_deg: float


class Segment(NamedTuple):
    """A run of fixes under one label."""

    name: str
    mode: str
    fixes: tuple[Fix, ...]


def archive() -> Path | None:
    """Where the tracks are, if they are."""
    for folder in Path(__file__).resolve().parents:
        if (folder / ARCHIVE).is_file():
            return folder / ARCHIVE
    return None


def segments(path: Path) -> list[Segment]:
    """The labelled segments, thinned; those with fewer than two steps say nothing."""
    tracks: dict[str, list[Fix]] = {}
    labels: dict[str, list[tuple[int, int, str]]] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            user, lines = member.name.split("/")[0], file.read().decode().splitlines()
            if member.name.endswith("labels.txt"):
                labels[user] = [_label(line) for line in lines[1:] if line.strip()]
            elif member.name.endswith(".plt"):
                tracks.setdefault(user, []).extend(_fix(line) for line in lines[6:])
    found = []
    for user, spans in sorted(labels.items()):
        fixes = sorted(set(tracks.get(user, [])))
        for start_us, end_us, label in spans:
            inside = tuple(thinned(fix for fix in fixes if start_us <= fix.at_us <= end_us))
            if label in LABELS and len(inside) > 2:
                found.append(Segment(f"{user} {label} {_clock(start_us)}", LABELS[label], inside))
    return found


def thinned(fixes: Iterable[Fix]) -> Iterator[Fix]:
    """As the phone's sampling and its filter of moves leave them."""
    last: Fix | None = None
    read_us: int | None = None
    for fix in fixes:
        if read_us is not None and fix.at_us - read_us < EVERY_S * 1_000_000:
            continue
        read_us = fix.at_us
        if last is None or metres_between(last.lat_deg, last.lon_deg, fix.lat_deg, fix.lon_deg) > MOVED_M:
            last = fix
            yield fix


def speeds_of(segment: Segment) -> Iterator[float]:
    """From each fix to the next, in m/s."""
    for before, fix in zip(segment.fixes, segment.fixes[1:], strict=False):
        far_m = metres_between(before.lat_deg, before.lon_deg, fix.lat_deg, fix.lon_deg)
        yield far_m / ((fix.at_us - before.at_us) / 1e6)


def trained(known: Iterable[Segment]) -> list[list[float]]:
    """The speed table of labelled segments; each segment counts alike, and the published table is the prior."""
    rows = [[PRIOR_WEIGHT * part for part in row] for row in published()]
    segments_of: dict[str, list[Segment]] = {}
    for segment in known:
        segments_of.setdefault(segment.mode, []).append(segment)
    for mode, several in segments_of.items():
        for segment in several:
            bands = [bisect_right(SPEED_EDGES_MPS, speed) for speed in speeds_of(segment)]
            for band in bands:
                # The longest track would otherwise decide alone.
                rows[MODES.index(mode)][band] += 100.0 / len(several) / len(bands)
    return [smoothed([part / sum(row) for part in row]) for row in rows]


def inferred(segment: Segment, speeds: Sequence[Sequence[float]]) -> list[str]:
    """The mode of each fix but the first, by the very process that the program runs."""
    process = TransportMode(speeds=[list(row) for row in speeds], gaits=[list(row) for row in GAIT])
    state = process.state_type()
    found = []
    for fix in segment.fixes:
        at = cm.Instant(fix.at_us)
        element = Evidence(user="u", at=at, lat_deg=fix.lat_deg, lon_deg=fix.lon_deg, gait_g=None)
        for waypoint in process.on_element(element, state, Context(("u",), at, None)):  # type: ignore[arg-type]
            found.append(waypoint.mode)
    return found[1:]


def main() -> int:
    """Train on all labelled segments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where to write the table, as JSON; not into this repository")
    arguments = parser.parse_args()
    path = archive()
    if path is None:
        print(f"no labelled tracks here: {ARCHIVE} is in none of the folders above this one", file=sys.stderr)
        return 1
    known = segments(path)
    table = trained(known)
    bands = ["0", *map(str, SPEED_EDGES_MPS)]
    print(f"{len(known)} labelled segments; share of fixes by speed, from so many m/s on")
    print(f"{'mode':6}" + "".join(f"{band:>7}" for band in bands))
    for mode, row in zip(MODES, table, strict=True):
        print(f"{mode:6}" + "".join(f"{part:7.3f}" for part in row))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(table))
    return 0


def _fix(line: str) -> Fix:
    lat, lon, _, _, _, date, time = line.split(",")
    return Fix(_us(f"{date} {time}", "%Y-%m-%d %H:%M:%S"), float(lat), float(lon))


def _label(line: str) -> tuple[int, int, str]:
    start, end, label = line.split("\t")
    return _us(start, "%Y/%m/%d %H:%M:%S"), _us(end, "%Y/%m/%d %H:%M:%S"), label.strip()


def _us(text: str, form: str) -> int:
    return round(datetime.strptime(text.strip(), form).replace(tzinfo=UTC).timestamp()) * 1_000_000


def _clock(at_us: int) -> str:
    return cm.iso(cm.Instant(at_us))[:16]


if __name__ == "__main__":
    sys.exit(main())
