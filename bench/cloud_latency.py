"""The floor of a micro-batch: small uploads arrive all the time, and the next batch begins when the one before is done.

Two programs read the same log, one after the other, each with its results going to the gateway's downlink:

    stateless      a filter and a projection
    keyed          count and sum per user, kept in Spark's state

Beside each, in the same session, what a PySpark programmer writes for it by hand on a log alike: uploads decoded by
the same reader, the filter as an expression of Spark's, the sums by `transformWithState` with a state per user; results
are counted in `foreachBatch`. Milliseconds are Spark's own, from the trigger to the batch's commit, the median of many
batches in a warm session; and, for ours, from the gateway's taking an upload to its results in the downlink, as
`catchment status` tells it. A session runs here as `catchment run` runs it: settings, sinks and flow control.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import catchment as cm
from bench import harness
from bench.cloud_rig import READER, Feed, plan_and_part
from bench.harness import Bar
from catchment.plan.physical import Part, Plan
from tests.thread.program import Reading

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

USERS = 20
UPLOADS = 4
"""With each append: some two hundred readings."""
EVERY_S = 0.02
WARM = 30
"""Batches that are not counted: the JVM still compiles."""


class Large(cm.Record):
    """A reading that passes the filter, with what is computed of it."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    doubled: cm.Field[int]


passing = cm.Program("meter")


@passing.stream(at=cm.DEVICE)
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """All of them."""
    return device.sensor(Reading, "meter")


@passing.stream(at=cm.CLOUD)
def large(readings: cm.Stream[Reading]) -> cm.Stream[Large]:
    """Those of at least 50."""
    return readings.where(Reading.amount >= 50).select(Large, doubled=Reading.amount * 2)


passing.deliver(large, by=Large.user, keep="latest")


class Fed:
    """A log that grows while this is entered."""

    def __init__(self, root: Path) -> None:
        self._feed = Feed(root, USERS)
        self._feed.append(UPLOADS)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._feed.writer.close()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            self._feed.append(UPLOADS)


def ours(plan: Plan, part: Part, home: Path) -> Callable[[SparkSession, str, Path], Any]:
    """The part, as the supervisor runs it."""
    from catchment.cloud.flow import OPTION
    from catchment.cloud.publish import Publisher
    from catchment.cloud.query import results
    from catchment.cloud.sinks.downlink import DownlinkSink
    from catchment.plan import document

    def begin(spark: SparkSession, log: str, checkpoint: Path) -> Any:
        publish = Publisher([DownlinkSink(document.write(plan), str(home), 1)])
        frame = results(spark, plan, part, log, {"reader": READER, OPTION: "1000", "from": "latest"})
        writer = frame.writeStream.foreachBatch(publish).option("checkpointLocation", str(checkpoint))
        return writer.trigger(processingTime="0 seconds").start()

    return begin


def by_hand(steps: Callable[[DataFrame], DataFrame]) -> Callable[[SparkSession, str, Path], Any]:
    """The same steps of Spark's own."""

    def begin(spark: SparkSession, log: str, checkpoint: Path) -> Any:
        from catchment.gateway.log.spark import LogSource

        spark.dataSource.register(LogSource)
        entries = spark.readStream.format(LogSource.name()).option("path", log).option("from", "latest").load()
        rows = steps(entries.mapInArrow(_decoded, "user string, at long, amount long"))
        writer = rows.writeStream.foreachBatch(_counted).option("checkpointLocation", str(checkpoint))
        return writer.trigger(processingTime="0 seconds").start()

    return begin


def _counted(frame: DataFrame, epoch: int) -> None:
    frame.count()


def _decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from catchment.sync.codecs.delta_numpy import read_frames

    for batch in batches:
        if batch.num_rows:
            codecs, payloads = batch.column("codec").to_pylist(), batch.column("payload").to_pylist()
            frames = read_frames(Reading.schema, list(zip(codecs, payloads, strict=True)))
            user, *numbers = frames.columns
            names = pa.array(user.words, pa.string()).take(pa.array(user.values))
            arrays = [names, *(pa.array(column.values) for column in numbers)]
            yield pa.RecordBatch.from_arrays(arrays, names=["user", "at", "amount"])


