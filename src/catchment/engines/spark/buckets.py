"""The keyed-state operator: a part's operators, one set per hash bucket, inside Spark's state.

Each batch brings a bucket its packets in the log's order; the bucket's engine is restored from state, takes the whole
batch, and its results leave as packets too. What it computes depends on the order of the log alone: time enters as
ticks, so neither the bounds of a batch nor the clock of an executor can change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from catchment.engines.spark.events import Arrived
from catchment.engines.spark.front import entering
from catchment.engines.spark.stages import Stages
from catchment.engines.spark.state.shards import BOOK, KEYS_OF_A_SHARD, Book, Shards, Store
from catchment.engines.spark.vector.engine import VectorEngine
from catchment.engines.spark.workers import settle
from catchment.errors import ProgramError
from catchment.program import steps

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import MapState

BUCKETS = 16
PACKETS = "bucket int, partition int, offset long, packet binary"
RESULTS = "bucket int, output string, first long, count int, upto string, packet binary"
"""Results of one output in one bucket, numbered from `first` in that bucket, of everything in the log up to `upto` (a
JSON object: offset by partition). What a packet holds, `Results` reads."""
STATE = "state"
"""The name of the state variable: entries by number, of which `BOOK` is what is of no key."""
QUARANTINE = "quarantine"
"""The output that failures leave by: packets of [step, reason, row]."""


def table_of(packets: Iterable[tuple[int, bytes]], partition: int, offset: int) -> pa.RecordBatch:
    """Packets that come from that place, as `PACKETS` has them."""
    import pyarrow as pa

    found = list(packets)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([bucket for bucket, _ in found], pa.int32()),
            pa.array([partition] * len(found), pa.int32()),
            pa.array([offset] * len(found), pa.int64()),
            pa.array([packet for _, packet in found], pa.binary()),
        ],
        names=["bucket", "partition", "offset", "packet"],
    )


Result: TypeAlias = tuple[str, int, int, bytes]


class Running:
    """The engine of a bucket, which takes batch after batch, of this bucket or another, from what each has stored."""

    def __init__(
        self, stages: Stages, keys_of_a_shard: int = KEYS_OF_A_SHARD, opens: Callable[[Arrived], Arrived] | None = None
    ) -> None:
        """`opens` makes elements and promises of uploads that come as they are."""
        self._opens = opens
        self._outputs = (*stages.outputs, QUARANTINE)
        self._engine = VectorEngine(stages.rest, stages.outputs)
        self._sources = {v.id: v.schemas[0] for v in stages.rest.vertices if isinstance(v.step, steps.SOURCES)}
        self._shards = Shards(stages, self._engine, keys_of_a_shard)

    @property
    def is_sharded(self) -> bool:
        """Whether a batch reads and writes only the keys that it touches."""
        return self._shards.is_sharded

    def take(self, arrived: Arrived, reached: dict[str, int], store: Store) -> tuple[str, list[Result]]:
        """Take a batch that reaches so far in each partition of the log.

        Gives how far the bucket has come, and (output, number of the first, how many, packet) for each output that gave
        anything.
        """
        saved = store.get(BOOK)
        book = Book() if saved is None else _BOOK.decode(saved)
        book.upto.update(reached)
        if arrived.uploads is not None:
            assert self._opens is not None, "uploads are opened by whom this was made for"
            arrived = Arrived.together(arrived, self._opens(arrived))
        told = self._shards.restore(store, book, arrived)
        flows = entering(arrived, self._sources)
        for flow in flows.values():
            flow.controls[:0] = told
        results, failed = self._engine.run(flows)
        quarantined = [(step, why, what) for _, step, why, what in arrived.refused]
        quarantined += failed
        given: list[Result] = []
        for output in self._outputs:
            if output == QUARANTINE:
                count, packet = len(quarantined), _ENCODER.encode(quarantined)
            else:
                rows = results.get(output)
                count, packet = (0, b"") if rows is None else (len(rows), rows.pack())
            if count:
                first = book.given.get(output, 0)
                book.given[output] = first + count
                given.append((output, first, count, packet))
        self._shards.save(store, book, arrived)
        store.put(BOOK, _ENCODER.encode(book))
        return msgspec.json.encode(book.upto, order="sorted").decode(), given

    def look_up(self, store: Store, route: tuple[Any, ...]) -> dict[str, Any]:
        """What each step remembers of the keys whose elements go this way: `route` is what chooses the bucket."""
        if not self.is_sharded:
            raise ProgramError(
                "C334",
                "what this part remembers cannot be looked up by key",
                why="one of its steps keeps the state of all keys of a bucket in one piece",
                fix="look at its results, or give the step a part of its own",
            )
        saved = store.get(BOOK)
        return {} if saved is None else self._shards.peek(store, _BOOK.decode(saved), route)


class InSpark:
    """A bucket's state in Spark's: one entry of a map for each number."""

    def __init__(self, entries: MapState) -> None:
        self._entries = entries

    def get(self, number: int) -> bytes | None:
        found = self._entries.getValue((number,))
        return None if found is None else bytes(found[0])

    def put(self, number: int, state: bytes) -> None:
        self._entries.updateValue((number,), (bytearray(state),))

    def remove(self, number: int) -> None:
        self._entries.removeKey((number,))


class Bucket(StatefulProcessor):
    """The rest of a part, per bucket, as `running` makes it on the executor."""

    def __init__(self, running: Callable[[], Running]) -> None:
        self._make = running

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's call before any rows."""
        self._store = InSpark(handle.getMapState(STATE, "number int", "state binary"))

    def running(self, bucket: int) -> Running:
        """What runs in a bucket: the same in each."""
        return self._make()

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[SparkRow]:  # noqa: N802, N803
        """Spark's call with a bucket's packets of this batch."""
        packets = sorted(rows, key=lambda r: (r.partition, r.offset))
        reached = {str(row.partition): row.offset for row in packets}
        arrived = Arrived.joined([Arrived.unpack(bytes(row.packet)) for row in packets])
        upto, given = self.running(key[0]).take(arrived, reached, self._store)
        for output, first, count, packet in given:
            yield SparkRow(bucket=key[0], output=output, first=first, count=count, upto=upto, packet=bytearray(packet))

    def close(self) -> None:
        """Spark's call at the end."""
        settle()


_ENCODER = msgspec.msgpack.Encoder()
_BOOK = msgspec.msgpack.Decoder(Book)
