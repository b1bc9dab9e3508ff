"""The log as Spark reads it for a part: each task reads a range of a partition and gives a packet for each bucket.

An upload whose bucket is known from what the gateway wrote beside it goes there as it came, and is decoded there; the
others are decoded here, because only their elements tell. Between the log and the buckets lies nothing but Spark's
shuffle: no process more, and no column per field.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from catchment.cloud.flow import PacedStream
from catchment.cloud.intake import Intake
from catchment.cloud.latency import SHARES, Sample
from catchment.cloud.leaving import stages_of
from catchment.engines.spark.buckets import BUCKETS, PACKETS, table_of
from catchment.engines.spark.front import Front
from catchment.engines.spark.rows import Array
from catchment.engines.spark.workers import settle
from catchment.gateway.log.entry import NO_INSTANT, Kind
from catchment.gateway.log.files.arrow import read_arrow
from catchment.gateway.log.files.reader import open_log
from catchment.plan import document

if TYPE_CHECKING:
    import pyarrow as pa

PLAN, PART = "plan", "part"
"""The options that say for which part packets are made: its plan's document in base 64, and its name."""
ARRIVING = f"{PACKETS}, sample string"
"""Packets, and with the first of each stretch of the log what `latency` makes of when its uploads came."""
Reading: TypeAlias = tuple[Intake, Front]


class PartLog(DataSource):
    """`spark.readStream.format("catchment_part").option("path", …)`, with `PLAN`, `PART` and the log's own options."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "catchment_part"

    def schema(self) -> StructType | str:
        """The columns of a packet."""
        return ARRIVING

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """The reader of a query."""
        return _PartStream(dict(self.options))


def for_part(plan_document: bytes, part: str) -> dict[str, str]:
    """The options that say so."""
    return {PLAN: b64encode(plan_document).decode(), PART: part}


class _PartStream(PacedStream):
    """Ranges as the log gives them; packets instead of entries."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._plan = b64decode(options[PLAN])
        self._part = options[PART]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number, start, end = partition.value
        intake, front = reading(self._plan, self._part)
        # Programs share a log: what is of no stream that this part reads is left out.
        for batch in read_arrow(open_log(self._path), number, start, end, streams=intake.entrances.keys()):
            if batch.num_rows:
                arrived = intake.read(batch)
                packets = front.spread(arrived if front.is_undecoded else intake.open(arrived))
                found = table_of(packets, number, batch.column("offset")[0].as_py())
                yield found.append_column("sample", _with_the_first(_sample(batch), found.num_rows))
        settle()


@lru_cache(maxsize=8)
def reading(plan_document: bytes, part_name: str) -> Reading:
    """What reads for a part, made once in each worker: it remembers nothing."""
    plan = document.read(plan_document)
    intake = Intake(plan, plan.part(part_name))
    return intake, Front(stages_of(plan_document, part_name), BUCKETS, intake.entrances)


def _with_the_first(sample: Sample | None, rows: int) -> pa.Array:
    import pyarrow as pa

    said = None if sample is None else msgspec.json.encode(sample).decode()
    return pa.array([said, *[None] * rows][:rows], pa.string())


def _sample(batch: pa.RecordBatch) -> Sample | None:
    kind, count, received, base = (
        batch.column(name).to_numpy(zero_copy_only=False) for name in ("kind", "count", "received_us", "base_us")
    )
    is_upload = (kind == Kind.DATA) & (count > 0)
    if not is_upload.any():
        return None
    # Where the session's clock is not known, neither is when a reading was appended.
    return Sample(
        int(is_upload.sum()), _spread(base[is_upload & (base > NO_INSTANT + 1)]), _spread(received[is_upload])
    )


def _spread(instants: Array) -> tuple[int, ...]:
    return tuple(np.quantile(instants, SHARES, method="nearest").tolist()) if len(instants) else ()
