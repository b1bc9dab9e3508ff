"""The state of a bucket, in shards of some keys each: a batch reads and writes what it touches, and nothing else.

A shard is touched by elements of its keys, by what their own sources promise, by a watermark or a tick that makes
something in it due, and by nothing else. What ticks did meanwhile to a shard that nobody looked at is made good when it
is read: the clock is told again. Where a part's steps do not allow that, all of a bucket's state is one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from catchment.engines.spark.events import FORGET, PRESENCE, PROGRESS, TICK, Arrived
from catchment.engines.spark.rows import Array
from catchment.engines.spark.stages import KEYED, Stages, routed, stamp_of
from catchment.engines.spark.state import shape
from catchment.engines.spark.state.forgetting import Gone
from catchment.engines.spark.state.pieces import NEVER_DUE, Pieces, ShardOf, shard_of_route, shards_of_rows
from catchment.engines.spark.vector.engine import VectorEngine, check_adopted
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Control
from catchment.program import steps
from catchment.program.types import Row

FORMAT = 2
"""The version of what is stored."""
BOOK = -1
"""The number under which a bucket keeps what is of no key."""
KEYS_OF_A_SHARD = 32
"""How many keys a shard should have: fewer are more calls of the store for a batch, more are more bytes for a key."""


class Store(Protocol):
    """Where a bucket's state is kept, by number."""

    def get(self, number: int) -> bytes | None:
        """What is kept under a number."""
        ...

    def put(self, number: int, state: bytes) -> None:
        """Keep this under a number."""
        ...

    def remove(self, number: int) -> None:
        """Keep nothing under a number."""
        ...


class Book(msgspec.Struct):
    """What a bucket keeps beside its shards."""

    shared: Any = None
    format: int = FORMAT
    given: dict[str, int] = {}
    """How many results each output gave."""
    upto: dict[str, int] = {}
    """The offset reached in each partition of the log."""
    shapes: dict[str, Any] = {}
    """What the state was made by: see `state.shape`."""
    is_sharded: bool = True
    """Whether the state of keys is in shards, or all of it here."""
    shards: int = 1
    count: bytes = b"\0" * 8
    """How many keys each shard holds, as 64-bit numbers."""
    alarm: bytes = NEVER_DUE.to_bytes(8, "little")
    """Of each shard, before which watermark nothing in it is due."""
    clock: bytes = NEVER_DUE.to_bytes(8, "little")
    """Of each shard, up to which reading of the clock nothing in it is due."""
    now: int | None = None
    """The latest tick."""
    limit: int = -(2**63)
    """No watermark can lie beyond that: the largest promise, or the clock."""


