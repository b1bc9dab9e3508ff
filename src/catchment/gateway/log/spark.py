"""The log as a streaming source of Spark: exact offsets, a bound on each batch, Arrow without a step per entry.

A batch of the query reads [start, end) of each partition, and reads the same again after a failure: offsets are byte
positions in a log that never changes. Where the end is takes one page to learn, so idle triggers cost nothing.
Options: `path` of the log; `bytes_per_batch`, over all partitions; `from`, "earliest", "latest" or an offset;
`reader`, the name under which what a query has finished is confirmed, so that retention may delete it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from catchment.gateway.log.files.reader import LogReader, open_log
from catchment.gateway.log.files.segment import PAGE

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_PER_BATCH = 64 << 20

_TEXTS = ("device", "user", "stream", "schema", "codec")
_NUMBERS = ("epoch", "first", "count", "shift_us", "base_us", "promise_us", "received_us")

ENTRIES = StructType(
    [
        StructField("partition", IntegerType(), False),
        StructField("offset", LongType(), False),
        StructField("kind", IntegerType(), False),
        *(StructField(name, StringType(), False) for name in _TEXTS),
        *(StructField(name, LongType(), False) for name in _NUMBERS),
        StructField("payload", BinaryType(), False),
    ]
)
"""One row per entry of the log, its payload as it came."""


class Range(InputPartition):
    """What one task reads: [start, end) of a partition."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        super().__init__((partition, start, end))


class LogSource(DataSource):
    """`spark.readStream.format("catchment_log").option("path", …)`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "catchment_log"

    def schema(self) -> StructType:
        """The columns of an entry."""
        return ENTRIES

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """The reader of a query."""
        return LogStream(dict(self.options))


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks for ranges, and each task for the entries of one."""

    def __init__(self, options: dict[str, str]) -> None:
        self._path = options["path"]
        self.bytes_max = int(options.get("bytes_per_batch", BYTES_PER_BATCH))
        """The bound on the next batch."""
        self._from = options.get("from", "earliest")
        self._name = options.get("reader")
        self._log: LogReader | None = None
        self._until: dict[str, int] | None = None
        self._confirmed: dict[str, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None}

    def _open(self) -> LogReader:
        if self._log is None:
            self._log = open_log(self._path)
        return self._log

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        log = self._open()
        if self._from.isdigit():
            # Of a log of one partition; of each, where there are several: before its start is its start.
            return {str(n): min(max(int(self._from), log.start(n)), log.end(n)) for n in range(log.partitions)}
        place = log.end if self._from == "latest" else log.start
        return {str(partition): place(partition) for partition in range(log.partitions)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self.reportLatestOffset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self.bytes_max)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        self._confirm(start)
        log = self._open()
        ends = self._until or {partition: log.end(int(partition)) for partition in start}
        if isinstance(limit, ReadAllAvailable) or sum(ends[p] - start[p] for p in start) <= self.bytes_max:
            return ends
        behind = [partition for partition in start if ends[partition] > start[partition]]
        share = max(PAGE, self.bytes_max // len(behind))
        cut = {p: log.boundary(int(p), start[p], bytes_max=share, end=ends[p]) for p in behind}
        return {**start, **cut}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        log = self._open()
        return {str(partition): log.end(partition) for partition in range(log.partitions)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Range(int(p), start[p], end[p]) for p in end if end[p] > start[p]]

    def commit(self, end: dict[str, int]) -> None:
        """Spark says so only when the next batch begins, and there may be none for long: see `_confirm`."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number, start, end = partition.value
        return _batches(open_log(self._path), number, start, end)

    def _confirm(self, start: dict[str, int]) -> None:
        """Spark asks from where it has finished. Of a log that falls silent, all is then confirmed."""
        if self._name is not None and start != self._confirmed:
            for partition, offset in start.items():
                self._open().confirm(self._name, int(partition), offset)
            self._confirmed = dict(start)


def _batches(log: LogReader, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from catchment.gateway.log.files.arrow import read_arrow

    columns_of_entries = to_arrow_schema(ENTRIES)
    for batch in read_arrow(log, partition, start, end):
        columns: list[pa.Array] = [
            pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows),
            batch.column("offset"),
            batch.column("kind"),
            *(batch.column(name).dictionary_decode() for name in _TEXTS),
            *(batch.column(name) for name in _NUMBERS),
            batch.column("payload"),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=columns_of_entries)