def filtered(rows: DataFrame) -> DataFrame:
    """What `large` says."""
    return rows.where("amount >= 50").selectExpr("user", "at", "amount * 2 AS doubled")


def summed(rows: DataFrame) -> DataFrame:
    """What `totals` says."""
    state = "user string, at long, count long, total long"
    return rows.groupBy("user").transformWithState(_sums(), state, "Append", "None")


def _sums() -> Any:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Sums(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("sums", "count long, total long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            count, total = self._state.get() or (0, 0)
            for row in rows:
                count, total = count + 1, total + row.amount
                yield Row(user=key[0], at=row.at, count=count, total=total)
            self._state.update((count, total))

        def close(self) -> None:
            pass

    return Sums()


def measured(
    spark: SparkSession, begin: Callable[[SparkSession, str, Path], Any], home: Path, batches: int
) -> tuple[float, int | None]:
    """The median of so many batches behind the warm ones, in milliseconds; and of ours, from received to kept."""
    from catchment.cloud.latency import Latency

    log = home / "log"
    with Fed(log):
        query = begin(spark, str(log), home / "checkpoint")
        latency, seen = Latency(), dict[int, int]()
        while len(seen) < WARM + batches and query.isActive:
            latency.look(query)
            for report in query.recentProgress:
                source = report["sources"][0]
                if source["startOffset"] != source["endOffset"]:
                    seen[report["batchId"]] = report["durationMs"]["triggerExecution"]
            time.sleep(0.5)
        error = query.exception()
        query.stop()
    if error is not None:
        raise RuntimeError(str(error))
    took = [ms for number, ms in sorted(seen.items())][WARM:]
    delays = [delay.received_ms.p50 for delay in latency.outputs().values() if delay.received_ms is not None]
    return statistics.median(took), delays[0] if delays else None


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    from catchment.engines.spark.session import start_session

    rounds, batches = (1, 60) if quick else (3, 150)
    keyed_plan, keyed_part = plan_and_part()
    plain_plan = cm.build(passing)
    plain_part = next(part for part in plain_plan.at(cm.CLOUD) if part.inputs)
    took: dict[str, list[float]] = {}
    received: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session("bench cloud_latency", "local[2]")
        for turn in range(rounds):
            home = Path(folder)
            sides = {
                "stateless": ours(plain_plan, plain_part, home / f"{turn}-stateless"),
                "stateless by hand": by_hand(filtered),
                "keyed": ours(keyed_plan, keyed_part, home / f"{turn}-keyed"),
                "keyed by hand": by_hand(summed),
            }
            for name, begin in sides.items():
                place = home / f"{turn}-{name.replace(' ', '-')}"
                place.mkdir()
                median_ms, delay_ms = measured(spark, begin, place, batches)
                took.setdefault(name, []).append(median_ms)
                if delay_ms is not None:
                    received.setdefault(name, []).append(delay_ms)
                print(f"  {name}: {median_ms:.0f} ms a batch, {delay_ms} ms to the sink", file=sys.stderr, flush=True)
        spark.stop()
    floor = {name: statistics.median(values) for name, values in took.items()}
    rows = [
        [name, f"{ms:.0f}", str(round(statistics.median(received[name]))) if name in received else ""]
        for name, ms in floor.items()
    ]
    print(harness.table(["side", "ms a batch", "ms from received to its sink"], rows))
    ratios = {name: round(floor[f"{name} by hand"] / floor[name], 2) for name in ("stateless", "keyed")}
    bars = [
        Bar("a stateless batch takes at most 60 ms", floor["stateless"], at_most=60),
        Bar("a keyed batch takes at most 150 ms", floor["keyed"], at_most=150),
    ]
    return harness.conclude("cloud_latency", quick=quick, ratios=ratios, bars=bars, figures={"ms": floor})


if __name__ == "__main__":
    sys.exit(main())
