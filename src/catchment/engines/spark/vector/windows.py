"""Windows of time over a batch, by panes: elements are added up once, and windows are differences of running sums.

The held panes and the new elements are one sorted table of (key, pane). A window's aggregate is what a running sum
gained between its ends; the least and the greatest come from a table of doubling spans. Windows leave as event by event
they would: at the moment that closes them, by end and key.

An element that comes behind its group's bound may share a pane with windows that are closed by then, so a batch is cut
before such an element where a moment lies between it and the cut before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from catchment.engines.spark.events import TICK
from catchment.engines.spark.rows import Array, Column, Rows, column_of, taken, tuples
from catchment.engines.spark.state.pieces import Pieces, ShardOf, by_shard
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.aggregates import Part, VectorAggregates
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.keys import Keys
from catchment.engines.spark.vector.places import entered
from catchment.engines.spark.vector.waiting import Followed, VectorWaiting
from catchment.operators.keys import Grouping
from catchment.operators.ordering import sortable_key
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import TimeWindow


@dataclass(slots=True)
class _Panes:
    """Panes by key and start, sorted by them, with their parts."""

    key: Array
    start: Array
    parts: list[Part]

    def take(self, which: Array) -> _Panes:
        return _Panes(
            self.key[which], self.start[which], [None if part is None else part[which] for part in self.parts]
        )


class VectorWindows(VectorStep):
    """Aggregates of hopping and tumbling windows that are not revised."""

    def __init__(self, step: steps.Aggregated, given: Schema) -> None:
        assert isinstance(step.window, TimeWindow)
        self._size, self._every = step.window.size, step.window.every
        self._pane = gcd(self._size, self._every)
        self._grouping = Grouping.of(given, step.keys, step.scope)
        self._waiting = VectorWaiting(self._grouping, step.window.closing, step.scope)
        self._places = [given.position(key) for key in step.keys]
        self._kinds = [kinds_of(given)[place] for place in self._places]
        self._sorts_as: Callable[[Any], Any] = sortable_key(given, step.keys)
        self._aggregates = VectorAggregates(step.aggregates, given)
        self._names = [one.name for one in step.aggregates]
        self._keys = Keys()
        none = np.zeros(0, np.int64)
        self._panes = _Panes(none, none, self._aggregates.empty(0))

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        position = self._grouping.position
        field = None if position is None else flow.rows.columns[self._places[position]]
        followed = self._waiting.follow(flow, field)
        rows, closed = followed.rows, followed.closed
        behind = rows.at < closed
        late = np.zeros(len(rows), np.bool_)
        if behind.any():
            late = behind & (self._first_end(rows.at) <= closed)
            behind &= self._last_end(rows.at) > closed
        enters = behind | (rows.at >= closed)
        out = Flow(rows.take(late), [each for each in followed.controls if each[1] == TICK])
        entering = rows if enters.all() else rows.take(enters)
        computed = self._aggregates.expressions(entering)
        columns = computed.columns
        good = self.fail(entering, computed.reasons())
        behind = behind[enters]
        if good is not None:
            entering, behind, columns = entering.take(good), behind[good], [taken(c, good) for c in columns]
        cuts = _cuts(entering.place[behind], followed.moments.place)
        numbers = self._keys.number([entering.columns[place] for place in self._places], len(entering))
        start = entering.at - entering.at % self._pane
        parts = self._aggregates.parts(columns, len(entering))
        fresh = _Panes(numbers, start, parts)
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

    def _added(self, new: _Panes) -> _Panes:
        """The held panes and the new elements, as panes."""
        if not len(new.key):
            return self._panes
        held = self._panes
        lengths = (len(held.key), len(new.key))
        key, start = np.concatenate([held.key, new.key]), np.concatenate([held.start, new.start])
        parts = [aggregates.chained(pair, lengths) for pair in zip(held.parts, new.parts, strict=True)]
        order = np.lexsort((start, key))
        key, start = key[order], start[order]
        begins = np.flatnonzero(np.append(True, (np.diff(key) != 0) | (np.diff(start) != 0)))
        added: list[Part] = []
        for part, operation in zip(parts, self._aggregates.operations, strict=True):
            if part is None:
                added.append(None)
                continue
            whole = _roomy(part[order]) if operation is np.add else part[order]
            added.append(operation.reduceat(whole, begins))
        return _Panes(key[begins], start[begins], added)

    def _close(self, panes: _Panes, followed: Followed, since: int | None, until: int | None) -> Rows:
        """The windows that close at moments of those places; what is needed no more is dropped."""
        moments, groups = followed.moments, followed.groups
        which = np.flatnonzero(_between(moments.place, since, until)) if len(moments.place) else moments.place
        self._panes = panes
        if not len(which) or not len(panes.key):
            return self._rows(np.zeros(0, np.int64), np.zeros(0, np.int64), [], followed)
        count = len(groups.known)
        before = np.zeros(count, np.int64)
        bound = np.zeros(count, np.int64)
        moved = np.zeros(count, np.bool_)
        bound[moments.group[which]] = moments.bound[which]
        before[moments.group[which[::-1]]] = moments.before[which[::-1]]
        moved[moments.group[which]] = True
        group_of_key = self._groups_of_keys(panes.key, followed)
        group = group_of_key[panes.key]
        last = self._last_end(panes.start)
        there = (group >= 0) & moved[group]
        size, every = self._size, self._every
        low = before[group] + every - (before[group] - size) % every
        high = bound[group] - (bound[group] - size) % every
        low = np.maximum(low, self._first_end(panes.start))
        same = panes.key[1:] == panes.key[:-1]
        low[1:] = np.where(same, np.maximum(low[1:], last[:-1] + every), low[1:])
        high = np.minimum(high, last)
        counts = np.where(there, np.maximum((high - low) // every + 1, 0), 0)
        key = np.repeat(panes.key, counts)
        nth = np.arange(len(key)) - np.repeat(np.cumsum(counts) - counts, counts)
        end = np.repeat(low, counts) + every * nth
        made = self._rows(key, end, self._spanned(panes, key, end), followed)
        kept = ~there | (last > bound[group])
        self._panes = panes if kept.all() else panes.take(kept)
        self._panes.parts = [aggregates.slim(part) for part in self._panes.parts]
        return made

    def _groups_of_keys(self, keys: Array, followed: Followed) -> Array:
        """Of each key, the number of its group where the batch met it, else -1."""
        position = self._grouping.position
        known = self._keys.known
        found = np.full(len(known), -1, np.int64)
        numbers = followed.groups.numbers
        for key in np.unique(keys).tolist():
            found[key] = numbers.get(None if position is None else known[key][position], -1)
        return found

    def _spanned(self, panes: _Panes, key: Array, end: Array) -> list[Part]:
        """The parts of windows: of the panes of the key that begin in [end - size, end)."""
        starts, rank = np.unique(panes.start, return_inverse=True)
        span = len(starts) + 1
        codes = panes.key * span + rank
        low = np.searchsorted(codes, key * span + np.searchsorted(starts, end - self._size))
        high = np.searchsorted(codes, key * span + np.searchsorted(starts, end))
        found: list[Part] = []
        for part, operation in zip(panes.parts, self._aggregates.operations, strict=True):
            if part is None:
                found.append(None)
            elif operation is np.add:
                sums = np.concatenate([np.zeros(1, part.dtype), np.cumsum(_roomy(part))])
                found.append(sums[high] - sums[low])
            else:
                found.append(_extremes(part, operation, low, high))
        return found

    def _rows(self, key: Array, end: Array, parts: list[Part], followed: Followed) -> Rows:
        used, codes = np.unique(key, return_inverse=True)
        keys = [self._keys.known[number] for number in used.tolist()]
        position = self._grouping.position
        group = np.array(
            [followed.groups.number(None if position is None else one[position]) for one in keys], np.int64
        )
        group = group[codes]
        _, moment = followed.moments.first_beyond(group, end, reached=True)
        if len(key):
            sorts_as = [self._sorts_as(one) for one in keys]
            rank = np.empty(len(keys), np.int64)
            rank[sorted(range(len(keys)), key=sorts_as.__getitem__)] = np.arange(len(keys))
            order = np.lexsort((rank[codes], end, moment))
            codes, end, group, moment = codes[order], end[order], group[order], moment[order]
            parts = [None if part is None else part[order] for part in parts]
        else:
            parts = self._aggregates.empty(0)
        columns = [
            taken(column_of([one[which] for one in keys], kind), codes) for which, kind in enumerate(self._kinds)
        ]
        values, reasons = self._aggregates.results(parts)
        about = [end - self._size, end, np.zeros(len(end), np.int64), end - 1]
        columns += [*map(Column, about), *values]
        place = followed.moments.places[moment]
        made = Rows(end - 1, group, place, followed.groups.sources(), columns)
        good = self.fail(made, reasons)
        return made if good is None else made.take(good)

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        waiting = self._waiting.split(shard_of)
        pieces = Pieces(waiting.shared)
        for shard, part in waiting.parts.items():
            pieces.parts[shard] = [part]
            pieces.count[shard] = len(part["groups"])
        panes = self._panes
        used, codes = np.unique(panes.key, return_inverse=True)
        keys = [self._keys.known[number] for number in used.tolist()]
        shard_of_key = np.array([shard_of(tuple([key[field] for field in route])) for key in keys], np.int64)
        position = self._grouping.position
        # Panes are in order of key and start: the first of each is that of its key's earliest.
        first = self._first_end(panes.start[np.searchsorted(codes, np.arange(len(keys)))])
        for key, shard, end in zip(keys, shard_of_key.tolist(), first.tolist(), strict=True):
            group = None if position is None else key[position]
            bound = self._waiting.bound(group)
            # Windows that are closed already may still share panes with the next.
            following = max(end, bound + self._every - (bound - self._size) % self._every)
            waiting.ring(pieces, shard, group, following - 1)
        for shard, which in by_shard(shard_of_key[codes]):
            own, code = np.unique(codes[which], return_inverse=True)
            held = panes.take(which)
            pieces.parts.setdefault(shard, [None])
            pieces.parts[shard] += [
                [keys[number] for number in own.tolist()],
                code.astype(np.int64).tobytes(),
                held.start.tobytes(),
                [aggregates.save(part) for part in held.parts],
            ]
            pieces.count[shard] = max(pieces.count.get(shard, 0), len(own))
        return pieces

    def remembered(self) -> Sequence[tuple[tuple[Any, ...], Any]]:
        panes = self._panes
        values, _ = self._aggregates.results(panes.parts)
        columns = [column.objects() for column in values]
        found: dict[int, list[Any]] = {}
        for key, start, *row in zip(panes.key.tolist(), panes.start.tolist(), *columns, strict=True):
            found.setdefault(key, []).append({"start": start, **dict(zip(self._names, row, strict=True))})
        return [(self._keys.known[key], {"panes": held}) for key, held in found.items()]

    def forget(self, device: str) -> None:
        self._waiting.forget(device)

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self._grouping.position or 0, self._grouping.stamp

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self._waiting.merge(shared, [part[0] for part in parts if part[0] is not None])
        keys: list[Any] = []
        numbers, starts, held, lengths = [], [], [], []
        for _, own, code, start, saved in [part for part in parts if len(part) > 1]:
            numbers.append(np.frombuffer(code, np.int64) + len(keys))
            keys += [tuples(key) for key in own]
            starts.append(np.frombuffer(start, np.int64))
            held.append([aggregates.load(part) for part in saved])
            lengths.append(len(starts[-1]))
        self._keys = Keys(keys)
        none = np.zeros(0, np.int64)
        self._panes = _Panes(none, none, self._aggregates.empty(0))
        if keys:
            columns = [aggregates.chained(column, lengths) for column in zip(*held, strict=True)]
            self._panes = _Panes(np.concatenate(numbers), np.concatenate(starts), columns)

    def snapshot(self) -> Any:
        panes = self._panes
        used, key = np.unique(panes.key, return_inverse=True)
        keys = [self._keys.known[number] for number in used.tolist()]
        parts = [aggregates.save(part) for part in panes.parts]
        return [self._waiting.snapshot(), keys, key.astype(np.int64).tobytes(), panes.start.tobytes(), parts]

    def restore(self, saved: Any) -> None:
        waiting, keys, key, start, parts = saved
        self._waiting.restore(waiting)
        self._keys = Keys([tuples(key) for key in keys])
        self._panes = _Panes(
            np.frombuffer(key, np.int64), np.frombuffer(start, np.int64), [aggregates.load(part) for part in parts]
        )


def _roomy(part: Array) -> Array:
    found = aggregates.roomy(part)
    assert found is not None
    return found


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


def _extremes(part: Array, operation: np.ufunc, low: Array, high: Array) -> Array:
    """The least or greatest of each span, which is not empty, by two spans of a power of two that cover it."""
    lengths = high - low
    level = np.frexp(lengths)[1] - 1
    found = np.empty(len(low), part.dtype)
    table = part
    for power in range(int(level.max(initial=0)) + 1):
        if power:
            reach = 1 << (power - 1)
            table = operation(table[:-reach], table[reach:])
        here = level == power
        if here.any():
            found[here] = operation(table[low[here]], table[high[here] - (1 << power)])
    return found
