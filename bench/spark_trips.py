"""Trips as a PySpark programmer writes them: points grouped by user, with Spark's own state for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.peers.trips import GAP_US, step_mm

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

TRIPS = "user string, at long, since long, fixes long, length_mm long, seen long"
STATE = "since long, last long, lat_deg double, lon_deg double, fixes long, length_mm long, seen long"


def by_pandas(flat: DataFrame) -> DataFrame:
    """`applyInPandasWithState`: a frame of a user's points at a time, worked on with numpy."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    return flat.groupBy("user").applyInPandasWithState(
        _with_pandas, TRIPS, STATE, "append", GroupStateTimeout.NoTimeout
    )


def _with_pandas(key: Any, frames: Iterator[pd.DataFrame], held: GroupState) -> Iterator[pd.DataFrame]:
    import pandas as pd

    state = list(held.get) if held.exists else [0, 0, 0.0, 0.0, 0, 0, 0]
    ended: list[tuple[Any, ...]] = []
    for frame in frames:
        at, lat, lon = (frame[name].to_numpy() for name in ("at", "lat_deg", "lon_deg"))
        ended += segment(state, at, lat, lon)
    held.update(tuple(state))
    if ended:
        yield pd.DataFrame(
            [(key[0], *trip) for trip in ended], columns=pd.Index(field.split()[0] for field in TRIPS.split(", "))
        )


def segment(state: list[Any], at: Any, lat: Any, lon: Any) -> list[tuple[Any, ...]]:
    """A user's points, in order, and the state before them, which becomes the one after: the trips that ended."""
    from bench.trips_kernel import steps_mm

    since, last, last_lat, last_lon, fixes, length, seen = state
    before_at = np.concatenate([[last if fixes else at[0] - GAP_US], at[:-1]])
    steps = steps_mm(np.append(last_lat, lat[:-1]), np.append(last_lon, lon[:-1]), lat, lon)
    begins = np.flatnonzero(at - before_at >= GAP_US)
    sums = np.cumsum(np.where(at - before_at >= GAP_US, 0, steps))
    ended = []
    done = 0
    for begin in begins.tolist():
        if fixes or begin:
            end_at = int(at[begin - 1]) if begin else last
            count = fixes + begin - done
            gained = int(sums[begin - 1]) - (int(sums[done - 1]) if done else 0) if begin else 0
            ended.append((end_at, since, count, length + gained, seen + begin))
        since, fixes, length, done = int(at[begin]), 0, 0, begin
    gained = int(sums[-1]) - (int(sums[done - 1]) if done else 0)
    state[:] = [
        since,
        int(at[-1]),
        float(lat[-1]),
        float(lon[-1]),
        fixes + len(at) - done,
        length + gained,
        seen + len(at),
    ]
    return ended


def by_rows(flat: DataFrame) -> DataFrame:
    """`transformWithState`: a user's points row by row."""
    return flat.groupBy("user").transformWithState(Trips(), TRIPS, "Append", "None")


def _processor() -> Any:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    return StatefulProcessor


class Trips(_processor()):  # type: ignore[misc]  # Spark is imported where this is
    """The same for each user."""

    def init(self, handle: Any) -> None:
        """Spark's call before any rows."""
        self._state = handle.getValueState("going", STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Spark's call with a user's points."""
        from pyspark.sql import Row

        saved = self._state.get()
        since, last, lat, lon, fixes, length, seen = saved or (0, 0, 0.0, 0.0, 0, 0, 0)
        for row in rows:
            at, next_lat, next_lon = row.at, row.lat_deg, row.lon_deg
            if fixes and at - last < GAP_US:
                length += step_mm(lat, lon, next_lat, next_lon)
                fixes += 1
            else:
                if fixes:
                    yield Row(user=key[0], at=last, since=since, fixes=fixes, length_mm=length, seen=seen)
                since, fixes, length = at, 1, 0
            last, lat, lon = at, next_lat, next_lon
            seen += 1
        self._state.update((since, last, lat, lon, fixes, length, seen))

    def close(self) -> None:
        """Spark's call at the end."""
