"""Polars on the points of bench/cloud_keyed.py, all in memory at once and nothing kept: as a batch job."""

# Runs where its peer is installed and this project is not, next to trips.
# mypy: disable-error-code="import-not-found,import-untyped"
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import sys
import time

import polars as pl
from trips import GAP_US, M_PER_DEG, RADIAN, digest


def trips(path: str) -> list[tuple[str, int, int, int, int, int]]:
    """Every trip that another fix of the user ends."""
    before = pl.col("at", "lat_deg", "lon_deg").shift(1).over("user").name.prefix("before_")
    square = (pl.col("before_lat_deg") * RADIAN) * (pl.col("before_lat_deg") * RADIAN)
    cosine = 1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0)))
    north = (pl.col("lat_deg") - pl.col("before_lat_deg")) * M_PER_DEG
    east = (pl.col("lon_deg") - pl.col("before_lon_deg")) * M_PER_DEG * cosine
    step = ((north * north + east * east).sqrt() * 1000.0 + 0.5).floor().cast(pl.Int64)
    begins = (pl.col("at") - pl.col("before_at") >= GAP_US).fill_null(True)
    found = (
        pl.scan_parquet(path)
        .with_columns(before)
        .with_columns(begins=begins)
        .with_columns(
            step=pl.when("begins").then(0).otherwise(step),
            trip=pl.col("begins").cum_sum().over("user"),
            seen=pl.int_range(1, pl.len() + 1).over("user"),
        )
        .group_by("user", "trip")
        .agg(pl.col("at").max(), since=pl.col("at").min(), fixes=pl.len(), mm=pl.col("step").sum(), seen=pl.max("seen"))
        .filter(pl.col("trip") < pl.col("trip").max().over("user"))
        .select("user", "at", "since", "fixes", "mm", "seen")
        .collect()
    )
    rows: list[tuple[str, int, int, int, int, int]] = found.rows()
    return rows


if __name__ == "__main__":
    start = time.process_time()
    rows = trips(sys.argv[1])
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "answer": digest(rows)}))
