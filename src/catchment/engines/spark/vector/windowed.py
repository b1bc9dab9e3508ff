"""Windows over a batch whose aggregates are columns: what those of time, sessions and counts have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.events import TICK
from catchment.engines.spark.rows import Array, Column, Rows, column_of, taken
from catchment.engines.spark.state.pieces import NEVER_DUE, Pieces, ShardOf
from catchment.engines.spark.vector.aggregates import Part, VectorAggregates
from catchment.engines.spark.vector.flow import Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.held import Held
from catchment.engines.spark.vector.keys import Keys
from catchment.engines.spark.vector.waiting import Followed, VectorWaiting, WaitingPieces
from catchment.operators.keys import Grouping, Key
from catchment.operators.ordering import sortable_key
from catchment.program import steps
from catchment.program.types import Schema


class Windowed(VectorStep):
    """The base: keys by number, their groups, and results in order."""

    def __init__(self, step: steps.Aggregated, given: Schema) -> None:
        self.grouping = Grouping.of(given, step.keys, step.scope)
        self.waiting = VectorWaiting(self.grouping, step.window.closing, step.scope)
        self.places = [given.position(key) for key in step.keys]
        self.aggregates = VectorAggregates(step.aggregates, given)
        self.names = [one.name for one in step.aggregates]
        self.keys = Keys()
        self._kinds = [kinds_of(given)[place] for place in self.places]
        self._sorts_as: Callable[[Key], Any] = sortable_key(given, step.keys)

    @property
    def position(self) -> int | None:
        """Where in a row its group is named."""
        position = self.grouping.position
        return None if position is None else self.places[position]

    def follow(self, flow: Flow) -> Followed:
        """What came of a batch's controls."""
        return self.waiting.follow(flow, None if self.position is None else flow.rows.columns[self.position])

    def late(self, rows: Rows, followed: Followed) -> Flow:
        """What leaves by the late port."""
        return Flow(rows, [each for each in followed.controls if each[1] == TICK])

    def numbered(self, rows: Rows) -> Array:
        """The key of each row, by number."""
        return self.keys.number([rows.columns[place] for place in self.places], len(rows))

    def group_of(self, key: Key) -> Any:
        """The group of a key."""
        return self.grouping.of_key(key)

    def groups(self, key: Array, followed: Followed) -> Array:
        """The group of each key, by number."""
        used, codes = np.unique(key, return_inverse=True)
        found = [followed.groups.number(self.group_of(self.keys.known[number])) for number in used.tolist()]
        return np.array(found, np.int64)[codes]

    def closed_now(self, key: Array) -> Array:
        """Of each key, the watermark of its group less the grace."""
        used, codes = np.unique(key, return_inverse=True)
        found = [self.waiting.bound(self.group_of(self.keys.known[number])) for number in used.tolist()]
        return np.array(found, np.int64)[codes]

    def in_order(self, key: Array, end: Array, moment: Array, turn: Array | None = None) -> Array:
        """The order in which results leave that are due at these moments: by turn at each, then by (end, key)."""
        used, codes = np.unique(key, return_inverse=True)
        keys = [self.keys.known[number] for number in used.tolist()]
        rank = np.empty(len(keys), np.int64)
        rank[sorted(range(len(keys)), key=[self._sorts_as(one) for one in keys].__getitem__)] = np.arange(len(keys))
        order: Array = np.lexsort((rank[codes], end, np.zeros(len(end)) if turn is None else turn, moment))
        return order

    def results(self, key: Array, about: Sequence[Array], moment: Array, parts: list[Part], followed: Followed) -> Rows:
        """Results in the order given; `about` are start, end, revision and time of each."""
        used, codes = np.unique(key, return_inverse=True)
        keys = [self.keys.known[number] for number in used.tolist()]
        columns = [
            taken(column_of([one[which] for one in keys], kind), codes) for which, kind in enumerate(self._kinds)
        ]
        values, reasons = self.aggregates.results(parts)
        columns += [*map(Column, about), *values]
        group = self.groups(key, followed)
        made = Rows(about[-1], group, followed.moments.places[moment], followed.groups.sources(), columns)
        good = self.fail(made, reasons)
        return made if good is None else made.take(good)

    def pieces(self, shard_of: ShardOf) -> tuple[Pieces, WaitingPieces]:
        """Pieces with the step's progress: each part begins with that."""
        waiting = self.waiting.split(shard_of)
        pieces = Pieces(waiting.shared)
        for shard, part in waiting.parts.items():
            pieces.parts[shard] = [part]
            pieces.count[shard] = len(part["groups"])
        return pieces, waiting

    def spread(
        self, pieces: Pieces, held: Held, shard_of: ShardOf, route: Sequence[int], part: Sequence[Any] = (None,)
    ) -> None:
        """With what is held, each key in its shard; `part` is how one begins of which nothing else is known."""
        for shard, count, saved in held.in_shards(self.keys.known, shard_of, route):
            pieces.parts.setdefault(shard, [*part]).extend(saved)
            pieces.count[shard] = max(pieces.count.get(shard, 0), count)

    def gathered(self, shared: Any, parts: Sequence[Any], columns: int) -> Held:
        """What `pieces` and `spread` made, and the progress with it."""
        self.waiting.merge(shared, [part[0] for part in parts if part[0] is not None])
        return self.loaded([part[1:] for part in parts if len(part) > 1], columns)

    def loaded(self, saved: Sequence[list[Any]], columns: int) -> Held:
        """A table that was saved as these; its keys are those that are known from now on."""
        keys, held = Held.load(saved, columns, self.aggregates.empty(0))
        self.keys = Keys(keys)
        return held

    def shown(self, held: Held, what: str, *names: str) -> Sequence[tuple[Key, Any]]:
        """Each key with its entries, for people: their columns by these names, and their aggregates."""
        values, _ = self.aggregates.results(held.parts)
        columns = [*(column.tolist() for column in held.columns), *(column.objects() for column in values)]
        found: dict[int, list[Any]] = {}
        for key, *row in zip(held.key.tolist(), *columns, strict=True):
            found.setdefault(key, []).append(dict(zip((*names, *self.names), row, strict=True)))
        return [(self.keys.known[key], {what: entries}) for key, entries in found.items()]

    def ring(
        self, pieces: Pieces, waiting: WaitingPieces, due: tuple[Array, Array], shard_of: ShardOf, route: Sequence[int]
    ) -> None:
        """Let the shard of each key be looked at once its bound lies beyond that time: (keys, times)."""
        used, codes = np.unique(due[0], return_inverse=True)
        least = np.full(len(used), NEVER_DUE, np.int64)
        np.minimum.at(least, codes, due[1])
        for number, at in zip(used.tolist(), least.tolist(), strict=True):
            key = self.keys.known[number]
            waiting.ring(pieces, shard_of(tuple([key[field] for field in route])), self.group_of(key), at)

    def forget(self, device: str) -> None:
        self.waiting.forget(device)

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self.grouping.position or 0, self.grouping.stamp
