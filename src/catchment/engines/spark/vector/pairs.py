"""Steps that pair the elements of two inputs, over a batch: what all of them do before and after they pair.

A step looks at tables: of each side the elements that it holds, then those that the batch brings, each with a number
that says when it was taken among all. What it finds are pairs of places in the tables, in the order in which they are
given. What a side holds lies in shards by key, in the order of those numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows, joined
from catchment.engines.spark.state.pieces import Pieces, ShardOf, by_shard, shards_of_rows
from catchment.engines.spark.vector.flow import Flow, VectorOperator, kinds_of
from catchment.engines.spark.vector.keys import column_values, distinct
from catchment.engines.spark.vector.projection import pair_projection
from catchment.engines.spark.vector.release import Pending, Released
from catchment.engines.spark.vector.waiting import LEAST, Followed, Groups, VectorWaiting
from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.keys import Grouping, Key
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import DataType, Row, Schema
from catchment.program.window import Closing

PairStep: TypeAlias = steps.Join | steps.Zip | steps.Combine


@dataclass(slots=True)
class Side:
    """The elements of a side, those that were held first. The place of each is its number."""

    rows: Rows
    held: int
    """How many were held."""
    group: Array
    moment: Array
    """The control that released each; of what was held, none: -1."""
    code: Array
    """The number of each one's key, the same on both sides."""
    pairs: Array
    """Whether the key may equal another in a join: no part of it is null."""


@dataclass(slots=True)
class Found:
    """Pairs in order: where the left and the right one stand in their tables, or -1; and the control that made each."""

    left: Array
    right: Array
    moment: Array

    @classmethod
    def in_order(cls, left: Array, right: Array, moment: Array, *by: Array) -> Found:
        """Pairs, sorted by these and first by moment."""
        order = np.lexsort((*reversed(by), moment))
        return cls(left[order], right[order], moment[order])


