"""Windows of counts over a batch, by panes: as many elements as divide both size and slide, each added up once.

A pane is known by how many elements of its key came before it. A window ends with a pane, so its aggregate is that of
whole panes, and its first time the first of its first pane.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows, taken
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.flow import Flow, kinds_of
from catchment.engines.spark.vector.held import Held
from catchment.engines.spark.vector.release import Released, VectorRelease
from catchment.engines.spark.vector.spans import Spans
from catchment.engines.spark.vector.windowed import Windowed
from catchment.operators.keys import Key
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import CountWindow


class VectorCounts(Windowed):
    """Panes of each key's last elements, by how many came before; beside the time of its first, how many it has."""

    def __init__(self, step: steps.Aggregated, given: Schema) -> None:
        assert isinstance(step.window, CountWindow)
        super().__init__(step, given)
        self._size, self._every = step.window.size, step.window.every
        self._pane = gcd(self._size, self._every)
        self._release = VectorRelease(self.waiting, self.position, "event_time", kinds_of(given))
        self._held = Held.nothing(3, self.aggregates.empty(0))

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        released = self._release.take(flow)
        rows, moment = released.rows, released.moment
        computed = self.aggregates.expressions(rows)
        columns = computed.columns
        good = self.fail(rows, computed.reasons())
        if good is not None:
            rows, moment, columns = rows.take(good), moment[good], [taken(column, good) for column in columns]
        given = self._windows(rows, moment, columns, released)
        followed = released.followed
        return Flow(given, followed.controls), self.late(released.late, followed)

    def _windows(self, rows: Rows, moment: Array, columns: list[Any], released: Released) -> Rows:
        held, key = self._held, self.numbered(rows)
        before = np.zeros(len(self.keys.known), np.int64)
        np.maximum.at(before, held.key, held.columns[0] + held.columns[2])
        nth = before[key] + _ordinals(key)
        start = nth - nth % self._pane
        ones = np.ones(len(rows), np.int64)
        whole = Held.chained([held, Held(key, [start, rows.at, ones], self.aggregates.parts(columns, len(rows)))])
        panes = whole.of_keys(0)
        numbers, one, parts = whole.merged(panes, self.aggregates.operations)
        # Of entries of one pane the held one comes first, and of elements the first.
        counts = np.zeros(len(numbers), np.int64)
        np.add.at(counts, np.searchsorted(numbers, panes), whole.columns[2])
        table = Held(whole.key[one], [whole.columns[0][one], whole.columns[1][one], counts], parts)
        due = np.flatnonzero((nth + 1) % self._every == 0)
        end = nth[due] + 1
        spans = Spans(table.key, table.columns[0])
        low, high = spans.of(key[due], np.maximum(end - self._size, 0), end)
        found = spans.together(table.parts, self.aggregates.operations, low, high)
        at = rows.at[due]
        about = (table.columns[1][low], at + 1, np.zeros(len(at), np.int64), at)
        given = self.results(key[due], about, moment[due], found, released.followed)
        # The last pane says how many there were, also where the next window begins behind it.
        total = np.zeros(len(self.keys.known), np.int64)
        np.maximum.at(total, table.key, table.columns[0] + table.columns[2])
        following = (total // self._every + 1) * self._every - self._size
        ends = table.columns[0] + table.columns[2]
        kept = (ends > following[table.key]) | (ends == total[table.key])
        self._held = table if kept.all() else table.take(kept)
        self._held.parts = [aggregates.slim(part) for part in self._held.parts]
        return given

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, _ = self._release.split(shard_of, [self.places[field] for field in route])
        self.spread(pieces, self._held, shard_of, route, (None, None))
        return pieces

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self._release.merge(shared, parts)
        self._held = self.loaded([part[2:] for part in parts if len(part) > 2], 3)

    def snapshot(self) -> Any:
        return [self._release.snapshot(), self._held.save(self.keys.known)]

    def restore(self, saved: Any) -> None:
        release, held = saved
        self._release.restore(release)
        self._held = self.loaded([held], 3)

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        return self.shown(self._held, "panes", "before", "first", "elements")


def _ordinals(key: Array) -> Array:
    """How many of its key came before each."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    found = np.empty(len(key), np.int64)
    found[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    return found
