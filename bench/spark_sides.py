"""Sides of a race that run on Spark: one query to the end of a log, its checkpoint and what it keeps in fresh folders.

Seconds are the processor's, of the JVM and the Python workers too, from the end of the first batch on (a query starts
once, and then runs for months), as if all batches were like those. What a programmer writes by hand reads the same log,
decoded by the same vectorised reader, in the same session.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import catchment as cm
from bench.harness import Reading, Side
from bench.processes import cpu_s
from catchment.cloud.flow import standing
from catchment.plan.physical import Plan
from catchment.program.types import Schema
from catchment.sync.codecs.arrow import arrow_array, arrow_schema
from catchment.sync.codecs.delta_numpy import read_frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Begin: TypeAlias = Callable[[Path], Any]
"""Starts a query that works in a folder, and gives it."""


class Kept:
    """A sink of the cloud's that keeps results as Parquet, one file per task and epoch."""

    def __init__(self, home: str, schema: Schema) -> None:
        self._home = home
        self._schema = schema

    def takes(self, output: str) -> bool:
        return output != "quarantine"

    def append(self, output: str, part: int, epoch: int, upto: str, results: Any) -> None:
        table = results.table(self._schema)
        pq.write_table(table.select(self._schema.names), f"{self._home}/{epoch:05d}-{part:03d}.parquet")


def side(
    name: str, home: Path, begin: Begin, answer: Callable[[Path], object], *, skip: int = 1, share: float = 1.0
) -> Side:
    """A query as a side: `answer` says what is in the folder that it kept its results in.

    The first `skip` batches are not counted; what the others cost by their bytes is told for that share of the log.
    """
    numbers = count()

    def run() -> Reading:
        folder = home / f"{name.split()[0]}-{next(numbers)}"
        (folder / "out").mkdir(parents=True)
        begun_s = cpu_s()
        query = begin(folder)
        while query.isActive and len(query.recentProgress) < skip:
            time.sleep(0.02)
        first_s = cpu_s()
        query.awaitTermination()
        ended_s = cpu_s()
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        taken = [found.batch_bytes for found in map(standing, query.recentProgress) if found is not None]
        if len(taken) < skip + 2 or 0 in taken[:skip]:
            raise RuntimeError(f"batches of {taken} bytes: the first {skip} are to be a small part")
        dropped = sum(each.numRowsDroppedByWatermark for one in query.recentProgress for each in one.stateOperators)
        if dropped:
            raise RuntimeError(f"{name} dropped {dropped} rows behind its watermark")
        seconds = (ended_s - first_s) * share * sum(taken) / sum(taken[skip:])
        print(f"  {name}: {seconds:.2f} CPU-s, before that {first_s - begun_s:.2f}", file=sys.stderr, flush=True)
        return Reading(seconds, answer(folder / "out"))

    return Side(name, run)


def digest(table: pa.Table, by: Sequence[str]) -> str:
    """A checksum of all that a table holds, in the order of these columns."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    order = np.lexsort([_ranks(columns[name]) for name in reversed(by)])
    found = hashlib.sha256()
    for column in columns.values():
        found.update(column.is_null().to_numpy(zero_copy_only=False)[order].tobytes())
        if pa.types.is_string(column.type):
            found.update("\n".join(column.fill_null("").take(pa.array(order)).to_pylist()).encode())
        else:
            found.update(column.fill_null(0).to_numpy()[order].tobytes())
    return found.hexdigest()[:16]


def _ranks(column: pa.Array) -> Any:
    """Numbers in the order of the values: texts are sorted once for all that are equal."""
    if not pa.types.is_string(column.type):
        return column.to_numpy()
    coded = column.dictionary_encode()
    words = coded.dictionary.to_pylist()
    rank = np.empty(len(words), np.int64)
    rank[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    return rank[coded.indices.to_numpy()]


def program(spark: SparkSession, plan: Plan, log: Path, batch_bytes: int, schema: Schema) -> Begin:
    """A program's cloud part as the supervisor runs it, keeping its only output, which has that schema."""
    from catchment.cloud.publish import Publisher
    from catchment.cloud.query import results

    part = next(part for part in plan.parts if part.site == cm.CLOUD)

    def begin(folder: Path) -> Any:
        frame = results(spark, plan, part, str(log), {"bytes_per_batch": str(batch_bytes)})
        writer = frame.writeStream.foreachBatch(Publisher([Kept(str(folder / "out"), schema)]))
        return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()

    return begin


def bytes_in(log: Path) -> int:
    """How large a log is."""
    return sum(path.stat().st_size for path in log.rglob("*") if path.is_file())


def written(frame: Callable[[], DataFrame]) -> Begin:
    """A hand-written query, kept as Parquet by Spark."""

    def begin(folder: Path) -> Any:
        writer = frame().writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        return writer.option("path", str(folder / "out")).trigger(availableNow=True).start()

    return begin


def decoded(spark: SparkSession, log: Path, batch_bytes: int, schema: Schema) -> DataFrame:
    """Every element of the log as a row, whatever its stream: for a log of one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from catchment.gateway.log.spark import LogSource

    spark.dataSource.register(LogSource)
    source = spark.readStream.format(LogSource.name()).option("path", str(log)).option("bytes_per_batch", batch_bytes)
    return source.load().mapInArrow(_decoding(schema), from_arrow_schema(arrow_schema(schema)))


def _decoding(schema: Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            codecs, payloads = batch.column("codec").to_pylist(), batch.column("payload").to_pylist()
            frames = read_frames(schema, list(zip(codecs, payloads, strict=True)))
            fields = zip(schema.fields, frames.columns, strict=True)
            arrays = [arrow_array(field.type, column) for field, column in fields]
            yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))

    return decode
