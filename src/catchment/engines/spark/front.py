"""The front of a part, where the log is read: stateless steps over columns, then each bucket's share as a packet.

Rows keep the places that they have in the log, so a bucket puts its events in the log's order again. What speaks of
time goes to the buckets that need it: ticks to all; promises and presence to all too, unless every step waits for its
key's own sources only, and then to the bucket of that user or device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from catchment.engines.spark.events import FORGET, PROGRESS, TICK, Arrived, Refused, Said
from catchment.engines.spark.rows import Array, Column, Rows
from catchment.engines.spark.stages import Stages
from catchment.engines.spark.state.pieces import hashed
from catchment.engines.spark.vector.build import vector_step
from catchment.engines.spark.vector.flow import Failed, Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.keys import column_values, distinct
from catchment.plan.graph import Port
from catchment.plan.history import Source
from catchment.program import steps


class Front:
    """The front of a part, for so many buckets."""

    def __init__(self, stages: Stages, buckets: int) -> None:
        self._stages = stages
        self._buckets = buckets
        self._failed = Failed()
        self._steps: dict[str, VectorStep] = {}
        graph = stages.front
        for number, vertex in enumerate(graph.vertices):
            if isinstance(vertex.step, steps.Union):
                continue
            schemas = tuple(graph.vertex(name).schemas[port] for name, port in vertex.inputs)
            step = vector_step(vertex, schemas)
            assert step is not None, "every stateless step has a vectorised form"
            step.name, step.number, step.failed = vertex.id, number, self._failed
            self._steps[vertex.id] = step
        self._entrances: dict[str, dict[str, str]] = {}
        for (origin, arrival), entrance in stages.entrances.items():
            self._entrances.setdefault(origin, {})[arrival] = entrance
        self._places = {
            arrival: None
            if (route := stages.routes[arrival]) is None
            else [stages.rest.vertex(arrival).schemas[0].position(name) for name in route]
            for arrival in stages.frontier.values()
        }
        self._known: dict[Any, int] = {}

    def spread(self, arrived: Arrived) -> Iterator[tuple[int, bytes]]:
        """The packet of each bucket that gets anything."""
        shares = [Arrived(arrived.count) for _ in range(self._buckets)]
        self._failed.found.clear()
        for origin, entrances in self._entrances.items():
            rows = arrived.rows.get(origin)
            if rows is not None and len(rows):
                for port, given in self._front(origin, rows).items():
                    arrival = self._stages.frontier[port]
                    if arrival in entrances:
                        self._share(arrival, entrances[arrival], given, shares)
        self._tell(arrived.said, shares)
        failed: list[Refused] = [(place, step, why, row) for place, _, step, why, row in self._failed.found]
        shares[0].refused = sorted([*arrived.refused, *failed], key=lambda each: each[0])
        for bucket, share in enumerate(shares):
            if share.rows or share.said or share.refused:
                yield bucket, share.pack()

    def promise(self, origin: str, source: Source, at: int) -> Iterator[tuple[int, bytes]]:
        """The packets that tell every bucket how far a source step of the front has promised."""
        doors = self._entrances.get(origin, {}).values()
        packet = Arrived(1, said=[(0, PROGRESS, door, source.device, source.owner, at) for door in doors]).pack()
        for bucket in range(self._buckets):
            yield bucket, packet

    def _front(self, origin: str, rows: Rows) -> dict[Port, Rows]:
        """What reaches each port of the frontier from one source step."""
        given: dict[Port, Flow] = {}
        for vertex in self._stages.front.vertices:
            inputs = [given[port] for port in vertex.inputs if port in given]
            if vertex.id == origin:
                given[vertex.id, 0] = Flow(rows, [])
            elif inputs and isinstance(vertex.step, steps.Union):
                given[vertex.id, 0] = Flow(_in_order([flow.rows for flow in inputs]), [])
            elif inputs:
                (given[vertex.id, 0],) = self._steps[vertex.id].run(inputs[0])
        return {port: given[port].rows for port in self._stages.frontier if port in given}

    def _share(self, arrival: str, entrance: str, rows: Rows, shares: list[Arrived]) -> None:
        bucket = self._bucket_of(rows, self._places[arrival])
        order = np.argsort(bucket, kind="stable")
        rows = rows.take(order)
        ends = np.cumsum(np.bincount(bucket, minlength=self._buckets)).tolist()
        start = 0
        for share, end in zip(shares, ends, strict=True):
            if end > start:
                share.rows[entrance] = rows.take(np.arange(start, end))
            start = end

    def _bucket_of(self, rows: Rows, places: Sequence[int] | None) -> Array:
        if places is None:
            by_source = [self._by_device(source.device) for source in rows.sources]
            return np.array(by_source, np.int64)[rows.source]
        if not places:
            return np.full(len(rows), self._by_key(()), np.int64)
        columns: list[Column] = [rows.columns[place] for place in places]
        codes, firsts = distinct(columns, len(rows))
        keys = zip(*[column_values(column, firsts) for column in columns], strict=True)
        return np.array([self._by_key(key) for key in keys], np.int64)[codes]

    def _by_key(self, key: tuple[Any, ...]) -> int:
        return hashed(key) % self._buckets

    def _by_device(self, device: str) -> int:
        return crc32(device.encode()) % self._buckets

    def _tell(self, said: Sequence[Said], shares: list[Arrived]) -> None:
        by = self._stages.heard_by
        for each in said:
            if each[1] == TICK:
                for share in shares:
                    share.said.append(each)
                continue
            entering = [each]
            if each[1] == PROGRESS:
                place, kind, step, device, owner, at = each
                doors = self._entrances.get(step, {}).values()
                entering = [(place, kind, door, device, owner, at) for door in doors]
            else:
                device, owner = each[2:4]
            if by is None:
                for share in shares:
                    share.said += entering
            else:
                shares[self._by_key((owner if by == "user" else device,))].said += entering


def _in_order(parts: list[Rows]) -> Rows:
    whole = Rows.concat(parts)
    return whole.take(np.argsort(whole.place, kind="stable"))


def entering(arrived: Arrived, sources: dict[str, Any]) -> dict[str, Flow]:
    """What each source step of a graph gets, given the schemas of those steps: its own promises, and all else said."""
    flows = {}
    for step, schema in sources.items():
        controls = []
        for place, kind, *what in arrived.said:
            if kind == FORGET:
                continue
            if kind != PROGRESS:
                controls.append((place, kind, *what))
            elif what[0] == step:
                controls.append((place, kind, *what[1:]))
        flows[step] = Flow(arrived.rows.get(step) or Rows.none(kinds_of(schema)), controls)
    return flows
