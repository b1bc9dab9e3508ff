"""What Spark reads itself, as packets for buckets: the same operators take it as what comes from the log.

Spark records what each batch reads, and reads the same again after a failure. Rows are put in an order that depends on
what is read alone: files, and partitions of topics, by a number made of their names, and the rows of each as they lie
in it; so a batch that runs again on another number of cores gives the same. What was read promises, when its batch
ends, that nothing older than its newest element comes any more, but for `late`. To a program it is one device without
an owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from catchment.cloud.sources import kafka
from catchment.cloud.sources.checks import FILES, FORMATS, KAFKA
from catchment.engines.spark.buckets import table_of
from catchment.engines.spark.events import Arrived
from catchment.engines.spark.front import Front
from catchment.engines.spark.rows import Array, Column, Rows
from catchment.plan.graph import Vertex
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import BOOL, FLOAT, INSTANT, DataType, ScalarType, Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FILES_PER_BATCH = 100
PARTITIONS_FROM = 1 << 20
"""Numbers of partitions behind all those of a log: one for each source, and one for what they promise."""
PROMISES = (1 << 31) - 1
_SPARK_TYPES = {"bool": "boolean", "int": "bigint", "float": "double", "str": "string", "bytes": "binary"}
_FROM = ("_file", "_block")


def rows_of(spark: SparkSession, vertex: Vertex) -> DataFrame:
    """The fields of a source's record as engines hold them, or messages, and which file or partition each row is of."""
    step = vertex.step
    assert isinstance(step, steps.External)
    said, record = step.options, step.record
    if step.connector == KAFKA:
        return kafka.read(spark, vertex)
    if step.connector == FILES:
        columns = ", ".join(f"`{c.name}` {_spark_type(c.type)}" for c in record.fields)
        reader = spark.readStream.schema(columns).format(said.get("format", FORMATS[0]))
        reader = reader.option("maxFilesPerTrigger", said.get("files_per_batch", FILES_PER_BATCH))
        if said.get("format") == "csv":
            reader = reader.option("header", True)
        read = reader.load(str(Path(said["path"]).resolve()))
        places = ["_metadata.file_path AS _file", "_metadata.file_block_start AS _block"]
        fields = [_engine_form(c.name, c.name, c.type) for c in record.fields]
    else:
        rate = spark.readStream.format("rate").option("rowsPerSecond", said.get("rows_per_second", 1))
        read = rate.option("numPartitions", 1).load()
        places = ["'' AS _file", "0L AS _block"]
        fields = [_engine_form(c.name, "timestamp" if c.event_time else "value", c.type) for c in record.fields]
    return read.selectExpr(*fields, *places)


def packets_of(
    front: Callable[[], Front], vertex: Vertex, number: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task's rows in, a packet for each bucket out; `number` tells this source from the others."""
    step = vertex.step
    assert isinstance(step, steps.External)
    record, late_us = step.record, step.options.get("late", 0)
    source = Source(vertex.id, None)

    def spread(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = front()
        messages = kafka.Messages(record, step.options) if step.connector == KAFKA else None
        parts: dict[tuple[str, int], int] = {}
        newest: int | None = None
        for batch in batches:
            for part, rows in _runs(batch):
                turn = parts[part] = parts.get(part, -1) + 1
                arrived = messages(rows, vertex.id, source) if messages else _arrived(rows, record, vertex.id, source)
                found = arrived.rows[vertex.id].at
                if len(found):
                    newest = max(int(found.max()), newest if newest is not None else int(found[0]))
                place = (crc32(f"{part[0]}#{part[1]}".encode()) << 24) | turn
                yield table_of(known.spread(arrived), PARTITIONS_FROM + number, place)
        if newest is not None:
            promised = known.promise(vertex.id, source, newest - late_us)
            yield table_of(promised, PROMISES, newest)

    return spread


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """Rows of one file after those of another."""
    if not batch.num_rows:
        return
    files, blocks = (batch.column(name) for name in _FROM)
    codes = files.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    starts = blocks.to_numpy(zero_copy_only=False)
    changes = np.flatnonzero((codes[1:] != codes[:-1]) | (starts[1:] != starts[:-1])) + 1
    bounds = [0, *changes.tolist(), batch.num_rows]
    for start, end in pairwise(bounds):
        yield (files[start].as_py(), blocks[start].as_py()), batch.slice(start, end - start)


def _arrived(rows: pa.RecordBatch, record: Schema, step: str, source: Source) -> Arrived:
    """Rows at their times; those that lack what they must have are refused."""
    columns = [_column(rows.column(c.name), c.type) for c in record.fields]
    count = rows.num_rows
    lacking: dict[int, str] = {}
    for place, (field, column) in enumerate(zip(record.fields, columns, strict=True)):
        if not field.nullable and column.valid is not None:
            for number in np.flatnonzero(~column.valid).tolist():
                lacking.setdefault(number, f"{field.name} is null")
            columns[place] = Column(column.values, None, column.words)
    assert record.event_time is not None, "what is read has an event time"
    at = columns[record.position(record.event_time)].values
    whole = Rows(at, np.zeros(count, np.int64), np.arange(count, dtype=np.int64), [source], columns)
    kept = np.ones(count, np.bool_)
    kept[list(lacking)] = False
    given = rows.select(record.names).take(sorted(lacking)).to_pylist() if lacking else []
    refused = [
        (number, step, lacking[number], tuple(row.values())) for number, row in zip(sorted(lacking), given, strict=True)
    ]
    return Arrived(count, {step: whole.take(kept) if lacking else whole}, [], refused)


def _column(array: pa.Array, kind: DataType) -> Column:
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if isinstance(kind, ScalarType) and kind.name in ("str", "bytes"):
        coded = array.dictionary_encode()
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return Column(codes, valid, coded.dictionary.to_pylist())
    values: Array = array.fill_null(False if kind == BOOL else 0).to_numpy(zero_copy_only=False)
    wanted = np.bool_ if kind == BOOL else np.float64 if kind == FLOAT else np.int64
    return Column(values.astype(wanted), valid)


def _spark_type(kind: DataType) -> str:
    assert isinstance(kind, ScalarType)
    return "timestamp" if kind == INSTANT else _SPARK_TYPES.get(kind.name, "bigint")


def _engine_form(name: str, column: str, kind: DataType) -> str:
    return f"unix_micros(`{column}`) AS `{name}`" if kind == INSTANT else f"`{column}` AS `{name}`"
