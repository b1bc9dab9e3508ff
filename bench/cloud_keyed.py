"""Keyed state in the cloud: trips by a gap of five minutes, their length, and a count per user, of real GPS points.

Four million points of four thousand users lie in a gateway's log, in uploads of 100 points. Sides, each run to the end
of the log in turn, round after round:

    catchment                 the program of bench/trips_program.py, as the cloud runs it
    applyInPandasWithState    hand-written PySpark: state per user, numpy on each user's points
    transformWithState        hand-written PySpark: state per user, row by row
    Bytewax                   a stateful map on one worker, with recovery
    plain loop                a Python loop over the log, decoded as ours is, state in a dict
    Polars                    one batch in memory, no state: the ceiling

All give the same trips, lengths in whole millimetres, held against each other by their digest. The two written for
Spark read the same log in the same session with the same settings; Bytewax and Polars read the same points as Parquet.
Seconds are the processor's, of all processes: for Spark its JVM and the Python workers too, from the end of the first
batch on (a query starts once, and then runs for months), as if all batches were like those. Quick: a million points of
1,000 users.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import catchment as cm
from bench import fleet_log, harness
from bench.harness import Bar, Side
from bench.peer import Peer
from bench.peers.trips import GAP_US, Trip, digest, step_mm
from bench.spark_sides import bytes_in, decoded, program, side, written
from bench.trips_program import Fix, fleet
from bench.trips_program import Trip as TripRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BYTEWAX = Peer("bytewax-recovery", ("bytewax==0.21.1", "pyarrow==26.0.1"), "peers/keyed_bytewax.py")
POLARS = Peer("polars", ("polars==1.31.0",), "peers/keyed_polars.py")
BATCHES = 5
COLUMNS = ("user", "at", "since", "fixes", "length_mm", "seen")


def trips_in(home: Path) -> list[object]:
    """The digest of the trips that a side wrote."""
    rows: list[Trip] = []
    for path in home.glob("*.parquet"):
        table = pq.read_table(path).select(COLUMNS)
        rows += zip(*(column.to_pylist() for column in table.columns), strict=True)
    return digest(rows)


def loop(log: Path) -> Side:
    """One dictionary of users, one point after the other."""
    from catchment.gateway.log.files.arrow import read_arrow
    from catchment.gateway.log.files.reader import open_log
    from catchment.sync.codecs.delta_numpy import read_frames

    def run() -> object:
        going: dict[str, list[Any]] = {}
        ended: list[Trip] = []
        reader = open_log(str(log))
        for partition in range(reader.partitions):
            for batch in read_arrow(reader, partition, reader.start(partition), reader.end(partition)):
                codecs = batch.column("codec").to_pylist()
                frames = read_frames(Fix.schema, list(zip(codecs, batch.column("payload").to_pylist(), strict=True)))
                for user, at, lat, lon in zip(*(column.objects() for column in frames.columns), strict=True):
                    state = going.get(user)
                    if state is None:
                        going[user] = [at, at, lat, lon, 1, 0, 1]
                        continue
                    if at - state[1] < GAP_US:
                        state[5] += step_mm(state[2], state[3], lat, lon)
                        state[4] += 1
                    else:
                        ended.append((user, state[1], state[0], state[4], state[5], state[6]))
                        state[0], state[4], state[5] = at, 1, 0
                    state[1], state[2], state[3] = at, lat, lon
                    state[6] += 1
        return digest(ended)

    return harness.timed("plain loop", run, time.process_time)


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    users, points_each = (1_000, 1_000) if quick else (4_000, 1_000)
    from bench import spark_trips
    from catchment.engines.spark.session import start_session

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        plan = cm.build(fleet)
        fleet_written = fleet_log.write(home, plan, users=users, points_each=points_each)
        log, flat = fleet_written.log, str(fleet_written.flat)
        batch_bytes = bytes_in(log) // BATCHES
        spark = start_session("bench cloud_keyed")

        def fixes() -> DataFrame:
            return decoded(spark, log, batch_bytes, Fix.schema)

        sides = [
            side("catchment", home, program(spark, plan, log, batch_bytes, TripRecord.schema), trips_in),
            side("applyInPandasWithState", home, written(lambda: spark_trips.by_pandas(fixes())), trips_in),
            side("transformWithState", home, written(lambda: spark_trips.by_rows(fixes())), trips_in),
            BYTEWAX.side(flat),
            loop(log),
            POLARS.side(flat),
        ]
        race = harness.race(sides, rounds=2 if quick else 3, warm_ups=0 if quick else 1)
        spark.stop()
    points = fleet_written.points
    print(race.table(count=points, unit="points"))
    per_million = {name: round(race.median(name) / points * 1e6, 3) for name in race.seconds}
    print("CPU-seconds per million points:", per_million)
    peers = [side.name for side in sides[1:]]
    ratios = {peer: race.ratio("catchment", over=peer) for peer in peers}
    floors = dict(zip(peers, (3.5, 5.0, 1.2, 0.7, 0.25), strict=True))
    bars = [
        Bar(f"at least {least:g} times as fast as {peer}", ratios[peer], at_least=least)
        for peer, least in floors.items()
    ]
    return harness.conclude(
        "cloud_keyed", quick=quick, ratios=ratios, bars=bars, figures={"cpu_s_per_million_points": per_million}
    )


if __name__ == "__main__":
    sys.exit(main())
