"""Kafka's topics as a source: Spark's own, with its exact offsets; each message a row of the declared record.

The value is JSON or MessagePack; fields may take the message's key, its time, its partition or its offset instead. A
message that is no such row is refused with its reason and its position, and the stream goes on. Of transactions, what
was committed is read. Credentials are in a file of client properties, which only those who run the program see.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from catchment.cloud.sources.checks import TAKES
from catchment.cloud.sources.messages import JSON, reader
from catchment.engines.spark.events import Arrived, Refused
from catchment.engines.spark.jars import Wanted, bundled, fetch
from catchment.engines.spark.java import cache_directory
from catchment.engines.spark.rows import Rows, column_of
from catchment.errors import ProgramError
from catchment.gateway.journal import say
from catchment.plan.graph import Vertex
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import STR, Row, Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MESSAGES_PER_BATCH = 200_000
SHOWN_MAX = 10_000
"""So many characters of a refused value are kept; its position says where the whole is."""
_WHAT = "Spark's source for Kafka"
_SPARK = "org.apache.spark"
_BROUGHT = (
    *("org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules", "org.slf4j", "com.google.code.findbugs"),
    *("org.lz4", "at.yawk.lz4", "org.xerial.snappy", "com.github.luben"),
)
"""Groups that the connector asks for and that come with Spark."""


def read(spark: SparkSession, vertex: Vertex) -> DataFrame:
    """Messages, with `_file` and `_block` to tell topics and partitions apart."""
    step = vertex.step
    assert isinstance(step, steps.External)
    said = step.options
    options = {
        **{f"kafka.{name}": value for name, value in client(vertex).items()},
        "kafka.bootstrap.servers": said["servers"],
        "subscribe": said["topic"],
        "startingOffsets": said.get("start", "earliest"),
        "maxOffsetsPerTrigger": str(said.get("messages_per_batch", MESSAGES_PER_BATCH)),
        # What a producer took back was never said.
        "kafka.isolation.level": "read_committed",
    }
    messages = spark.readStream.format("kafka").options(**options).load()
    return messages.selectExpr(
        *("topic AS _file", "CAST(partition AS BIGINT) AS _block", "offset", "key", "value"),
        "unix_micros(timestamp) AS timestamp",
    )


def client(vertex: Vertex) -> dict[str, str]:
    """The client properties that the source names."""
    step = vertex.step
    assert isinstance(step, steps.External)
    if "client" not in step.options:
        return {}
    path = Path(step.options["client"])
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError(
            "E206",
            f"{vertex.id}: the client properties in {path} cannot be read",
            why=getattr(error, "strerror", None) or str(error),
            fix="put the file where the program runs, a property such as security.protocol=SASL_SSL on each line",
            at=vertex.line.source(),
        ) from None
    pairs = [line.partition("=") for line in lines if line and not line.startswith(("#", "!"))]
    return {name.strip(): value.strip() for name, _, value in pairs}


class Messages:
    """Messages of one partition as what arrives: rows at their times; those that are no row are refused."""

    def __init__(self, record: Schema, said: Mapping[str, Any]) -> None:
        self._record = record
        taken = {said[name]: name for name in TAKES if name in said}
        self._decode = reader(record, said.get("format", JSON), frozenset(taken))
        self._taken = [(place, f, taken[f.name]) for place, f in enumerate(record.fields) if f.name in taken]

    def __call__(self, batch: pa.RecordBatch, step: str, source: Source) -> Arrived:
        """What these messages are to a source step."""
        said = {name: batch.column(name).to_pylist() for name in ("offset", "key", "value", "timestamp")}
        topic, said["partition"] = batch.column("_file")[0].as_py(), batch.column("_block").to_pylist()
        rows: list[Row] = []
        numbers: list[int] = []
        refused: list[Refused] = []
        for number, value in enumerate(said["value"]):
            try:
                row = self._row(value, {name: values[number] for name, values in said.items()} if self._taken else {})
            except (msgspec.MsgspecError, ValueError) as error:
                position = {"topic": topic, **{name: said[name][number] for name in ("partition", "offset")}}
                what = {**position, "key": _shown(said["key"][number]), "value": _shown(value)}
                refused.append((number, step, f"the message is not a {self._record.name}: {error}", what))
            else:
                rows.append(row)
                numbers.append(number)
        fields = self._record.fields
        columns = [column_of([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
        at = next(column.values for column, field in zip(columns, fields, strict=True) if field.event_time)
        whole = Rows(at, np.zeros(len(rows), np.int64), np.array(numbers, np.int64), [source], columns)
        return Arrived(batch.num_rows, {step: whole}, [], refused)

    def _row(self, value: bytes | None, message: Mapping[str, Any]) -> Row:
        if value is None:
            raise ValueError("it has no value")
        row = self._decode(value)
        if not self._taken:
            return row
        changed = list(row)
        for place, field, name in self._taken:
            found = message[name]
            if found is None and not field.nullable:
                raise ValueError(f"it has no {name}, which {field.name} is")
            changed[place] = found.decode() if field.type == STR and found is not None else found
        return tuple(changed)


def _shown(value: bytes | None) -> str | None:
    """As text where it is text, in hexadecimal digits where not."""
    if value is None:
        return None
    try:
        return value.decode()[:SHOWN_MAX]
    except UnicodeDecodeError:
        return value.hex()[:SHOWN_MAX]


def jars(environment: Mapping[str, str] = os.environ) -> str:
    """The jars with which Spark reads Kafka: its own connector, of its release or the newest one before it."""
    scala, release = bundled("spark-sql_").split("-", 1)
    upto = f"[{release.partition('.')[0]}.0.0,{release}]"
    tokens = f"spark-token-provider-kafka-0-10_{scala}"
    wanted = [
        # By itself: the connector asks for its own release of it, and each is taken as it is published.
        Wanted(
            _SPARK,
            f"spark-sql-kafka-0-10_{scala}",
            upto,
            (*_BROUGHT, f"{_SPARK}:{tokens}", f"{_SPARK}:spark-tags_{scala}"),
        ),
        Wanted(_SPARK, tokens, upto, (*_BROUGHT, f"{_SPARK}:spark-tags_{scala}")),
    ]
    kept = cache_directory(environment) / "jars" / f"kafka-{scala}-{release}"
    if not kept.is_dir():
        say("fetching", what=_WHAT, into=str(kept))
    return ",".join(str(jar) for jar in fetch(_WHAT, wanted, kept, environment))
