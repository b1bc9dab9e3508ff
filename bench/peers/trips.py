"""What all sides of bench/cloud_keyed.py share: the rule of a trip, a step's length in millimetres, and the digest.

The length uses +, -, *, / and the square root only, which give the same bits in Python, numpy and Rust. Only the
standard library, since it runs in the peers' environments too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from math import floor, sqrt

GAP_US = 300_000_000
M_PER_DEG = 111_194.92664455873
RADIAN = 0.017453292519943295

Trip = tuple[str, int, int, int, int, int]
"""user, end, start, fixes, length in mm, fixes of the user so far"""


def step_mm(lat: float, lon: float, next_lat: float, next_lon: float) -> int:
    """From one fix to the next, on a plane that touches the earth at the first."""
    angle = lat * RADIAN
    square = angle * angle
    cosine = 1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0)))
    north = (next_lat - lat) * M_PER_DEG
    east = (next_lon - lon) * M_PER_DEG * cosine
    return floor(sqrt(north * north + east * east) * 1000.0 + 0.5)


def digest(trips: Iterable[Trip]) -> list[object]:
    """How many there are, their fixes and length, and a checksum of them in order of user and time."""
    ordered = sorted(trips)
    lines = "".join(f"{','.join(map(str, trip))};" for trip in ordered)
    fixes, length = sum(trip[3] for trip in ordered), sum(trip[4] for trip in ordered)
    return [len(ordered), fixes, length, hashlib.sha256(lines.encode()).hexdigest()[:16]]
