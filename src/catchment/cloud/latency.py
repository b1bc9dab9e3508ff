"""How long from a reading's append on its device to the results that it led to in their sinks; measured inside.

Each upload in the log carries two instants on the gateway's clock: when its first reading was appended on the device,
and when the gateway took it. Executors gather their spread per batch beside the work, and count results by output;
Spark's report of a finished batch brings both, with the instant at which its sinks had taken everything. Nothing else
reaches the driver. Knows Spark's reports; which query they are of is the supervisor's business.

>>> latency = Latency()
>>> latency.add(Batch(number=1, done_us=9_000_000, given={"totals": 2},
...     samples=(Sample(4, (5_000_000, 7_000_000, 8_000_000), (8_000_000, 8_500_000, 8_900_000)),)))
>>> latency.outputs()["totals"]
Delay(results=2, appended_ms=Spread(p50=2000, p95=4000, p99=4000), received_ms=Spread(p50=500, p95=1000, p99=1000))
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec

from catchment.cloud.flow import Standing, standing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

UPLOADS, RESULTS = "catchment_uploads", "catchment_results"
BATCHES_KEPT = 300
"""Percentiles are of so many batches that gave something: minutes under load, longer where little happens."""
SHARES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


class Spread(msgspec.Struct, frozen=True):
    """Percentiles, in milliseconds."""

    p50: int
    p95: int
    p99: int


class Delay(msgspec.Struct, frozen=True):
    """Of one output: how many results, and how old what they came from was when they were in their sinks.

    `appended_ms` counts from the oldest reading of each upload on its device, batching and being offline included;
    `received_ms` from the gateway's taking it: what the cloud adds. Absent where no upload said.
    """

    results: int
    appended_ms: Spread | None
    received_ms: Spread | None


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """Uploads of a stretch of the log: how many, and their instants at each of `SHARES`."""

    uploads: int
    appended_us: tuple[int, ...]
    received_us: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """A finished batch: samples of its uploads, and how many results each output had."""

    number: int
    done_us: int
    given: dict[str, int]
    samples: tuple[Sample, ...]


class Latency:
    """The delays of a query's outputs, over its recent batches."""

    def __init__(self) -> None:
        self._seen = ""
        self.flow: Standing | None = None
        """How the query stands against the log, by its last report."""
        self._batches: dict[str, deque[Batch]] = {}
        self._results: dict[str, int] = {}

    def look(self, query: StreamingQuery) -> None:
        """Take what the query reports of batches that ended since the last look."""
        for report in reversed(list(_fresh(query, self._seen))):
            self._seen = report["timestamp"]
            self.flow = standing(report) or self.flow
            batch = batch_of(report)
            if batch is not None:
                self.add(batch)

    def add(self, batch: Batch) -> None:
        """One more batch."""
        for output, count in batch.given.items():
            self._results[output] = self._results.get(output, 0) + count
            if count and batch.samples:
                self._batches.setdefault(output, deque(maxlen=BATCHES_KEPT)).append(batch)

    def outputs(self) -> dict[str, Delay]:
        """Of each output that has given something."""
        return {
            output: Delay(
                self._results[output],
                _spread(_aged(batches, "appended_us")),
                _spread(_aged(batches, "received_us")),
            )
            for output, batches in self._batches.items()
        }

    def newest(self) -> dict[str, Spread]:
        """Of each output, how long the uploads of its latest batch took: what it is like at the moment."""
        latest = {output: batches[-1] for output, batches in self._batches.items()}
        found = {output: _spread(_aged([batch], "received_us")) for output, batch in latest.items()}
        return {output: spread for output, spread in found.items() if spread is not None}


def observe_uploads(packets: DataFrame) -> DataFrame:
    """Packets from the log, whose samples are gathered in passing."""
    return packets.observe(UPLOADS, _sql("collect_list(sample)", "samples")).drop("sample")


def observe_results(results: DataFrame, outputs: Sequence[str]) -> DataFrame:
    """A part's results, counted by output in passing."""
    from pyspark.sql import functions

    counted = [
        functions.sum(functions.when(functions.col("output") == name, functions.col("count")).otherwise(0)).alias(name)
        for name in outputs
    ]
    return results.observe(RESULTS, *counted) if counted else results


def batch_of(report: dict[str, Any]) -> Batch | None:
    """What Spark's report of a batch says; nothing if it read nothing."""
    observed = report.get("observedMetrics", {})
    uploads, given = observed.get(UPLOADS), observed.get(RESULTS)
    if not uploads or not given:
        return None
    took_ms = report["durationMs"]
    started = datetime.fromisoformat(report["timestamp"])
    # Sinks are done when the batch is, but for Spark's own note that it is.
    lasted_ms = took_ms.get("triggerExecution", 0) - took_ms.get("commitOffsets", 0)
    return Batch(
        number=report["batchId"],
        done_us=round(started.timestamp() * 1e6) + lasted_ms * 1000,
        given={name: count or 0 for name, count in given.items()},
        samples=tuple(msgspec.json.decode(sample, type=Sample) for sample in uploads["samples"] or ()),
    )


def _fresh(query: StreamingQuery, seen: str) -> Iterator[dict[str, Any]]:
    """Reports after that instant, the newest first. Only what is new comes over from the JVM: this is asked often."""
    java: Any = query._jsq
    reports = java.recentProgress()
    for place in range(len(reports) - 1, -1, -1):
        if reports[place].timestamp() <= seen:
            return
        yield json.loads(reports[place].json())


def _aged(batches: Iterable[Batch], which: str) -> list[tuple[int, float]]:
    """How old each instant was in the end, and for how many uploads it stands."""
    return [
        (batch.done_us - instant_us, sample.uploads / len(getattr(sample, which)))
        for batch in batches
        for sample in batch.samples
        for instant_us in getattr(sample, which)
    ]


def _spread(aged: list[tuple[int, float]]) -> Spread | None:
    if not aged:
        return None
    aged.sort()
    return Spread(*[_at(aged, share) for share in (0.5, 0.95, 0.99)])


def _at(aged: list[tuple[int, float]], share: float) -> int:
    # Both sides are added up alike: from 3.12 on, Python's own sum of floats is rounded in another way.
    below = list(accumulate([weight for _, weight in aged]))
    place = bisect_left(below, share * below[-1])
    return max(0, aged[min(place, len(aged) - 1)][0] // 1000)


def _sql(text: str, name: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(text).alias(name)
