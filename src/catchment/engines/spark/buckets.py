"""The keyed-state operator: a part's operators, one set per hash bucket, inside Spark's state.

Each batch brings a bucket its packets in the log's order; the bucket's engine is restored from state, takes the whole
batch, and its results leave as packets too. What it computes depends on the order of the log alone: time enters as
ticks, so neither the bounds of a batch nor the clock of an executor can change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from catchment.engines.spark.events import Arrived
from catchment.engines.spark.front import entering
from catchment.engines.spark.stages import Stages
from catchment.engines.spark.vector.engine import VectorEngine
from catchment.program import steps

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ValueState

BUCKETS = 16
PACKETS = "bucket int, partition int, offset long, packet binary"
RESULTS = "bucket int, output string, first long, count int, upto string, packet binary"
"""Results of one output in one bucket, numbered from `first` in that bucket, of everything in the log up to `upto` (a
JSON object: offset by partition). What a packet holds, `Results` reads."""
QUARANTINE = "quarantine"
"""The output that failures leave by: packets of [step, reason, row]."""


class Running:
    """The engine of a bucket, which takes batch after batch, of this bucket or of another when it is restored."""

    def __init__(self, stages: Stages) -> None:
        self._outputs = (*stages.outputs, QUARANTINE)
        self._engine = VectorEngine(stages.rest, stages.outputs)
        self._sources = {v.id: v.schemas[0] for v in stages.rest.vertices if isinstance(v.step, steps.SOURCES)}
        self._blank = self._engine.snapshot()
        self._given: dict[str, int] = {}
        self.upto: dict[str, int] = {}

    def restore(self, state: bytes | None) -> None:
        """Remember what was saved, or begin anew."""
        saved = {"engine": self._blank, "given": {}, "upto": {}} if state is None else msgspec.msgpack.decode(state)
        self._engine.restore(saved["engine"])
        self._given, self.upto = dict(saved["given"]), dict(saved["upto"])

    def save(self) -> bytes:
        """All that is remembered."""
        return _ENCODER.encode({"engine": self._engine.snapshot(), "given": self._given, "upto": self.upto})

    def take(self, arrived: Arrived) -> Iterator[tuple[str, int, int, bytes]]:
        """Take a batch; give (output, number of the first, how many, packet) for each output that gave anything."""
        results, failed = self._engine.run(entering(arrived, self._sources))
        quarantined = [(step, why, what) for _, step, why, what in arrived.refused]
        quarantined += failed
        for output in self._outputs:
            if output == QUARANTINE:
                count, packet = len(quarantined), _ENCODER.encode(quarantined)
            else:
                rows = results.get(output)
                count, packet = (0, b"") if rows is None else (len(rows), rows.pack())
            if count:
                first = self._given.get(output, 0)
                self._given[output] = first + count
                yield output, first, count, packet


class Bucket(StatefulProcessor):
    """The rest of a part, per bucket, as `running` makes it on the executor."""

    def __init__(self, running: Callable[[], Running]) -> None:
        self._make = running

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's call before any rows."""
        self._state: ValueState = handle.getValueState("engine", "state binary")

    def running(self, bucket: int) -> Running:
        """What runs in a bucket: the same in each."""
        return self._make()

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[SparkRow]:  # noqa: N802, N803
        """Spark's call with a bucket's packets of this batch."""
        running = self.running(key[0])
        saved = self._state.get()
        running.restore(None if saved is None else bytes(saved[0]))
        packets = sorted(rows, key=lambda r: (r.partition, r.offset))
        for row in packets:
            running.upto[str(row.partition)] = row.offset
        reached = msgspec.json.encode(running.upto, order="sorted").decode()
        arrived = Arrived.joined([Arrived.unpack(bytes(row.packet)) for row in packets])
        for output, first, count, packet in running.take(arrived):
            yield SparkRow(
                bucket=key[0], output=output, first=first, count=count, upto=reached, packet=bytearray(packet)
            )
        self._state.update((bytearray(running.save()),))

    def close(self) -> None:
        """Spark's call at the end."""


_ENCODER = msgspec.msgpack.Encoder()