class VectorPairs(VectorOperator):
    """The base. `carried` are columns that a held element has beyond its own: their types."""

    carried: tuple[DataType, ...] = ()
    adopts = True

    def __init__(
        self,
        step: PairStep,
        given: tuple[Schema, ...],
        closing: Closing,
        optional: tuple[int, ...],
        *,
        reach: int = 0,
        right_first: bool = False,
    ) -> None:
        self.grouping = Grouping.of(given[0], step.keys, step.scope)
        self.waiting = VectorWaiting(self.grouping, closing, step.scope, ports=2, reach=reach)
        self._schemas = given
        self._places = [
            [schema.position(key) for key in keys]
            for schema, keys in zip(given, (step.keys, step.right_keys), strict=True)
        ]
        self._kinds = [(*kinds_of(schema), *self.carried) for schema in given]
        position = self.grouping.position
        self._fields = [None if position is None else places[position] for places in self._places]
        self.pending = [Pending(field, kinds_of(schema)) for field, schema in zip(self._fields, given, strict=True)]
        self.held = [Rows.none(kinds) for kinds in self._kinds]
        self.taken = 0
        self._right_first = right_first
        self._projection = pair_projection(step, given, optional)

    @abstractmethod
    def pair(self, sides: Sequence[Side], followed: Followed) -> Found:
        """What pairs, and what is held from then on (`hold`)."""

    def hold(self, side: int, table: Side, which: Array) -> None:
        """Hold these of a side: by number or by mask."""
        rows = table.rows.take(which)
        self.held[side] = rows.take(np.argsort(rows.place, kind="stable"))

    def take(self, flows: Sequence[Flow]) -> tuple[Flow, ...]:
        fields = [
            None if field is None else flow.rows.columns[field] for field, flow in zip(self._fields, flows, strict=True)
        ]
        followed = self.waiting.follow_all(flows, fields)
        released = self.released(followed)
        sides = self._sides(released, followed)
        rows = self._given(self.pair(sides, followed), sides, followed)
        return Flow(rows, followed.controls), *(Flow(each.late, followed.ticks) for each in released)

    def released(self, followed: Followed) -> list[Released]:
        """What the batch brings of each side, numbered: in order."""
        released = [pending.take(heard, followed) for pending, heard in zip(self.pending, followed.inputs, strict=True)]
        first, second = reversed(released) if self._right_first else released
        at = np.concatenate([first.rows.at, second.rows.at])
        order = np.lexsort((at, np.concatenate([first.moment, second.moment])))
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(self.taken, self.taken + len(order))
        first.rows.place, second.rows.place = number[: len(first.rows)], number[len(first.rows) :]
        self.taken += len(order)
        return released

    def carry(self, side: int, released: Released) -> list[Column]:
        """What new elements of a side carry."""
        return []

    def _sides(self, released: Sequence[Released], followed: Followed) -> list[Side]:
        tables, groups = [], []
        for side, (field, held, new) in enumerate(zip(self._fields, self.held, released, strict=True)):
            rows = new.rows
            fresh = Rows(rows.at, rows.source, rows.place, rows.sources, [*rows.columns, *self.carry(side, new)])
            tables.append(Rows.concat([held, fresh]) if len(held) else fresh)
            group = new.group
            if len(held):
                of_held = followed.groups.of(None if field is None else held.columns[field], len(held))
                group = np.concatenate([of_held, group])
            groups.append(group)
        left, right = tables
        count = len(left) + len(right)
        codes, pairs = np.zeros(count, np.int64), np.ones(count, np.bool_)
        keys = [joined([left.columns[one], right.columns[other]]) for one, other in zip(*self._places, strict=True)]
        if keys:
            codes, _ = distinct(keys, count)
        for key in keys:
            if key.valid is not None:
                pairs &= key.valid
        cut = len(left)
        return [
            Side(
                rows,
                len(held),
                group,
                np.concatenate([np.full(len(held), -1, np.int64), new.moment]),
                code,
                may,
            )
            for rows, held, group, new, code, may in zip(
                tables, self.held, groups, released, (codes[:cut], codes[cut:]), (pairs[:cut], pairs[cut:]), strict=True
            )
        ]

    def _given(self, found: Found, sides: Sequence[Side], followed: Followed) -> Rows:
        columns: list[Column] = []
        at = np.full(len(found.moment), LEAST, np.int64)
        group = np.zeros(len(found.moment), np.int64)
        for side, schema, which in zip(sides, self._schemas, (found.left, found.right), strict=True):
            there = which >= 0
            is_all = bool(there.all())
            columns += [_or_null(column, which, there, is_all) for column in side.rows.columns[: len(schema.fields)]]
            at[there] = np.maximum(at[there], side.rows.at[which[there]])
            group[there] = side.group[which[there]]
        rows = Rows(at, group, followed.moments.places[found.moment], followed.groups.sources(), columns)
        made = self._projection(rows)
        good = self.fail(rows, made.reasons)
        given = Rows(made.at, rows.source, rows.place, rows.sources, made.columns)
        return given if good is None else given.take(good)

    # -- state -------------------------------------------------------------------------------------------------------

    def due(self, side: int, held: Rows) -> Array | None:
        """Of held elements: beyond which time the bound has to lie for something to come of each, or to let it go."""
        return None

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        waiting = self.waiting.split(shard_of)
        pieces = Pieces([waiting.shared, [pending.arrived for pending in self.pending], self.taken])
        for shard, part in waiting.parts.items():
            pieces.parts[shard] = [part, None, None, None, None]
            pieces.count[shard] = len(part["groups"])
        for side, (pending, held) in enumerate(zip(self.pending, self.held, strict=True)):
            places = [self._places[side][field] for field in route]
            for shard, rows, least in pending.split(shard_of, places):
                self._put(pieces, shard, 1 + side, rows)
                for name, at in least.items():
                    waiting.ring(pieces, shard, name, at)
            for shard, which in by_shard(shards_of_rows([held.columns[p] for p in places], len(held), shard_of)):
                rows = held.take(which)
                self._put(pieces, shard, 3 + side, rows)
                due = self.due(side, rows)
                if due is not None:
                    groups = Groups([], {})
                    field = self._fields[side]
                    group = groups.of(None if field is None else rows.columns[field], len(rows))
                    for number, name in enumerate(groups.known):
                        waiting.ring(pieces, shard, name, int(due[group == number].min()))
        return pieces

    def _put(self, pieces: Pieces, shard: int, where: int, rows: Rows) -> None:
        pieces.parts.setdefault(shard, [None] * 5)[where] = rows.plain(places=True)
        pieces.count[shard] = max(pieces.count.get(shard, 0), len(self._keys_of(rows, (where - 1) % 2)[1]))

    def _keys_of(self, rows: Rows, side: int) -> tuple[Array, list[Key]]:
        """The number of each element's key, and the keys."""
        columns = [rows.columns[place] for place in self._places[side]]
        if not columns:
            return np.zeros(len(rows), np.int64), [()] if len(rows) else []
        codes, firsts = distinct(columns, len(rows))
        return codes, list(zip(*[column_values(column, firsts) for column in columns], strict=True))

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        waiting, arrived, self.taken = shared
        self.waiting.merge(waiting, [part[0] for part in parts if part[0] is not None])
        self._load(arrived, [part[1:] for part in parts])

    def _load(self, arrived: Sequence[int], parts: Sequence[Any]) -> None:
        for side, (pending, kinds) in enumerate(zip(self.pending, self._kinds, strict=True)):
            pending.arrived = arrived[side]
            pending.load([part[side] for part in parts])
            held = [Rows.from_plain(part[2 + side]) for part in parts if part[2 + side] is not None]
            whole = Rows.concat(held) if held else Rows.none(kinds)
            self.held[side] = whole if len(held) < 2 else whole.take(np.argsort(whole.place, kind="stable"))

    def snapshot(self) -> Any:
        waiting = [rows.plain(places=True) for rows in (*(p.rows for p in self.pending), *self.held)]
        return [self.waiting.snapshot(), [pending.arrived for pending in self.pending], self.taken, waiting]

    def restore(self, saved: Any) -> None:
        waiting, arrived, self.taken, rows = saved
        self.waiting.restore(waiting)
        self._load(arrived, [rows])

    def adopt(self, state: dict[str, Any]) -> None:
        self.waiting.restore({"progress": state["progress"], "ticks": state["ticks"]})
        ports = (1, 0) if self._right_first else (0, 1)
        for side, pending in enumerate(self.pending):
            taken = sorted(
                (arrived, at, Source(device, owner), frozen(row))
                for at, rank, device, arrived, owner, row in state.get("waiting", ())
                if ports[rank] == side
            )
            rows = Rows.of([each[1:] for each in taken], kinds_of(self._schemas[side]))
            rows.place = np.array([each[0] for each in taken], np.int64)
            pending.arrived = state.get("arrived", 0) + 1
            pending.rows = rows
        held = sorted(self.adopted(state), key=lambda each: each[2])
        for side, kinds in enumerate(self._kinds):
            own = [each for each in held if each[0] == side]
            rows = Rows.of([(at, source, row) for _, at, _, source, row in own], kinds)
            rows.place = np.array([each[2] for each in own], np.int64)
            self.held[side] = rows
        self.taken = max((each[2] + 1 for each in held), default=0)

    @abstractmethod
    def adopted(self, state: dict[str, Any]) -> list[tuple[int, int, int, Source, Row]]:
        """What the operator held: (side, time, number, source, row and what it carries)."""

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        found: dict[Key, dict[str, list[Any]]] = {}
        for side, (schema, pending) in enumerate(zip(self._schemas, self.pending, strict=True)):
            for what, rows in ((_SIDES[side], self.held[side]), ("waiting", pending.rows)):
                codes, keys = self._keys_of(rows, side)
                for code, row in zip(codes.tolist(), rows.objects(), strict=True):
                    known = found.setdefault(keys[code], {"left": [], "right": [], "waiting": []})
                    known[what].append(dict(zip(schema.names, row, strict=False)))
        return list(found.items())

    def forget(self, device: str) -> None:
        self.waiting.forget(device)
        for pending in self.pending:
            pending.forget(device)

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self.grouping.position or 0, self.grouping.stamp


