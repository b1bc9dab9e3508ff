"""Bytewax on the points of bench/cloud_keyed.py: a stateful map per user on one worker, with recovery to SQLite.

`next_batch` gives each batch as its items, as Bytewax wants it; the batches are those of the Parquet file.
"""

# Runs where its peer is installed and this project is not, next to trips.
# mypy: disable-error-code="import-not-found,import-untyped,misc"
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import bytewax.operators as op
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import TestingSink, cluster_main
from trips import GAP_US, Trip, digest, step_mm

BATCH = 10_000
EPOCH = timedelta(seconds=1)

Point = tuple[int, float, float]
State = tuple[int, int, float, float, int, int, int]


def going(state: State | None, point: Point) -> tuple[State, list[tuple[int, int, int, int, int]]]:
    """One more point of a user."""
    since, last, lat, lon, fixes, length, seen = state or (0, 0, 0.0, 0.0, 0, 0, 0)
    at, next_lat, next_lon = point
    ended = []
    if fixes and at - last < GAP_US:
        length += step_mm(lat, lon, next_lat, next_lon)
        fixes += 1
    else:
        if fixes:
            ended.append((last, since, fixes, length, seen))
        since, fixes, length = at, 1, 0
    return (since, at, next_lat, next_lon, fixes, length, seen + 1), ended


class Points(StatefulSourcePartition[tuple[str, Point], int]):
    """The file, in batches; which is next is what recovery remembers."""

    def __init__(self, path: str, done: int) -> None:
        self._batches = islice(pq.ParquetFile(path).iter_batches(BATCH), done, None)
        self._done = done

    def next_batch(self) -> list[tuple[str, Point]]:
        batch = next(self._batches, None)
        if batch is None:
            raise StopIteration
        self._done += 1
        user, at, lat, lon = (column.to_pylist() for column in batch.columns)
        return list(zip(user, zip(at, lat, lon, strict=True), strict=True))

    def snapshot(self) -> int:
        return self._done


class File(FixedPartitionedSource[tuple[str, Point], int]):
    """One partition."""

    def __init__(self, path: str) -> None:
        self._path = path

    def list_parts(self) -> list[str]:
        return ["all"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Points:
        return Points(self._path, resume_state or 0)


def flow(path: str, found: list[Any]) -> Dataflow:
    """The dataflow."""
    made = Dataflow("trips")
    stream = op.input("points", made, File(path))
    ended = op.stateful_flat_map("trips", stream, going)
    op.output("out", ended, TestingSink(found))
    return made


if __name__ == "__main__":
    out: list[Any] = []
    with tempfile.TemporaryDirectory() as home:
        init_db_dir(Path(home), 1)
        dataflow = flow(sys.argv[1], out)
        start = time.process_time()
        cluster_main(dataflow, [], 0, epoch_interval=EPOCH, recovery_config=RecoveryConfig(home))
        seconds = time.process_time() - start
    ended_trips: list[Trip] = [(name, *trip) for name, trip in out]
    print(json.dumps({"seconds": seconds, "answer": digest(ended_trips)}))
