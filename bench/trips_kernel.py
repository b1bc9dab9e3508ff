"""A step's length over columns: the bits of `peers.trips.step_mm`, with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.trips import M_PER_DEG, RADIAN


def steps_mm(lat: Any, lon: Any, next_lat: Any, next_lon: Any) -> Any:
    """From each fix to the next."""
    angle = lat * RADIAN
    square = angle * angle
    cosine = 1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0)))
    north = (next_lat - lat) * M_PER_DEG
    east = (next_lon - lon) * M_PER_DEG * cosine
    return np.floor(np.sqrt(north * north + east * east) * 1000.0 + 0.5).astype(np.int64)
