"""Many programs in one query: each in a bucket of its own, its history cut into batches, all in Spark's state.

A bucket is restored from Spark's state for each batch, so each cut is a restart too; the query itself is stopped and
begun again where asked to, from its checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catchment.engines.spark.buckets import PACKETS, RESULTS, Bucket, Running
from catchment.engines.spark.front import Front
from catchment.engines.spark.results import Results
from catchment.engines.spark.stages import cut
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Entry, Failure, Outcome, Result, Source
from tests.unit.spark.vectorised import arrived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = "{}|{}"


def outputs_of(graph: Graph) -> dict[str, Port]:
    """Every port of every step."""
    ports = [(vertex.id, port) for vertex in graph.vertices for port in range(len(vertex.schemas))]
    return {OUTPUT.format(*port): port for port in ports}


@dataclass
class Case:
    """A program, what it is fed, and after how many entries each batch ends."""

    graph: Graph
    entries: Sequence[Entry]
    ends: list[int]

    def packets(self, bucket: int) -> list[tuple[int, int, bytes]]:
        """A packet for each batch: (bucket, batch, packet). A program that Spark refuses is refused here."""
        front = Front(cut(self.graph, outputs_of(self.graph)), buckets=1)
        found, begin = [], 0
        for batch, end in enumerate(self.ends):
            packets = front.spread(arrived(self.graph, self.entries[begin:end]))
            found += [(bucket, batch, packet) for _, packet in packets]
            begin = end
        return found


Given = dict[str, list[tuple[int, Any]]]
"""What each output gave, with the number of the batch."""


def run(
    spark: SparkSession,
    home: Path,
    graphs: Mapping[int, Graph],
    packets: Sequence[tuple[int, int, bytes]],
    *,
    prepare: Callable[[], None],
    stops: Sequence[int] = (),
) -> dict[int, Given]:
    """Run programs by bucket on their packets; the query is stopped before these batches, and begun again.

    `prepare` is called in Spark's workers, before a program is made there.
    """
    shipped = {bucket: msgspec.json.encode(graph) for bucket, graph in graphs.items()}
    (home / "in").mkdir(parents=True)
    results: dict[int, Given] = {bucket: {} for bucket in graphs}

    class Packed(Bucket):
        def __init__(self) -> None:
            super().__init__(_none)
            self._running: dict[int, Running] = {}

        def running(self, bucket: int) -> Running:
            if bucket not in self._running:
                prepare()
                graph = msgspec.json.decode(shipped[bucket], type=Graph)
                self._running[bucket] = Running(cut(graph, outputs_of(graph)), keys_of_a_shard=2)
            return self._running[bucket]

    def take(frame: Any, epoch: int) -> None:
        for row in frame.collect():
            into = results[row.bucket].setdefault(row.output, [])
            batch = msgspec.json.decode(row.upto)["0"]
            into.extend((batch, what) for what in Results([bytes(row.packet)], row.count))

    last = max(number for _, number, _ in packets) + 1
    for begin, end in zip([0, *stops], [*stops, last], strict=True):
        for batch in range(begin, end):
            _write(home / "in" / f"{batch:04d}.parquet", batch, [row for row in packets if row[1] == batch])
        stream = spark.readStream.schema(PACKETS).option("maxFilesPerTrigger", 1).option("latestFirst", "false")
        frame = stream.parquet(str(home / "in"))
        frame = frame.groupBy("bucket").transformWithState(Packed(), RESULTS, "Append", "None")
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(home / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination(300)
    return results


def outcome_of(graph: Graph, given: Given, batch: int) -> Outcome:
    """What was given up to a batch."""
    results: dict[Port, tuple[Result, ...]] = {}
    for output, port in outputs_of(graph).items():
        seen = [what for number, what in given.get(output, []) if number <= batch]
        results[port] = tuple(
            Result(n, at, Source(device, owner), _tuple(row)) for n, (at, device, owner, row) in enumerate(seen)
        )
    failed = [what for number, what in given.get("quarantine", []) if number <= batch]
    return Outcome(results, tuple(Failure(step, reason, _tuple(row)) for step, reason, row in failed))


def _write(path: Path, batch: int, rows: Sequence[tuple[int, int, bytes]]) -> None:
    columns = {
        "bucket": pa.array([row[0] for row in rows], pa.int32()),
        "partition": pa.array([0] * len(rows), pa.int32()),
        "offset": pa.array([row[1] for row in rows], pa.int64()),
        "packet": pa.array([row[2] for row in rows], pa.binary()),
    }
    pq.write_table(pa.table(columns), path)
    # Spark takes files in the order of their times, and these are written within one of its milliseconds.
    os.utime(path, (batch + 1, batch + 1))


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _none() -> Any:
    return None