_SIDES = ("left", "right")
NOBODY = Source("", None)
"""Whose an element is of which that does not matter any more."""


def numbered(rows: Sequence[tuple[int, int, Row]]) -> list[tuple[int, int, int, Source, Row]]:
    """Held elements of which it was not kept when each was taken: (side, time, row), as they come."""
    return [(side, at, number, NOBODY, frozen(row)) for number, (side, at, row) in enumerate(rows)]


def runs(codes: Array) -> tuple[Array, Array]:
    """Where runs of one key begin, and the length of each."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    return starts, np.diff(np.append(starts, len(codes)))


def spans(low: Array, high: Array) -> tuple[Array, Array]:
    """Each pair of a number and one from the span that belongs to it: (which span, what of it)."""
    lengths = np.maximum(high - low, 0)
    which = np.repeat(np.arange(len(low)), lengths)
    within: Array = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + low[which]
    return which, within


def _or_null(column: Column, which: Array, there: Array, is_all: bool) -> Column:
    if is_all:
        return Column(column.values[which], None if column.valid is None else column.valid[which], column.words)
    if not len(column.values):
        return Column(np.zeros(len(which), column.values.dtype), there, column.words)
    valid = there if column.valid is None else there & column.valid[which]
    return Column(np.where(there, column.values[which], np.zeros(1, column.values.dtype)), valid, column.words)
