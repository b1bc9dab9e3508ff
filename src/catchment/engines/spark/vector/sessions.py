"""Sessions over a batch: what is open and what came, sorted by key and time, falls into runs without a gap.

That holds for keys whose elements all came before their group's bound was beyond them, however batches and moments
lie: what closed by then ended too early to be near. Keys with others are taken element by element and moment by
moment, which only says what belongs together; their aggregates are columns all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows, taken
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.flow import Flow
from catchment.engines.spark.vector.held import Held
from catchment.engines.spark.vector.waiting import Followed
from catchment.engines.spark.vector.windowed import Windowed
from catchment.operators.keys import Key
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import SessionWindow

_OPEN = -1
"""Instead of the moment that closes a session: none does."""
_AFTER_ALL = 1 << 62
_LATE, _FAILED = -1, -2
"""Instead of the session of an element."""


class VectorSessions(Windowed):
    """Open sessions: the first and the last time of each."""

    def __init__(self, step: steps.Aggregated, given: Schema) -> None:
        assert isinstance(step.window, SessionWindow)
        super().__init__(step, given)
        self._gap = step.window.gap
        self._held = Held.nothing(2, self.aggregates.empty(0))

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        followed = self.follow(flow)
        rows, held = followed.rows, self._held
        computed = self.aggregates.expressions(rows)
        reasons = computed.reasons()
        key = np.concatenate([held.key, self.numbered(rows)])
        ends = [np.concatenate([column, rows.at]) for column in held.columns]
        failing = np.zeros(len(key), np.bool_)
        failing[[len(held) + row for row in reasons]] = True
        strange = np.zeros(len(self.keys.known), np.bool_)
        strange[key[len(held) :][rows.at < followed.closed]] = True
        session = np.full(len(key), _FAILED, np.int64)
        plain = np.flatnonzero(~failing & ~strange[key])
        session[plain], of_key, end = _runs(key[plain], ends[0][plain], ends[1][plain], self._gap)
        hit, moment = followed.moments.first_beyond(self.groups(of_key, followed), end, reached=True)
        closes = np.where(hit, moment, _OPEN)
        if strange.any():
            turns = _Turns(followed, self._gap, session, failing, closes.tolist())
            for number in np.flatnonzero(strange).tolist():
                which = np.flatnonzero(key == number)
                turns.take(which, len(held), ends, followed.groups.number(self.group_of(self.keys.known[number])))
            closes = np.array(turns.closes, np.int64)
        came = session[len(held) :]
        self.fail(rows, {row: reason for row, reason in reasons.items() if came[row] != _LATE})
        given = self._closed(key, ends, session, closes, [taken(c, came >= 0) for c in computed.columns], followed)
        return Flow(given, followed.controls), self.late(rows.take(came == _LATE), followed)

    def _closed(
        self, key: Array, ends: list[Array], session: Array, closes: Array, columns: list[Any], followed: Followed
    ) -> Rows:
        """The sessions that close, given the session of each that was held and of each element; the others are held."""
        there = np.flatnonzero(session >= 0)
        count = len(self._held)
        parts = self.aggregates.parts(columns, len(there) - count)
        fresh = Held(key[there[count:]], [end[there[count:]] for end in ends], parts)
        whole = Held.chained([self._held, fresh])
        numbers, one, merged = whole.merged(session[there], self.aggregates.operations)
        first, last = whole.columns[0][one], whole.columns[1][one]
        place = np.searchsorted(numbers, session[there])
        np.minimum.at(first, place, whole.columns[0])
        np.maximum.at(last, place, whole.columns[1])
        table = Held(whole.key[one], [first, last], merged)
        moment = closes[numbers] if len(numbers) else numbers
        held = self._held = table.take(moment == _OPEN)
        held.parts = [aggregates.slim(part) for part in held.parts]
        done, moment = table.take(moment != _OPEN), moment[moment != _OPEN]
        order = self.in_order(done.key, done.columns[1], moment)
        done = done.take(order)
        first, end = done.columns[0], done.columns[1] + self._gap
        return self.results(
            done.key, (first, end, np.zeros(len(end), np.int64), end - 1), moment[order], done.parts, followed
        )

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, waiting = self.pieces(shard_of)
        self.spread(pieces, self._held, shard_of, route)
        self.ring(pieces, waiting, (self._held.key, self._held.columns[1] + self._gap - 1), shard_of, route)
        return pieces

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self._held = self.gathered(shared, parts, 2)

    def snapshot(self) -> Any:
        return [self.waiting.snapshot(), self._held.save(self.keys.known)]

    def restore(self, saved: Any) -> None:
        waiting, held = saved
        self.waiting.restore(waiting)
        self._held = self.loaded([held], 2)

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        return self.shown(self._held, "sessions", "first", "last")


def _runs(key: Array, first: Array, last: Array, gap: int) -> tuple[Array, Array, Array]:
    """What follows without a gap of the same key: the number of the run of each, and each run's key and end."""
    if not len(key):
        return key, key, key
    order = np.lexsort((first, key))
    keys, begins = key[order], np.ones(len(key), np.bool_)
    values, rank = np.unique(last[order], return_inverse=True)
    reach = values[np.maximum.accumulate(keys * len(values) + rank) % len(values)]
    begins[1:] = (keys[1:] != keys[:-1]) | (first[order][1:] - gap >= reach[:-1])
    number = np.empty(len(key), np.int64)
    number[order] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    return number, keys[starts], reach[np.append(starts[1:], len(key)) - 1] + gap


