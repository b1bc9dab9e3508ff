"""The log as a source of Spark: every entry once, whatever the batches, also across a restart of the query."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _upload(device: str, first: int) -> Entry:
    return Entry(kind=Kind.DATA, device=device, stream="s", first=first, count=1, received_us=first, payload=b"x" * 900)


def test_a_query_reads_each_entry_once_in_bounded_batches(spark: SparkSession, tmp_path: Path) -> None:
    from catchment.gateway.log.spark import LogSource

    disk = LocalDisk(tmp_path / "log")
    layout.create(disk, partitions=2)
    salts = itertools.count(1)
    limits = Limits(segment_bytes=20_000, reserve_bytes=0)
    writers = [
        Partition(disk, n, holder="w", address="", now_us=0, salt=lambda: next(salts), limits=limits) for n in (0, 1)
    ]
    spark.dataSource.register(LogSource)
    batches: list[int] = []

    def take(frame: object, _: int) -> None:
        rows = frame.select("partition", "device", "first").collect()  # type: ignore[attr-defined]
        batches.append(len(rows))
        seen.extend((row.partition, row.device, row.first) for row in rows)

    def run() -> None:
        stream = spark.readStream.format("catchment_log").option("path", str(tmp_path / "log"))
        frame = stream.option("bytes_per_batch", 16_384).load()
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)

    seen: list[tuple[int, str, int]] = []
    for number in range(30):
        for partition, writer in enumerate(writers):
            writer.append([_upload(f"d{partition}", number)], now_us=number)
    run()
    for partition, writer in enumerate(writers):
        writer.append([_upload(f"d{partition}", n) for n in range(30, 40)], now_us=100)
    run()
    assert sorted(seen) == [(p, f"d{p}", n) for p in (0, 1) for n in range(40)]
    assert len(batches) > 3, "the bound on a batch was not kept"
    for writer in writers:
        writer.close()