class Shards:
    """The shards of a part's state. `keys` says how many keys one should have."""

    def __init__(self, stages: Stages, engine: VectorEngine, keys: int = KEYS_OF_A_SHARD) -> None:
        self._stages = stages
        self._engine = engine
        self._keys = keys
        self._steps = engine.steps
        self.is_sharded = _is_sharded(stages, engine)
        keyed = [v for v in stages.rest.vertices if v.id in engine.steps and isinstance(v.step, KEYED)]
        self._routes = {vertex.id: [vertex.step.keys.index(name) for name in routed(vertex)] for vertex in keyed}  # type: ignore[union-attr]
        self._stamps = {vertex.id: stamp_of(stages.rest, vertex) for vertex in keyed}
        for vertex in stages.rest.vertices:
            if isinstance(vertex.step, steps.Union):
                # What a source promised lies with the keys that it is heard by.
                self._routes[vertex.id] = _BY_SOURCE[stages.heard_by]
                self._stamps[vertex.id] = stages.heard_by
        self._by_event = {vertex.id for vertex in stages.rest.vertices if vertex.id not in engine.steps}
        # Whoever changes what it is given changes a copy.
        self._blank = _ENCODER.encode({name: each.shared for name, each in self._split(lambda route: 0).items()})
        self._shapes = shape.shapes(stages.rest)
        self._held: dict[int, bytes | None] = {}

    def restore(self, store: Store, book: Book, arrived: Arrived) -> list[Control]:
        """Remember what a batch needs; gives the ticks that it has to be told first."""
        if book.shapes != self._shapes:
            shape.check(book.shapes, self._shapes)
            book.shapes = self._shapes
        shared = book.shared or {}
        was_sharded, book.is_sharded = book.is_sharded, self.is_sharded
        if not was_sharded or not (self.is_sharded or shared):
            # What was one piece may be in shards from now on: all of it is at hand.
            self._held = dict.fromkeys(range(book.shards)) if self.is_sharded else {}
            self._engine.restore(shared or self._engine.blank)
            return []
        check_adopted([name for name, each in shared.items() if each is not None], self._by_event)
        for _, kind, *what in arrived.said:
            if kind == TICK:
                book.limit = max(book.limit, what[0])
            elif kind == PROGRESS:
                book.limit = max(book.limit, what[3])
        is_all = not self.is_sharded or self._grown(book) != book.shards
        needed = range(book.shards) if is_all else self._needed(book, arrived).tolist()
        self._held = {shard: store.get(shard) for shard in needed}
        parts: dict[str, list[Any]] = {name: [] for name in self._steps}
        oldest = book.now
        for state in self._held.values():
            if state is not None:
                now, held = msgspec.msgpack.decode(state)
                oldest = now if oldest is None or now is None else min(oldest, now)
                for name, part in held.items():
                    if name in parts:  # else the step is gone
                        parts[name].append(part)
        blank = msgspec.msgpack.decode(self._blank)
        for name, step in self._steps.items():
            step.merge(shared.get(name, blank[name]), parts[name])
        is_behind = self._stages.heard_by is not None and oldest != book.now
        return [(TOLD_AGAIN, TICK, book.now)] if is_behind else []

    def peek(self, store: Store, book: Book, route: Row) -> dict[str, Any]:
        """What each step that keeps keys apart remembers of those that go this way, as plain data."""
        shared = {**msgspec.msgpack.decode(self._blank), **(book.shared or {})}
        state = store.get(shard_of_route(route, book.shards))
        held = {} if state is None else msgspec.msgpack.decode(state)[1]
        found: dict[str, Any] = {}
        for name, step in self._steps.items():
            step.merge(shared[name], [held[name]] if name in held else [])
            fields = self._routes.get(name)
            if fields is not None:
                found[name] = [
                    [key, what] for key, what in step.remembered() if tuple([key[field] for field in fields]) == route
                ]
        return found

    def save(self, store: Store, book: Book, arrived: Arrived) -> None:
        """Keep what changed."""
        if not self.is_sharded:
            for gone in _gone(arrived):
                self._engine.forget(gone)
            book.shared = self._engine.snapshot()
            for shard in self._held:
                store.remove(shard)
            self._held = {}
            return
        for _, kind, *what in arrived.said:
            if kind == TICK:
                book.now = what[0] if book.now is None else max(book.now, what[0])
        shards = self._grown(book)
        if shards != book.shards:
            for shard in range(shards, book.shards):
                store.remove(shard)
            zeros, never = np.zeros(shards, "<i8"), np.full(shards, NEVER_DUE, "<i8")
            book.shards, book.count, book.alarm, book.clock = shards, zeros.tobytes(), never.tobytes(), never.tobytes()
            self._held = {shard: self._held.get(shard) for shard in range(shards)}
        numbers: dict[Row, int] = {}

        def shard_of(route: Row) -> int:
            number = numbers.get(route)
            if number is None:
                number = numbers[route] = shard_of_route(route, shards)
            return number

        pieces = self._split(shard_of, _gone(arrived))
        book.shared = {name: each.shared for name, each in pieces.items()}
        count, alarm, clock = (np.frombuffer(data, "<i8").copy() for data in (book.count, book.alarm, book.clock))
        assert all(each.parts.keys() <= {*self._held, _FORGOTTEN} for each in pieces.values()), (
            "written, and was never read"
        )
        for shard in self._held:
            parts = {name: each.parts[shard] for name, each in pieces.items() if shard in each.parts}
            count[shard] = max((each.count.get(shard, 0) for each in pieces.values()), default=0)
            alarm[shard] = _least(pieces.values(), "alarm", shard)
            clock[shard] = _least(pieces.values(), "clock", shard)
            state = _ENCODER.encode([book.now, parts]) if parts else None
            if state == self._held.get(shard):
                continue
            if state is None:
                store.remove(shard)
            else:
                store.put(shard, state)
        book.count, book.alarm, book.clock = count.tobytes(), alarm.tobytes(), clock.tobytes()

    def _split(self, shard_of: ShardOf, forgotten: Sequence[Gone] = ()) -> dict[str, Pieces]:
        pieces = {}
        for name, step in self._steps.items():
            for gone in forgotten:
                step.forget(gone.device)
            # What is forgotten goes into a shard that is not kept.
            names = {gone.named(self._stamps.get(name)) for gone in forgotten} - {None}
            pieces[name] = step.split(_without(names, shard_of) if names else shard_of, self._routes.get(name, ()))
        return pieces

    def _grown(self, book: Book) -> int:
        """How many shards there should be."""
        shards, keys = book.shards, int(np.frombuffer(book.count, "<i8").sum())
        while keys > 2 * self._keys * shards:
            shards *= 2
        return shards

    def _needed(self, book: Book, arrived: Arrived) -> Array:
        shards = book.shards
        touched: list[Array] = []

        def shard_of(route: Row) -> int:
            return shard_of_route(route, shards)

        for (_, arrival), entrance in self._stages.entrances.items():
            rows, fields = arrived.rows.get(entrance), self._stages.routes[arrival]
            if rows is not None and fields is not None:
                schema = self._stages.rest.vertex(arrival).schemas[0]
                columns = [rows.columns[schema.position(name)] for name in fields]
                touched.append(np.unique(shards_of_rows(columns, len(rows), shard_of)))
        if self._stages.heard_by is not None:
            # Each of a group's sources says so for itself.
            device_at = {PROGRESS: 1, PRESENCE: 0, FORGET: 0}
            owners = {
                what[device_at[kind] + (self._stages.heard_by == "user")]
                for _, kind, *what in arrived.said
                if kind != TICK
            }
            # Whose element it is has been heard, whatever the element says that it is of.
            which = int(self._stages.heard_by == "user")
            heard = [rows.sources[n] for rows in arrived.rows.values() for n in np.unique(rows.source).tolist()]
            owners |= {source[which] for source in heard}
            touched.append(np.array([shard_of((owner,)) for owner in owners], np.int64))
        for gone in _gone(arrived):
            names = {gone.named(stamp) for stamp in self._stamps.values()}
            touched.append(np.array([shard_of((name,)) for name in names if name is not None], np.int64))
        ticks = [what[0] for _, kind, *what in arrived.said if kind == TICK]
        alarm, clock = np.frombuffer(book.alarm, "<i8"), np.frombuffer(book.clock, "<i8")
        touched.append(np.flatnonzero(alarm < book.limit))
        if ticks:
            touched.append(np.flatnonzero(clock < max(ticks)))
        return np.unique(np.concatenate(touched))


