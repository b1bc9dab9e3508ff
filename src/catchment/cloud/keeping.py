"""Keeping: the sinks of a query at work, each on a thread of its own, from what the query materialises.

What all of them have is deleted; what waits for one that cannot be reached is bounded. Tasks run on Spark's executors.
Knows threads, the clock and Spark's way to run tasks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from catchment.cloud.materialised import Materialised
from catchment.cloud.publication import Publication, Run, SinkStanding
from catchment.cloud.sinks.declared import sinks_of
from catchment.cloud.sinks.parquet.sink import ParquetSink
from catchment.cloud.sinks.sink import Identity, Work
from catchment.gateway.log.files.disk import LocalDisk
from catchment.plan.physical import Part, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = "tables.json"
"""In a part's directory: where each sink keeps its files, wherever the program was started."""
WAITING_BYTES_MAX = 4 << 30
"""What may wait for a sink that cannot be reached; then the query waits, and what comes in stays in the log."""


class Keeping:
    """All sinks of a query, each on a thread of its own; and what they all have is deleted."""

    def __init__(self, publications: Sequence[Publication], output: Materialised) -> None:
        self.output = output
        self.outputs = frozenset(one.sink.output for one in publications)
        """What of the query's output they take."""
        self._publications = tuple(publications)
        self._changed = threading.Condition()
        self._rounds = 0
        self._ending = False
        self._threads = [
            threading.Thread(target=self._keep, args=(one,), name=f"sink-{one.sink.name}", daemon=True)
            for one in self._publications
        ]

    def start(self) -> None:
        """Begin to publish."""
        for thread in self._threads:
            thread.start()

    def more(self) -> None:
        """There is more; returns once there is room for the next batch."""
        with self._changed:
            self._rounds += 1
            self._changed.notify_all()
            while self.output.bytes > WAITING_BYTES_MAX and not self._ending:
                self._changed.wait(1.0)

    def standings(self) -> dict[str, SinkStanding]:
        """How each sink stands."""
        return {one.sink.name: one.standing for one in self._publications}

    def close(self, timeout_s: float = 10.0) -> None:
        """End after what is being written."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout_s)

    def _keep(self, one: Publication) -> None:
        seen = -1
        while True:
            with self._changed:
                ending, seen = self._ending, self._rounds
            due_us = one.turn(_now_us(), gather=not ending)
            self._trim()
            if ending:
                one.close()
                return
            with self._changed:
                while not self._ending and seen == self._rounds:
                    left_s = None if due_us is None else (due_us - _now_us()) / 1e6
                    if left_s is not None and left_s <= 0:
                        break
                    self._changed.wait(left_s)

    def _trim(self) -> None:
        uptos = [one.upto for one in self._publications]
        known = [upto for upto in uptos if upto is not None]
        with self._changed:
            if len(known) == len(uptos):
                self.output.trim(min(known, default=0))
            self._changed.notify_all()


def keeping_of(
    spark: SparkSession, plan: Plan, part: Part, home: Path, quarantine: Path, generation: int
) -> Keeping | None:
    """The sinks of a part, started; nothing where it has none."""
    sinks = sinks_of(plan, part, home, quarantine)
    if not sinks:
        return None
    tables = {sink.name: sink.path for sink in sinks if isinstance(sink, ParquetSink)}
    LocalDisk(home).replace(TABLES, msgspec.json.encode(tables))
    output, run = Materialised(str(home / "results"), generation), on_spark(spark)
    identities = [Identity(plan.program, sink.name, output.store, generation) for sink in sinks]
    publications = [Publication(sink, who, output, run) for sink, who in zip(sinks, identities, strict=True)]
    keeping = Keeping(publications, output)
    keeping.start()
    return keeping


def on_spark(spark: SparkSession) -> Run:
    """Works as tasks of Spark, each on an executor."""

    def run(works: Sequence[Work]) -> list[bytes]:
        given = spark.sparkContext.parallelize(list(works), len(works))
        found: list[bytes] = given.map(lambda work: work()).collect()
        return found

    return run


def _now_us() -> int:
    return time.monotonic_ns() // 1000
