"""The query of a cloud part: the log in, packets to buckets, operators in Spark's state, results to sinks.

Everything between the log and the sinks runs on executors; the driver sees offsets and counts. Exactly once: Spark
records the range of each batch before it runs, a replay of a batch reads the same bytes, and a sink takes each
(program, query, generation, epoch) once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from catchment.cloud.flow import PacedLog
from catchment.cloud.intake import Intake
from catchment.cloud.latency import observe_results, observe_uploads
from catchment.engines.spark.buckets import PACKETS, RESULTS, Bucket, Front
from catchment.engines.spark.stages import Stages, cut
from catchment.plan import document
from catchment.plan.graph import Port
from catchment.plan.physical import Part, Plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Publish = Callable[["DataFrame", int], None]


def outputs_of(plan: Plan, part: Part) -> dict[str, Port]:
    """What leaves a cloud part: sync streams toward devices, by name."""
    return {name: plan.sync(name).source for name in part.outputs}


def results(spark: SparkSession, plan: Plan, part: Part, log: str, options: dict[str, str]) -> DataFrame:
    """The results of a part, from the log in that directory: see `RESULTS`."""
    spark.dataSource.register(PacedLog)
    entries = spark.readStream.format(PacedLog.name()).option("path", log).options(**options).load()
    entries = observe_uploads(entries)
    shipped = document.write(plan)
    packets = entries.mapInArrow(_spread(shipped, part.name), PACKETS)
    bucket = Bucket(partial(stages_of, shipped, part.name))
    found = packets.groupBy("bucket").transformWithState(bucket, RESULTS, "Append", "None")
    return observe_results(found, part.outputs)


def start(frame: DataFrame, name: str, checkpoint: str, publish: Publish, *, every_ms: int) -> StreamingQuery:
    """Run the query for good, from its checkpoint if there is one."""
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime=f"{every_ms} milliseconds").foreachBatch(publish).start()


def stages_of(plan_document: bytes, part_name: str) -> Stages:
    """The stages of a part of a shipped plan: cut again wherever they run, for a plan is data and they are not."""
    plan = document.read(plan_document)
    part = plan.part(part_name)
    return cut(plan.graph(part), outputs_of(plan, part))


def _spread(plan_document: bytes, part_name: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs where the log is read: entries in, a packet for each bucket out."""

    def spread(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        plan = document.read(plan_document)
        part = plan.part(part_name)
        intake = Intake(plan, part)
        front = Front(cut(plan.graph(part), outputs_of(plan, part)))
        for batch in batches:
            place = None
            for entry in batch.to_pylist():
                place = place or (entry["partition"], entry["offset"])
                for event in intake.events(entry):
                    front.take(event)
            for refusal in intake.drain():
                front.fail(*refusal)
            if place is None:
                continue
            packets = list(front.drain())
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([bucket for bucket, _ in packets], pa.int32()),
                    pa.array([place[0]] * len(packets), pa.int32()),
                    pa.array([place[1]] * len(packets), pa.int64()),
                    pa.array([packet for _, packet in packets], pa.binary()),
                ],
                names=["bucket", "partition", "offset", "packet"],
            )

    return spread
