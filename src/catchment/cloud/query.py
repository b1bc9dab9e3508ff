"""The query of a cloud part: the log in, packets to buckets, operators in Spark's state, results to sinks.

Everything between the log and the sinks runs on executors; the driver sees offsets and counts. Exactly once: Spark
records the range of each batch before it runs, a replay of a batch reads the same bytes, and a sink takes each
(program, query, generation, epoch) once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING

from catchment.cloud.arriving import PartLog, for_part, reading
from catchment.cloud.latency import observe_results, observe_uploads
from catchment.cloud.leaving import outputs_of, stages_of
from catchment.cloud.sources.reading import packets_of, rows_of
from catchment.engines.spark.buckets import PACKETS, RESULTS, Bucket, Running
from catchment.engines.spark.events import Arrived
from catchment.engines.spark.front import Front
from catchment.plan import document
from catchment.plan.physical import Part, Plan
from catchment.program import steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Publish = Callable[["DataFrame", int], None]


def results(spark: SparkSession, plan: Plan, part: Part, log: str, options: dict[str, str]) -> DataFrame:
    """The results of a part, from the log in that directory and from what it reads itself: see `RESULTS`."""
    shipped = document.write(plan)
    packets = _read(spark, plan, part)
    if part.inputs:
        spark.dataSource.register(PartLog)
        stream = spark.readStream.format(PartLog.name()).option("path", log)
        packets.insert(0, observe_uploads(stream.options(**options, **for_part(shipped, part.name)).load()))
    bucket = Bucket(partial(_running, shipped, part.name))
    arriving = reduce(lambda one, other: one.union(other), packets)
    found = arriving.groupBy("bucket").transformWithState(bucket, RESULTS, "Append", "None")
    return observe_results(found, tuple(outputs_of(plan, part)))


def _read(spark: SparkSession, plan: Plan, part: Part) -> list[DataFrame]:
    """The packets of each source that Spark reads itself."""
    front = partial(_front, document.write(plan), part.name)
    external = [vertex for vertex in part.vertices if isinstance(vertex.step, steps.External)]
    return [
        rows_of(spark, vertex).mapInArrow(packets_of(front, vertex, number), PACKETS)
        for number, vertex in enumerate(external)
    ]


def start(frame: DataFrame, name: str, checkpoint: str, publish: Publish, *, every_ms: int) -> StreamingQuery:
    """Run the query for good, from its checkpoint if there is one."""
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime=f"{every_ms} milliseconds").foreachBatch(publish).start()


@lru_cache(maxsize=8)
def _running(plan_document: bytes, part_name: str) -> Running:
    """What runs in a bucket, made once in each worker: it is restored for each bucket and batch."""
    intake, front = reading(plan_document, part_name)

    def opens(arrived: Arrived) -> Arrived:
        return front.entered(intake.open(Arrived(arrived.count, uploads=arrived.uploads)))

    return Running(stages_of(plan_document, part_name), opens=opens)


def _front(plan_document: bytes, part_name: str) -> Front:
    return reading(plan_document, part_name)[1]
