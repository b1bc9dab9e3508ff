"""The keyed-state operator: a part's operators, one set per hash bucket, inside Spark's state.

Each batch brings a bucket its packets in the log's order; the bucket's engine is restored from state, takes the
events, and its results leave as packets too. What it computes depends on the order of the log alone: time enters as
ticks, so neither the bounds of a batch nor the clock of an executor can change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from catchment.engines.edge import EdgeEngine
from catchment.engines.spark.events import ELEMENT, FAILURE, PROGRESS, Event, pack, unpack
from catchment.engines.spark.stages import Stages
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Source
from catchment.program.types import Row

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ValueState

BUCKETS = 16
PACKETS = "bucket int, partition int, offset long, packet binary"
RESULTS = "bucket int, output string, first long, count int, upto string, packet binary"
"""Results of one output in one bucket, numbered from `first` in that bucket, of everything in the log up to `upto` (a
JSON object: offset by partition). What a packet holds, `Results` reads."""
QUARANTINE = "quarantine"
"""The output that failures leave by: packets of [step, reason, row]."""


class Front:
    """The front of a part: takes events as the log has them, gives each bucket its own."""

    def __init__(self, stages: Stages, buckets: int = BUCKETS) -> None:
        self._engine = EdgeEngine(stages.front, on_failure=lambda step, error, row: self.fail(step, error.reason, row))
        self._entrances: dict[str, dict[str, str]] = {}
        for (origin, arrival), entrance in stages.entrances.items():
            self._entrances.setdefault(origin, {})[arrival] = entrance
        self._entered: dict[str, str] = {}
        self._buckets: list[list[Event]] = [[] for _ in range(buckets)]
        for port, arrival in stages.frontier.items():
            schema = stages.rest.vertex(arrival).schemas[0]
            places = tuple(schema.position(name) for name in stages.routes[arrival])
            self._engine.on_output(port, self._router(arrival, places))

    def take(self, event: Event) -> None:
        """Take an event. Only elements pass through the front's steps; what speaks of time goes to every bucket."""
        match event[0]:
            case 0:  # ELEMENT
                _, step, at, device, owner, row = event
                self._entered = self._entrances[step]
                self._engine.element(step, at, Source(device, owner), row)
            case 1:  # PROGRESS
                _, step, device, owner, at = event
                for entrance in self._entrances[step].values():
                    self._to_all((PROGRESS, entrance, device, owner, at))
            case _:
                self._to_all(event)

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """The packets gathered, by bucket."""
        for bucket, events in enumerate(self._buckets):
            if events:
                yield bucket, pack(events)
                events.clear()

    def fail(self, step: str, reason: str, what: Any) -> None:
        """Quarantine what cannot be taken; it is written with the results."""
        self._buckets[0].append((FAILURE, step, reason, what))

    def _to_all(self, event: Event) -> None:
        for events in self._buckets:
            events.append(event)

    def _router(self, arrival: str, places: tuple[int, ...]) -> Any:
        buckets = self._buckets
        spread = len(buckets)
        encode = msgspec.msgpack.encode

        def element(number: int, at: int, source: Source, row: Row) -> None:
            key = encode([row[place] for place in places]) if places else source[0].encode()
            buckets[crc32(key) % spread].append((ELEMENT, self._entered[arrival], at, source[0], source[1], row))

        return element


class Bucket(StatefulProcessor):
    """The rest of a part, per bucket, as `stages` makes it on the executor."""

    def __init__(self, stages: Callable[[], Stages]) -> None:
        self._make = stages

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's call before any rows."""
        self._state: ValueState = handle.getValueState("engine", "state binary")
        self._stages = self._make()

    def stages(self, bucket: int) -> Stages:
        """What runs in a bucket: the same in each."""
        return self._stages

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[SparkRow]:  # noqa: N802, N803
        """Spark's call with a bucket's packets of this batch."""
        stages = self.stages(key[0])
        run = _Run(stages.rest, stages.outputs)
        saved = self._state.get()
        if saved is not None:
            run.restore(msgspec.msgpack.decode(bytes(saved[0])))
        for row in sorted(rows, key=lambda r: (r.partition, r.offset)):
            run.take(unpack(bytes(row.packet)))
            run.upto[str(row.partition)] = row.offset
        reached = msgspec.json.encode(run.upto, order="sorted").decode()
        for output, first, given in run.results():
            packet = bytearray(msgspec.msgpack.encode(given))
            yield SparkRow(bucket=key[0], output=output, first=first, count=len(given), upto=reached, packet=packet)
        self._state.update((bytearray(msgspec.msgpack.encode(run.snapshot())),))

    def close(self) -> None:
        """Spark's call at the end."""


class _Run:
    """A bucket's engine for one batch, with what it gives."""

    def __init__(self, graph: Graph, outputs: dict[str, Port]) -> None:
        self.upto: dict[str, int] = {}
        self._engine = EdgeEngine(graph, on_failure=lambda step, error, row: self._fail(step, error.reason, row))
        self._failures = 0
        self._given: dict[str, list[Any]] = {name: [] for name in (*outputs, QUARANTINE)}
        self._firsts: dict[str, int] = {}
        for name, port in outputs.items():
            self._engine.on_output(port, self._collector(name))

    def restore(self, kept: dict[str, Any]) -> None:
        self._engine.restore(kept["engine"])
        self._failures, self.upto = kept["failures"], kept["upto"]

    def snapshot(self) -> dict[str, Any]:
        return {"engine": self._engine.snapshot(), "failures": self._failures, "upto": self.upto}

    def take(self, events: list[Event]) -> None:
        engine = self._engine
        for event in events:
            match event[0]:
                case 0:  # ELEMENT
                    _, step, at, device, owner, row = event
                    engine.element(step, at, Source(device, owner), row)
                case 1:  # PROGRESS
                    _, step, device, owner, at = event
                    engine.progress(step, Source(device, owner), at)
                case 2:  # PRESENCE
                    _, device, owner, since = event
                    engine.presence(Source(device, owner), since)
                case 3:  # TICK
                    engine.tick(event[1])
                case _:  # FAILURE
                    self._fail(*event[1:])

    def results(self) -> Iterator[tuple[str, int, list[Any]]]:
        """Of each output that gave something: the number of the first, and all."""
        for output, given in self._given.items():
            if given:
                yield output, self._firsts[output], given

    def _collector(self, output: str) -> Callable[[int, int, Source, Row], None]:
        into, firsts = self._given[output], self._firsts

        def element(number: int, at: int, source: Source, row: Row) -> None:
            firsts.setdefault(output, number)
            into.append((at, source[0], source[1], row))

        return element

    def _fail(self, step: str, reason: str, what: Any) -> None:
        self._firsts.setdefault(QUARANTINE, self._failures)
        self._failures += 1
        self._given[QUARANTINE].append((step, reason, what))
