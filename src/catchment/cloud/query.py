"""The query of a cloud part: the log in, packets to buckets, operators in Spark's state, results to sinks.

Everything between the log and the sinks runs on executors; the driver sees offsets and counts. Exactly once: Spark
records the range of each batch before it runs, a replay of a batch reads the same bytes, and a sink takes each
(program, query, generation, epoch) once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING

from catchment.cloud.flow import PacedLog
from catchment.cloud.intake import Intake
from catchment.cloud.latency import observe_results, observe_uploads
from catchment.cloud.sources.reading import packets_of, rows_of
from catchment.engines.spark.buckets import BUCKETS, PACKETS, RESULTS, Bucket, Running
from catchment.engines.spark.front import Front
from catchment.engines.spark.stages import Stages, cut
from catchment.plan import document
from catchment.plan.graph import Port
from catchment.plan.physical import Part, Plan
from catchment.program import steps

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Publish = Callable[["DataFrame", int], None]


def outputs_of(plan: Plan, part: Part) -> dict[str, Port]:
    """What leaves a cloud part: sync streams toward devices by name, and what sinks keep."""
    return {**{name: plan.sync(name).source for name in part.outputs}, **kept_by(plan, part)[1]}


def kept_by(plan: Plan, part: Part) -> tuple[dict[str, str], dict[str, Port]]:
    """The output that each sink of a part takes, and where outputs come from that nothing else gives.

    Several sinks of one stream take one output, which is that of a delivery where there is one.
    """
    outputs = {plan.sync(name).source: name for name in part.outputs}
    taken: dict[str, str] = {}
    more: dict[str, Port] = {}
    for vertex in part.vertices:
        if isinstance(vertex.step, steps.Sink):
            port = vertex.inputs[0]
            name = outputs.setdefault(port, f"{port[0]}:{port[1]}")
            taken[vertex.id] = name
            if name not in part.outputs:
                more[name] = port
    return taken, more


def results(spark: SparkSession, plan: Plan, part: Part, log: str, options: dict[str, str]) -> DataFrame:
    """The results of a part, from the log in that directory and from what it reads itself: see `RESULTS`."""
    shipped = document.write(plan)
    packets = _read(spark, plan, part)
    if part.inputs:
        spark.dataSource.register(PacedLog)
        # Programs share a log: what is of no stream that this part reads need not become a row.
        read = json.dumps([f"{plan.program}/{name}" for name in part.inputs])
        source = spark.readStream.format(PacedLog.name()).option("path", log).option("streams", read)
        entries = source.options(**options).load()
        packets.insert(0, observe_uploads(entries).mapInArrow(_spread(shipped, part.name), PACKETS))
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


def stages_of(plan_document: bytes, part_name: str) -> Stages:
    """The stages of a part of a shipped plan: cut again wherever they run, for a plan is data and they are not."""
    plan = document.read(plan_document)
    part = plan.part(part_name)
    return cut(plan.graph(part), outputs_of(plan, part))


@lru_cache(maxsize=8)
def _running(plan_document: bytes, part_name: str) -> Running:
    """What runs in a bucket, made once in each worker: it is restored for each bucket and batch."""
    return Running(stages_of(plan_document, part_name))


@lru_cache(maxsize=8)
def _reading(plan_document: bytes, part_name: str) -> tuple[Intake, Front]:
    """What runs where the log is read, made once in each worker: it remembers nothing."""
    plan = document.read(plan_document)
    part = plan.part(part_name)
    return Intake(plan, part), Front(stages_of(plan_document, part_name), BUCKETS)


def _front(plan_document: bytes, part_name: str) -> Front:
    return _reading(plan_document, part_name)[1]


def _spread(plan_document: bytes, part_name: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs where the log is read: entries in, a packet for each bucket out."""

    def spread(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        intake, front = _reading(plan_document, part_name)
        for batch in batches:
            if not batch.num_rows:
                continue
            packets = list(front.spread(intake.read(batch)))
            partition, offset = batch.column("partition")[0].as_py(), batch.column("offset")[0].as_py()
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([bucket for bucket, _ in packets], pa.int32()),
                    pa.array([partition] * len(packets), pa.int32()),
                    pa.array([offset] * len(packets), pa.int64()),
                    pa.array([packet for _, packet in packets], pa.binary()),
                ],
                names=["bucket", "partition", "offset", "packet"],
            )

    return spread
