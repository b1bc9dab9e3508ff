"""Results to devices: appended to the gateway's downlink, under a mark that a replay repeats.

Runs on executors. A mark names the output and the task's partition of the state, which never changes for a
checkpoint, so a batch that runs twice appends once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from catchment.engines.spark.results import Results
from catchment.gateway.downlink import Keep, Mark, Result, to_device, to_user
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.program.types import Row
from catchment.sync.codecs.codec import codec

CODEC = "msgpack"


@dataclass(frozen=True)
class DownlinkSink:
    """The deliveries of a plan, into the downlink of the gateway in that directory."""

    plan_document: bytes
    data: str
    generation: int

    @cached_property
    def plan(self) -> Plan:
        """The plan, read on the executor."""
        return document.read(self.plan_document)

    def takes(self, output: str) -> bool:
        """Whether that output goes to devices."""
        return any(stream.name == output and stream.deliver is not None for stream in self.plan.syncs)

    def append(self, output: str, part: int, epoch: int, upto: str, results: Results) -> None:
        """The results of one task of an epoch, once."""
        mark = Mark(self.plan.program, f"{output}/{part}", self.generation, epoch, upto)
        deliver = self.plan.sync(output).deliver
        assert deliver is not None
        store = open_downlink(Path(self.data))
        try:
            store.append(
                mark, encoded(self.plan, output, results), keep=Keep(deliver.keep), now_us=time.time_ns() // 1000
            )
        finally:
            store.close()


def encoded(plan: Plan, output: str, results: Results) -> list[Result]:
    """Results of one delivery, grouped by whom they are for and, where only the latest is kept, by their key."""
    stream = plan.sync(output)
    schema = plan.schemas[stream.schema]
    deliver = stream.deliver
    assert deliver is not None
    latest = deliver.keep == "latest"
    whom = schema.position(deliver.by)
    target = to_device if deliver.to == "device" else to_user
    keys = tuple(schema.position(key) for key in schema.keys) if latest else ()
    groups: dict[tuple[str, bytes], list[Row]] = {}
    for _at, _device, _owner, row in results:
        group = groups.setdefault((target(row[whom]), msgspec.msgpack.encode([row[key] for key in keys])), [])
        if latest:
            group.clear()
        group.append(tuple(row))
    return [
        Result(
            target=name,
            stream=f"{plan.program}/{output}",
            schema=bytes.fromhex(stream.schema),
            codec=CODEC,
            payload=codec(CODEC).encode(schema, rows),
            count=len(rows),
            key=key,
        )
        for (name, key), rows in groups.items()
    ]
