"""Results to devices: each task appends what it holds to the gateway's downlink, under a mark that a replay repeats.

Runs on executors. A task's mark names the output and the task's partition of the state, which never changes for a
checkpoint, so a batch that runs twice appends once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from catchment.gateway.downlink import Downlink, Keep, Mark, Result, to_device, to_user
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.program.types import Row
from catchment.sync.codecs.codec import codec

if TYPE_CHECKING:
    import pyarrow as pa

CODEC = "msgpack"


@dataclass(frozen=True)
class DownlinkSink:
    """The downlink of a plan's deliveries, in the store at `path`."""

    plan: bytes
    path: str
    query: str
    generation: int

    def write(self, epoch: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """What a task does with its results of an epoch: append them, and say how many there were."""

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa
            from pyspark import TaskContext

            context = TaskContext.get()
            partition = context.partitionId() if context is not None else 0
            plan = document.read(self.plan)
            gathered: dict[str, list[Any]] = {}
            ranges: set[str] = set()
            for batch in batches:
                for result in batch.to_pylist():
                    if result["output"] in plan_deliveries(plan):
                        gathered.setdefault(result["output"], []).extend(msgspec.msgpack.decode(result["packet"]))
                        ranges.add(result["upto"])
            counts = [self._append(plan, name, partition, epoch, rows, ranges) for name, rows in gathered.items()]
            yield pa.RecordBatch.from_arrays(
                [pa.array(list(gathered), pa.string()), pa.array(counts, pa.int64())], names=["output", "count"]
            )

        return task

    def _append(self, plan: Plan, name: str, partition: int, epoch: int, given: list[Any], ranges: set[str]) -> int:
        mark = Mark(plan.program, f"{self.query}/{name}/{partition}", self.generation, epoch, " ".join(sorted(ranges)))
        deliver = plan.sync(name).deliver
        keep = Keep(deliver.keep) if deliver is not None else Keep.ALL
        store = Downlink(self.path, nonce=b"")
        try:
            store.append(mark, encoded(plan, name, given), keep=keep, now_us=time.time_ns() // 1000)
        finally:
            store.close()
        return len(given)


def plan_deliveries(plan: Plan) -> frozenset[str]:
    """Names of the sync streams that go to devices."""
    return frozenset(stream.name for stream in plan.syncs if stream.deliver is not None)


def encoded(plan: Plan, name: str, given: list[Any]) -> list[Result]:
    """Results of one delivery, grouped by whom they are for."""
    stream = plan.sync(name)
    schema = plan.schemas[stream.schema]
    deliver = stream.deliver
    assert deliver is not None
    place = schema.position(deliver.by)
    target = to_device if deliver.to == "device" else to_user
    keys = tuple(schema.position(key) for key in schema.keys)
    by_target: dict[tuple[str, bytes], list[Row]] = {}
    for _at, _device, _owner, row in given:
        key = msgspec.msgpack.encode([row[k] for k in keys])
        group = by_target.setdefault((target(row[place]), key), [])
        if deliver.keep == "latest":
            group.clear()
        group.append(tuple(row))
    return [
        Result(
            target=whom,
            stream=f"{plan.program}/{name}",
            schema=bytes.fromhex(stream.schema),
            codec=CODEC,
            payload=codec(CODEC).encode(schema, rows),
            count=len(rows),
            key=key,
        )
        for (whom, key), rows in by_target.items()
    ]
