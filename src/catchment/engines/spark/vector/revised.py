"""Windows of time that are kept and revised, over a batch: each window of a key is held, with how often it was given.

What is added to a window is summed up in the order in which it came, so each result is one of those running sums: as
of the moment that closes the window, and then as of each moment that follows elements that came too late for it. The
windows of an element are that many entries, so this is for windows that overlap little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows, taken
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.aggregates import Part
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Flow
from catchment.engines.spark.vector.held import Held
from catchment.engines.spark.vector.operated import AT_ONCE
from catchment.engines.spark.vector.places import event_at
from catchment.engines.spark.vector.running import so_far
from catchment.engines.spark.vector.waiting import Followed
from catchment.engines.spark.vector.windowed import Windowed
from catchment.operators.keys import Key
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import TimeWindow

OVERLAP_MAX = 16
"""In how many windows an element may be for this to be worth it."""
_CLOSED, _OPEN, _REVISED = 0, 1, 2
"""How a window stands: given and not changed since, not given yet, or changed since the last moment."""


class VectorRevised(Windowed):
    """Windows of each key: where each ends, which revision is next, and how it stands."""

    def __init__(self, step: steps.Aggregated, given: Schema) -> None:
        assert isinstance(step.window, TimeWindow)
        super().__init__(step, given)
        self._size, self._every, self._keep = step.window.size, step.window.every, step.window.closing.keep
        self._held = Held.nothing(3, self.aggregates.empty(0))

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        followed = self.follow(flow)
        rows = followed.rows
        final = followed.closed - self._keep
        first = rows.at + self._every - (rows.at - self._size) % self._every
        last = rows.at - rows.at % self._every + self._size
        late = first <= final
        low = np.where(late, first + ((final - first) // self._every + 1) * self._every, first)
        out = self.late(rows.take(late), followed)
        enters = np.flatnonzero(low <= last)
        entering = rows.take(enters)
        computed = self.aggregates.expressions(entering)
        columns = computed.columns
        good = self.fail(entering, computed.reasons())
        if good is not None:
            entering, enters = entering.take(good), enters[good]
            columns = [taken(column, good) for column in columns]
        counts = (last[enters] - low[enters]) // self._every + 1
        which = np.repeat(np.arange(len(enters)), counts)
        end = low[enters][which] + self._every * (np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts))
        parts = self.aggregates.parts(columns, len(entering))
        came = Held(
            self.numbered(entering)[which],
            [end, np.zeros(len(end), np.int64), np.where(end > followed.closed[enters][which], _OPEN, _REVISED)],
            [None if part is None else part[which] for part in parts],
        )
        following = followed.inputs[0].following[enters][which]
        return Flow(self._taken(came, following, followed), followed.controls), out

    def _taken(self, came: Held, following: Array, followed: Followed) -> Rows:
        """Add entries, each of which came before the control of that number; give what is due, and hold the rest."""
        held = self._held
        whole = Held.chained([held, came])
        codes = whole.of_keys(0)
        known, one, inverse = np.unique(codes, return_index=True, return_inverse=True)
        key, end, window = whole.key[one], whole.columns[0][one], inverse[len(held) :]
        count, none = len(known), len(followed.moments.places)
        revision, stands = np.zeros(count, np.int64), np.zeros(count, np.int64)
        revision[inverse[: len(held)]] = held.columns[1]
        stands[inverse[: len(held)]] = held.columns[2]
        is_open = np.bincount(inverse, weights=whole.columns[2] == _OPEN, minlength=count) > 0
        hit, moment = followed.moments.first_beyond(self.groups(key, followed), end, reached=True)
        closing = np.where(is_open & hit, moment, none)
        again = int(np.searchsorted(event_at(followed.moments.places), TOLD_AGAIN, side="right"))
        # Results are due at: what closes each window, the moment after each entry that came too late for that, and
        # the first of this batch for what was revised in the one before.
        is_late = came.columns[2] == _REVISED
        pending = np.flatnonzero(stands == _REVISED)
        by = np.concatenate([np.arange(count), window[is_late], pending])
        at = np.concatenate([closing, following[is_late], np.full(len(pending), again)])
        left = np.zeros(count, np.bool_)
        left[by[(at == none) & (np.arange(len(at)) >= count)]] = True
        due = np.unique((by * (none + 1) + at)[at < none])
        by, at = due // (none + 1), due % (none + 1)
        order = np.argsort(window, kind="stable")
        # The last entry of the window that came before the control; else what was held.
        codes = window[order] * (none + 2) + following[order]
        entry = np.searchsorted(codes, by * (none + 2) + at, side="right") - 1
        there = entry >= np.searchsorted(codes, by * (none + 2))
        sums, after = self._sums(came, inverse, order, np.where(there, entry, len(order) + by))
        nth = np.arange(len(by)) - np.searchsorted(by, by)
        given = revision[by] + nth
        turn = (at == closing[by]).astype(np.int64)
        leaves = self.in_order(key[by], end[by], at, turn)
        state = np.where(is_open & (closing == none), _OPEN, np.where(left, _REVISED, _CLOSED))
        kept = (state != _CLOSED) | (end + self._keep > self.closed_now(key))
        self._held = Held(key, [end, revision + np.bincount(by, minlength=count), state], after).take(kept)
        self._held.parts = [aggregates.slim(part) for part in self._held.parts]
        by, at, given = by[leaves], at[leaves], given[leaves]
        about = (end[by] - self._size, end[by], given, end[by] - 1)
        parts = [None if part is None else part[leaves] for part in sums]
        return self.results(key[by], about, at, parts, followed)

    def _sums(self, came: Held, inverse: Array, order: Array, which: Array) -> tuple[list[Part], list[Part]]:
        """Parts as of an entry each, by its number in that order, or behind those as held; and those of all after it.

        `inverse` says which window what was held is of, and then each entry.
        """
        count = int(inverse.max(initial=-1)) + 1
        held_at, window = inverse[: len(self._held)], inverse[len(self._held) :][order]
        runs = (window, np.flatnonzero(np.diff(window, prepend=-1)), count)
        found: list[Part] = []
        after: list[Part] = []
        listed = zip(
            came.parts, self._held.parts, self.aggregates.empty(count), self.aggregates.operations, strict=True
        )
        for part, held, before, operation in listed:
            if held is not None:
                before = np.zeros(count, np.int64) if before is None else before
                before = before.astype(held.dtype)
                before[held_at] = held
            sums, now = so_far(part, before, operation, order, runs)
            after.append(now)
            if sums is None and before is None:
                found.append(None)
                continue
            before = np.zeros(count, np.int64) if before is None else before
            found.append(np.concatenate([before[:0] if sums is None else sums, before])[which])
        return found, after

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, waiting = self.pieces(shard_of)
        held = self._held
        self.spread(pieces, held, shard_of, route)
        end, _, stands = held.columns
        self.ring(pieces, waiting, (held.key, np.where(stands == _OPEN, end, end + self._keep) - 1), shard_of, route)
        for number in np.unique(held.key[stands == _REVISED]).tolist():
            key = self.keys.known[number]
            pieces.ring(pieces.alarm, shard_of(tuple([key[field] for field in route])), AT_ONCE)
        return pieces

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self._held = self.gathered(shared, parts, 3)

    def snapshot(self) -> Any:
        return [self.waiting.snapshot(), self._held.save(self.keys.known)]

    def restore(self, saved: Any) -> None:
        waiting, held = saved
        self.waiting.restore(waiting)
        self._held = self.loaded([held], 3)

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        return self.shown(self._held, "windows", "end", "revision", "stands")
