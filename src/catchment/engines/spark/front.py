"""The front of a part: stateless steps over columns, where the log is read or in the bucket; each bucket's packet.

Rows keep the places that they have in the log, so a bucket puts its events in the log's order again. What speaks of
time goes to the buckets that need it: ticks to all; promises and presence to all too, unless every step waits for its
key's own sources only, and then to the bucket of that user or device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

from catchment.engines.spark.events import FORGET, NO_PROMISE, PROGRESS, TICK, Arrived, Refused, Said, Uploads, by_place
from catchment.engines.spark.rows import Array, Column, Rows
from catchment.engines.spark.stages import DEVICE, ONE, SOURCE, USER, Stages
from catchment.engines.spark.state.pieces import hashed
from catchment.engines.spark.vector.build import vector_step
from catchment.engines.spark.vector.flow import Failed, Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.keys import column_values, distinct
from catchment.plan.graph import Port
from catchment.plan.history import Source
from catchment.program import steps


class Front:
    """The front of a part, for so many buckets. `entrances` says at which source step the elements of a stream enter.

    Where an upload as a whole belongs to one bucket it goes there as it came, a few bytes for each element, and the
    bucket itself runs the front on what it decodes: see `entered`.
    """

    def __init__(self, stages: Stages, buckets: int, entrances: Mapping[str, str] | None = None) -> None:
        self._stages = stages
        self._buckets = buckets
        self._streams = entrances or {}
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
            entrance: None
            if (route := stages.routes[arrival]) is None
            else [stages.rest.vertex(arrival).schemas[0].position(name) for name in route]
            for (_, arrival), entrance in stages.entrances.items()
        }
        self._known: dict[Any, int] = {}

    @property
    def is_undecoded(self) -> bool:
        """Whether uploads find their buckets as they came."""
        return self._stages.ways is not None

    def spread(self, arrived: Arrived) -> Iterator[tuple[int, bytes]]:
        """The packet of each bucket that gets anything."""
        shares = [Arrived(arrived.count) for _ in range(self._buckets)]
        said = arrived.said
        if arrived.uploads is not None:
            said = by_place([*said, *self._share_uploads(arrived.uploads, shares)])
        entered = self.entered(Arrived(arrived.count, arrived.rows, said, arrived.refused))
        for entrance, rows in entered.rows.items():
            self._share(entrance, rows, shares)
        self._tell(entered.said, shares)
        shares[0].refused = entered.refused
        for bucket, share in enumerate(shares):
            if share.rows or share.said or share.refused or share.uploads is not None:
                yield bucket, share.pack()

    def entered(self, arrived: Arrived) -> Arrived:
        """What comes out of the front: elements and promises by the source step of the rest that they enter at."""
        self._failed.found.clear()
        entered = Arrived(arrived.count)
        for origin, entrances in self._entrances.items():
            rows = arrived.rows.get(origin)
            if rows is not None and len(rows):
                for port, given in self._front(origin, rows).items():
                    arrival = self._stages.frontier[port]
                    if arrival in entrances and len(given):
                        entered.rows[entrances[arrival]] = given
        for each in arrived.said:
            if each[1] == PROGRESS:
                place, kind, step, *what = each
                entered.said += [(place, kind, door, *what) for door in self._entrances.get(step, {}).values()]
            else:
                entered.said.append(each)
        failed: list[Refused] = [(place, step, why, row) for place, _, step, why, row in self._failed.found]
        entered.refused = sorted([*arrived.refused, *failed], key=lambda each: each[0])
        return entered

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

    def _share(self, entrance: str, rows: Rows, shares: list[Arrived]) -> None:
        for bucket, which in self._by_bucket(self._bucket_of(rows, self._places[entrance])):
            shares[bucket].rows[entrance] = rows.take(which)

    def _share_uploads(self, uploads: Uploads, shares: list[Arrived]) -> list[Said]:
        """Each upload to its bucket; gives the promises in them that other buckets need too."""
        assert self._stages.ways is not None, "uploads of this part are opened where the log is read"
        stream = uploads.texts["stream"]
        ways = [self._stages.ways[self._streams[name]] for name in stream.words or []]
        bucket = np.zeros(len(uploads), np.int64)
        for way in set(ways):
            which = np.flatnonzero(np.array([each == way for each in ways], np.bool_)[stream.values])
            bucket[which] = self._bucket_of_uploads(uploads, way)[which]
        owner = uploads.texts["user"]
        # What only the upload's own bucket has to hear stays with it.
        stays = np.array([way == self._stages.heard_by for way in ways], np.bool_)[stream.values]
        stays &= np.array([word != "" for word in owner.words or []], np.bool_)[owner.values]
        said = uploads.take(np.flatnonzero(~stays)).promises(self._streams)
        uploads.numbers["promise_us"] = np.where(stays, uploads.numbers["promise_us"], NO_PROMISE)
        for number, which in self._by_bucket(bucket):
            shares[number].uploads = uploads.take(which)
        return said

    def _bucket_of_uploads(self, uploads: Uploads, way: str) -> Array:
        if way == ONE:
            return np.full(len(uploads), self._by_key(()), np.int64)
        by = uploads.texts[USER if way == USER else DEVICE]
        words = by.words or []
        found = [self._by_device(word) if way == SOURCE else self._by_key((word,)) for word in words]
        return np.array(found, np.int64)[by.values]

    def _by_bucket(self, bucket: Array) -> Iterator[tuple[int, Array]]:
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=self._buckets)).tolist()
        for number, (start, end) in enumerate(pairwise([0, *ends])):
            if end > start:
                yield number, order[start:end]

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
            if by is None or each[1] == TICK:
                for share in shares:
                    share.said.append(each)
            else:
                device, owner = each[3:5] if each[1] == PROGRESS else each[2:4]
                shares[self._by_key((owner if by == USER else device,))].said.append(each)


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