_FORGOTTEN = -2
_BY_SOURCE: dict[str | None, list[int]] = {"device": [0], "user": [1], None: []}
_ENCODER = msgspec.msgpack.Encoder()


def _without(names: set[str | None], shard_of: ShardOf) -> ShardOf:
    return lambda route: _FORGOTTEN if route[0] in names else shard_of(route)


def _gone(arrived: Arrived) -> list[Gone]:
    said = [what for _, kind, *what in arrived.said if kind == FORGET]
    return [Gone(device, owner if is_whole else None) for device, owner, is_whole in said]


def _least(pieces: Iterable[Pieces], which: str, shard: int) -> int:
    found: int = min(getattr(each, which).get(shard, NEVER_DUE) for each in pieces)
    return found


def _is_sharded(stages: Stages, engine: VectorEngine) -> bool:
    """Whether keys are apart: all steps wait for their key's own sources only, or all for everyone's."""
    if not engine.is_whole:
        return False
    waiting = [vertex.step for vertex in stages.rest.vertices if isinstance(vertex.step, steps.LATE_PORTS)]
    if any(isinstance(step, steps.Processed) and step.order == "arrival" for step in waiting):
        return False  # what is due of one key may be so at another's moment
    own = [step.scope == "own" for step in waiting]
    return all(own) and stages.heard_by is not None if any(own) else True