@dataclass(slots=True)
class _Session:
    first: int
    last: int
    number: int


class _Turns:
    """Keys whose elements are taken one after the other. Numbers of sessions go on where `closes` ends."""

    def __init__(self, followed: Followed, gap: int, session: Array, failing: Array, closes: list[int]) -> None:
        self.closes = closes
        self._session = session
        self._failing = failing
        self._gap = gap
        self._closed = followed.closed
        self._before = followed.inputs[0].following
        moments = followed.moments
        self._moments: dict[int, list[tuple[int, int]]] = {}
        listed = zip(moments.group.tolist(), moments.number.tolist(), moments.bound.tolist(), strict=True)
        for group, number, bound in listed:
            self._moments.setdefault(group, []).append((number, bound))

    def take(self, which: Array, held: int, ends: list[Array], group: int) -> None:
        """The entries of a key: so many of all are held sessions, the others elements in order."""
        gap, closes = self._gap, self.closes
        open_: list[_Session] = []
        moments = iter([*self._moments.get(group, ()), (_AFTER_ALL, 0)])
        number, bound = next(moments)
        merged: dict[int, int] = {}
        found: list[int] = []
        firsts, lasts = ends[0][which].tolist(), ends[1][which].tolist()
        for entry, first, last in zip(which.tolist(), firsts, lasts, strict=True):
            before = self._before[entry - held] if entry >= held else -1
            while number < before:
                open_ = self._close(open_, number, bound)
                number, bound = next(moments)
            near = [one for one in open_ if one.first - gap < first < one.last + gap] if entry >= held else []
            if entry >= held and not near and self._closed[entry - held] >= first + gap:
                found.append(_LATE)
            elif self._failing[entry]:
                found.append(_FAILED)
            elif near:
                one, *others = near
                one.first, one.last = min(first, *(n.first for n in near)), max(last, *(n.last for n in near))
                for other in others:
                    open_.remove(other)
                    merged[other.number] = one.number
                found.append(one.number)
            else:
                found.append(len(closes))
                open_.append(_Session(first, last, len(closes)))
                closes.append(_OPEN)
        while number < _AFTER_ALL:
            open_ = self._close(open_, number, bound)
            number, bound = next(moments)
        for place, one_of in zip(which.tolist(), found, strict=True):
            while one_of in merged:
                one_of = merged[one_of]
            self._session[place] = one_of

    def _close(self, open_: list[_Session], number: int, bound: int) -> list[_Session]:
        for one in open_:
            if one.last + self._gap <= bound:
                self.closes[one.number] = number
        return [one for one in open_ if one.last + self._gap > bound]
