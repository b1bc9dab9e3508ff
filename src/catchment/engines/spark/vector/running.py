"""`state` over a batch: after each element of a key, the aggregates of all so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.events import TICK
from catchment.engines.spark.rows import Array, Column, Rows, taken, tuples
from catchment.engines.spark.state.pieces import Pieces, ShardOf, by_shard
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.aggregates import Part, VectorAggregates
from catchment.engines.spark.vector.flow import Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.keys import Keys
from catchment.engines.spark.vector.release import VectorRelease
from catchment.engines.spark.vector.waiting import VectorWaiting
from catchment.operators.keys import Grouping
from catchment.program import steps
from catchment.program.types import Schema


class VectorRunning(VectorStep):
    """The parts of each key's aggregates, by the key's number."""

    def __init__(self, step: steps.Running, given: Schema) -> None:
        grouping = Grouping.of(given, step.keys, step.scope)
        waiting = VectorWaiting(grouping, step.closing, step.scope)
        self._places = [given.position(key) for key in step.keys]
        position = None if grouping.position is None else self._places[grouping.position]
        self._release = VectorRelease(waiting, position, step.order, kinds_of(given))
        self._aggregates = VectorAggregates(step.aggregates, given)
        self._names = [one.name for one in step.aggregates]
        self._keys = Keys()
        self._held = self._aggregates.empty(0)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        released = self._release.take(flow)
        rows, group = released.rows, released.group
        computed = self._aggregates.expressions(rows)
        good = self.fail(rows, computed.reasons())
        columns = computed.columns
        if good is not None:
            rows, group = rows.take(good), group[good]
            columns = [taken(column, good) for column in columns]
        given = self._results(rows, group, columns, released.followed.groups.sources())
        controls = released.followed.controls
        return Flow(given, controls), Flow(released.late, [each for each in controls if each[1] == TICK])

    def _results(self, rows: Rows, group: Array, columns: list[Column], sources: Any) -> Rows:
        keys = [rows.columns[place] for place in self._places]
        numbers = self._keys.number(keys, len(rows))
        self._grow()
        order = np.argsort(numbers, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        sorted_numbers = numbers[order]
        starts = np.flatnonzero(np.diff(sorted_numbers, prepend=-1))
        parts = self._aggregates.parts(columns, len(rows))
        found: list[Part] = []
        for number, (part, operation) in enumerate(zip(parts, self._aggregates.operations, strict=True)):
            sums, self._held[number] = so_far(
                part, self._held[number], operation, order, (sorted_numbers, starts, len(self._keys.known))
            )
            found.append(None if sums is None else sums[back])
        values, reasons = self._aggregates.results(found)
        made = Rows(rows.at, group, rows.place, sources, [*keys, Column(rows.at), *values])
        good = self.fail(made, reasons)
        return made if good is None else made.take(good)

    def _grow(self) -> None:
        known = len(self._keys.known)
        held = 0 if not self._held else next(len(part) for part in self._held if part is not None)
        if known > held:
            fresh = self._aggregates.empty(known - held)
            pairs = zip(self._held, fresh, strict=True)
            self._held = [aggregates.chained(pair, (held, known - held)) for pair in pairs]

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, _ = self._release.split(shard_of, [self._places[field] for field in route])
        keys = self._keys.known
        shards = np.array([shard_of(tuple([key[field] for field in route])) for key in keys], np.int64)
        for shard, which in by_shard(shards):
            held = [aggregates.save(None if part is None else part[which]) for part in self._held]
            pieces.parts.setdefault(shard, [None, None])
            pieces.parts[shard] += [[keys[number] for number in which.tolist()], held]
            pieces.count[shard] = max(pieces.count.get(shard, 0), len(which))
        return pieces

    def remembered(self) -> Sequence[tuple[tuple[Any, ...], Any]]:
        values, _ = self._aggregates.results(self._held)
        rows = zip(*[column.objects() for column in values], strict=True)
        return [
            (key, dict(zip(self._names, row, strict=True))) for key, row in zip(self._keys.known, rows, strict=True)
        ]

    def forget(self, device: str) -> None:
        self._release.waiting.forget(device)

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self._release.waiting.grouping.position or 0, self._release.waiting.grouping.stamp

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self._release.merge(shared, parts)
        with_keys = [part[2:] for part in parts if len(part) > 2]
        self._keys = Keys([tuples(key) for keys, _ in with_keys for key in keys])
        self._held = self._aggregates.empty(0)
        if with_keys:
            lengths = [len(keys) for keys, _ in with_keys]
            columns = zip(*[[aggregates.load(part) for part in held] for _, held in with_keys], strict=True)
            self._held = [aggregates.chained(column, lengths) for column in columns]

    def snapshot(self) -> Any:
        return [self._release.snapshot(), self._keys.known, [aggregates.save(part) for part in self._held]]

    def restore(self, saved: Any) -> None:
        release, keys, held = saved
        self._release.restore(release)
        self._keys = Keys([tuples(key) for key in keys])
        self._held = [aggregates.load(part) for part in held]


def so_far(
    part: Part, held: Part, operation: np.ufunc, order: Array, runs: tuple[Array, Array, int]
) -> tuple[Part, Part]:
    """A part of each element and all before it of its key, in order of key; and what is held of each key after."""
    numbers, starts, known = runs
    if part is None and held is None:
        return None, None
    if not len(order):
        return part, held
    given = np.zeros(len(order), np.int64) if part is None else part[order]
    held = np.zeros(known, np.int64) if held is None else held
    lengths = np.diff(np.append(starts, len(given)))
    if operation is np.add:
        before = held[numbers[starts]]
        both = aggregates.roomy(np.concatenate([given, before]))
        assert both is not None
        given, before = both[: len(given)], both[len(given) :]
        sums = np.cumsum(given)
        sums = sums - np.repeat(sums[starts] - given[starts] - before, lengths)
    else:
        given = given.copy()
        given[starts] = operation(given[starts], held[numbers[starts]])
        sums = np.concatenate([operation.accumulate(run) for run in np.split(given, starts[1:])])
    ends = starts + lengths - 1
    held = held.astype(sums.dtype) if held.dtype != sums.dtype else held.copy()
    held[numbers[ends]] = sums[ends]
    return sums, aggregates.slim(held)
