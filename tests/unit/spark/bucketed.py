"""One bucket without Spark: its front, its engine, and a store that tells what was read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from catchment.engines.spark.buckets import QUARANTINE, Running
from catchment.engines.spark.events import Arrived
from catchment.engines.spark.front import Front
from catchment.engines.spark.results import Results
from catchment.engines.spark.stages import Stages, cut
from catchment.engines.spark.state.shards import BOOK, Book
from catchment.plan.graph import Graph, Port, graph_of
from catchment.plan.history import Element, Entry, Failure, Outcome, Progress, Result, Source
from catchment.testing import alone
from tests.unit.edge.generated_records import Fix
from tests.unit.spark.vectorised import arrived

OUTPUT = "{}|{}"


class Memory:
    """A store, and what was read and written since one last looked."""

    def __init__(self) -> None:
        self.kept: dict[int, bytes] = {}
        self.read: set[int] = set()
        self.written: set[int] = set()

    def get(self, number: int) -> bytes | None:
        self.read.add(number)
        return self.kept.get(number)

    def put(self, number: int, state: bytes) -> None:
        self.written.add(number)
        self.kept[number] = state

    def remove(self, number: int) -> None:
        self.kept.pop(number, None)

    def book(self) -> Book:
        return msgspec.msgpack.decode(self.kept[BOOK], type=Book)


class Bucket:
    """One bucket of a graph, batch by batch."""

    def __init__(self, graph: Graph, keys_of_a_shard: int = 1) -> None:
        self.graph = graph
        ports = [(v.id, port) for v in graph.vertices for port in range(len(v.schemas))]
        self.ports: dict[str, Port] = {OUTPUT.format(*port): port for port in ports}
        self.stages: Stages = cut(graph, self.ports)
        self._front = Front(self.stages, buckets=1)
        self.running = Running(self.stages, keys_of_a_shard)
        self.store = Memory()
        self._results: dict[Port, list[Result]] = {port: [] for port in ports}
        self._failures: list[Failure] = []

    @property
    def is_sharded(self) -> bool:
        return self.running.is_sharded

    def take(self, entries: Sequence[Entry]) -> None:
        """A batch."""
        self.store.read.clear()
        self.store.written.clear()
        for _, packet in self._front.spread(arrived(self.graph, entries)):
            _, found = self.running.take(Arrived.unpack(packet), {"0": 1}, self.store)
            for output, first, count, data in found:
                for number, what in enumerate(Results([data], count), first):
                    if output == QUARANTINE:
                        self._failures.append(Failure(*what))
                    else:
                        at, device, owner, row = what
                        self._results[self.ports[output]].append(Result(number, at, Source(device, owner), row))

    def outcome(self) -> Outcome:
        return Outcome({p: tuple(r) for p, r in self._results.items()}, tuple(sorted(self._failures, key=repr)))


STEP = "left/append"


def fix(user: str, at: int, place: int = 0) -> Element:
    return Element(STEP, at, Source(user, user), (user, user, at, place, 1.0, None, place, True, None))


def promise(user: str, at: int) -> Progress:
    return Progress(STEP, Source(user, user), at)


USERS = [f"user-{n}" for n in range(200)]


def filled(graph: Graph) -> Bucket:
    """A bucket with something of each user."""
    bucket = Bucket(graph, keys_of_a_shard=4)
    for _ in range(2):  # the first finds out how many keys there are
        bucket.take([entry for user in USERS for entry in (fix(user, 10, 3), promise(user, 20))])
    assert bucket.store.book().shards >= 32
    return bucket


def users(step: Any) -> Graph:
    """A graph of a step of two streams by user."""
    return graph_of(alone(lambda left, right: step(left.key_by(Fix.user), right.key_by(Fix.user)), left=Fix, right=Fix))
