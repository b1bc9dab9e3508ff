"""Windows of time over a batch, by panes: elements are added up once, and windows are differences of running sums.

The held panes and the new elements are one sorted table of (key, pane). A window's aggregate is what a running sum
gained between its ends; the least and the greatest come from a table of doubling spans. Windows leave as event by event
they would: at the moment that closes them, by end and key.

An element that comes behind its group's bound may share a pane with windows that are closed by then, so a batch is cut
before such an element where a moment lies between it and the cut before.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows, taken
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.aggregates import Part
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Flow
from catchment.engines.spark.vector.held import Held
from catchment.engines.spark.vector.places import entered
from catchment.engines.spark.vector.spans import Spans
from catchment.engines.spark.vector.waiting import Followed
from catchment.engines.spark.vector.windowed import Windowed
from catchment.operators.keys import Key
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import TimeWindow


class VectorWindows(Windowed):
    """Aggregates of hopping and tumbling windows that are not revised: panes, by key and start, sorted by them."""

    def __init__(self, step: steps.Aggregated, given: Schema) -> None:
        assert isinstance(step.window, TimeWindow)
        super().__init__(step, given)
        self._size, self._every = step.window.size, step.window.every
        self._pane = gcd(self._size, self._every)
        self._panes = Held.nothing(1, self.aggregates.empty(0))

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        followed = self.follow(flow)
        rows, closed = followed.rows, followed.closed
        behind = rows.at < closed
        late = np.zeros(len(rows), np.bool_)
        if behind.any():
            late = behind & (self._first_end(rows.at) <= closed)
            behind &= self._last_end(rows.at) > closed
        enters = behind | (rows.at >= closed)
        out = self.late(rows.take(late), followed)
        entering = rows if enters.all() else rows.take(enters)
        computed = self.aggregates.expressions(entering)
        columns = computed.columns
        good = self.fail(entering, computed.reasons())
        behind = behind[enters]
        if good is not None:
            entering, behind, columns = entering.take(good), behind[good], [taken(c, good) for c in columns]
        cuts = _cuts(entering.place[behind], followed.moments.place)
        start = entering.at - entering.at % self._pane
        fresh = Held(self.numbered(entering), [start], self.aggregates.parts(columns, len(entering)))
        given: list[Rows] = []
        for since, until in zip([None, *cuts], [*cuts, None], strict=True):
            new = fresh
            if cuts:
                new = fresh.take(_between(entering.place, since, until))
            given.append(self._close(self._added(new), followed, since, until))
        return Flow(Rows.concat(given), followed.controls), out

    def _first_end(self, at: Array) -> Array:
        end: Array = at + self._every - (at - self._size) % self._every
        return end

    def _last_end(self, at: Array) -> Array:
        end: Array = at - at % self._every + self._size
        return end

    def _added(self, new: Held) -> Held:
        """The held panes and the new elements, as panes."""
        if not len(new):
            return self._panes
        whole = Held.chained([self._panes, new])
        _, one, parts = whole.merged(whole.of_keys(0), self.aggregates.operations)
        return Held(whole.key[one], [whole.columns[0][one]], parts)

    def _close(self, panes: Held, followed: Followed, since: int | None, until: int | None) -> Rows:
        """The windows that close at moments of those places; what is needed no more is dropped."""
        moments, groups = followed.moments, followed.groups
        which = np.flatnonzero(_between(moments.place, since, until)) if len(moments.place) else moments.place
        self._panes = panes
        if not len(which) or not len(panes.key):
            none = np.zeros(0, np.int64)
            return self._rows(none, none, self.aggregates.empty(0), followed)
        count = len(groups.known)
        before = np.zeros(count, np.int64)
        bound = np.zeros(count, np.int64)
        moved = np.zeros(count, np.bool_)
        bound[moments.group[which]] = moments.bound[which]
        before[moments.group[which[::-1]]] = moments.before[which[::-1]]
        moved[moments.group[which]] = True
        group_of_key = self._groups_of_keys(panes.key, followed)
        group = group_of_key[panes.key]
        start = panes.columns[0]
        last = self._last_end(start)
        there = (group >= 0) & moved[group]
        size, every = self._size, self._every
        low = before[group] + every - (before[group] - size) % every
        high = bound[group] - (bound[group] - size) % every
        low = np.maximum(low, self._first_end(start))
        same = panes.key[1:] == panes.key[:-1]
        low[1:] = np.where(same, np.maximum(low[1:], last[:-1] + every), low[1:])
        high = np.minimum(high, last)
        counts = np.where(there, np.maximum((high - low) // every + 1, 0), 0)
        key = np.repeat(panes.key, counts)
        nth = np.arange(len(key)) - np.repeat(np.cumsum(counts) - counts, counts)
        end = np.repeat(low, counts) + every * nth
        spans = Spans(panes.key, start)
        found = spans.together(panes.parts, self.aggregates.operations, *spans.of(key, end - size, end))
        made = self._rows(key, end, found, followed)
        kept = ~there | (last > bound[group])
        self._panes = panes if kept.all() else panes.take(kept)
        self._panes.parts = [aggregates.slim(part) for part in self._panes.parts]
        return made

    def _groups_of_keys(self, keys: Array, followed: Followed) -> Array:
        """Of each key, the number of its group where the batch met it, else -1."""
        known = self.keys.known
        found = np.full(len(known), -1, np.int64)
        numbers = followed.groups.numbers
        for key in np.unique(keys).tolist():
            found[key] = numbers.get(self.group_of(known[key]), -1)
        return found

    def _rows(self, key: Array, end: Array, parts: list[Part], followed: Followed) -> Rows:
        _, moment = followed.moments.first_beyond(self.groups(key, followed), end, reached=True)
        order = self.in_order(key, end, moment)
        end, parts = end[order], [None if part is None else part[order] for part in parts]
        about = (end - self._size, end, np.zeros(len(end), np.int64), end - 1)
        return self.results(key[order], about, moment[order], parts, followed)

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, waiting = self.pieces(shard_of)
        panes = self._panes
        self.spread(pieces, panes, shard_of, route)
        # Windows that are closed already may still share panes with the next.
        bound = self.closed_now(panes.key)
        following = bound + self._every - (bound - self._size) % self._every
        due = np.maximum(self._first_end(panes.columns[0]), following) - 1
        self.ring(pieces, waiting, (panes.key, due), shard_of, route)
        return pieces

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        return self.shown(self._panes, "panes", "start")

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self._panes = self.gathered(shared, parts, 1)

    def snapshot(self) -> Any:
        return [self.waiting.snapshot(), *self._panes.save(self.keys.known)]

    def restore(self, saved: Any) -> None:
        waiting, *panes = saved
        self.waiting.restore(waiting)
        self._panes = self.loaded([panes], 1)


def _cuts(behind: Array, moments: Array) -> list[int]:
    """Before which places a batch is cut: those of elements behind, where a moment lies since the cut before."""
    cuts: list[int] = []
    since = entered(TOLD_AGAIN)
    places = moments.tolist()
    at = 0
    for place in behind.tolist():
        crossed = False
        while at < len(places) and places[at] < place:
            crossed = crossed or places[at] >= since
            at += 1
        if crossed:
            cuts.append(place)
            since = place
    return cuts


def _between(places: Array, since: int | None, until: int | None) -> Array:
    found = np.ones(len(places), np.bool_)
    if since is not None:
        found &= places >= since
    if until is not None:
        found &= places < until
    return found
