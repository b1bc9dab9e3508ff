"""What all sides of bench/edge_engine.py share: how fixes are made, written and read, and the digest of an answer.

Only the standard library, since it runs in the peers' environments too.
"""

from __future__ import annotations

import csv
import hashlib
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

Fix = tuple[str, int, float, float, float, float]
"""user, at, lat_deg, lon_deg, speed_mps, accuracy_m"""

ACCURACY_MAX_M = 20.0
KMH_PER_MPS = 3.6
SIZE_US, SLIDE_US = 60_000_000, 5_000_000
USERS = 100
BEGIN_US = 1_700_000_040_000_000


def fixes(count: int, seed: int = 7) -> Iterator[Fix]:
    """One fix per second and user, in order of time; a third of them is too inaccurate."""
    draw = random.Random(seed)
    users = [f"user-{number}" for number in range(USERS)]
    for number in range(count):
        second, user = divmod(number, USERS)
        at = BEGIN_US + second * 1_000_000 + user * 10_000
        # Quarters of a metre per second: times 3.6 these are whole tenths, so that all sides add the same numbers.
        speed_mps, accuracy_m = draw.randrange(120) / 4, draw.randrange(300) / 10
        yield users[user], at, 46.0 + second * 1e-6, -14.5 + user * 1e-6, speed_mps, accuracy_m


def write(path: Path, rows: Iterable[Fix]) -> None:
    """As a file that the peers read."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def read(path: Path) -> list[Fix]:
    """What was written."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            (user, int(at), float(lat), float(lon), float(speed), float(accuracy))
            for user, at, lat, lon, speed, accuracy in csv.reader(file)
        ]


def digest(rows: Iterable[tuple[str, int, float]]) -> list[object]:
    """How many (user, time, value) there are, and a checksum of them in order of time and user, to six decimals."""
    ordered = sorted(rows, key=lambda row: (row[1], row[0]))
    lines = "".join(f"{user},{at},{value:.6f};" for user, at, value in ordered)
    return [len(ordered), hashlib.sha256(lines.encode()).hexdigest()[:16]]
