"""`process` over a batch: each key's elements and timers, by the author's `on_elements` where there is one.

Results are put in the order in which events one by one would have given them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.events import TICK
from catchment.engines.spark.rows import Array, Rows
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.columned import Answer, Columned, Given
from catchment.engines.spark.vector.flow import Control, Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.keyed import Keyed, When
from catchment.engines.spark.vector.keys import column_values, distinct
from catchment.engines.spark.vector.projection import times
from catchment.engines.spark.vector.release import Released, VectorRelease
from catchment.engines.spark.vector.waiting import VectorWaiting
from catchment.operators.keys import Grouping
from catchment.operators.projection import time_position
from catchment.operators.timers import ELEMENT, TIMER
from catchment.program import steps
from catchment.program.process import Process
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


@dataclass(slots=True)
class _Work:
    """Elements by key, each key's in order: the moment that released each, its rank among all, its key and group."""

    rows: Rows
    moment: Array
    rank: Array
    code: Array
    group: Array

    def take(self, which: Array) -> _Work:
        return _Work(self.rows.take(which), self.moment[which], self.rank[which], self.code[which], self.group[which])

    def segments(self, ttl: int | None) -> Array:
        """Where runs of one key begin, and where all end; cut where a key is forgotten in between."""
        begins = np.diff(self.code, prepend=-1) != 0
        if ttl is not None:
            begins[1:] |= np.diff(self.rows.at) > ttl
        return np.append(np.flatnonzero(begins), len(self.code))


@dataclass(slots=True)
class _Made:
    """Results, and by what they are put in order. The place of `rows` is the number of a control."""

    moment: Array
    at: Array
    kind: Array
    tie: list[Any]
    rows: Rows


class VectorProcess(VectorStep):
    """An author's own step."""

    def __init__(self, step: steps.Processed, given: Schema) -> None:
        grouping = self._grouping = Grouping.of(given, step.keys, step.scope)
        self._places = [given.position(key) for key in step.keys]
        position = None if grouping.position is None else self._places[grouping.position]
        waiting = VectorWaiting(grouping, step.closing, step.scope)
        self._release = VectorRelease(waiting, position, step.order, kinds_of(given))
        self._kinds = kinds_of(step.record)
        self._time = time_position(step.record)
        self._keyed = Keyed(step, given, self._quarantine)
        process = self._keyed.process
        batched = type(process).on_elements is not Process.on_elements and not self._keyed.is_in_turn
        self._columned = Columned(process, given, step.record, self._keyed.copied) if batched else None

    def _quarantine(self, error: RowError, row: Row) -> None:
        self.failed.add(self._keyed.place, self.number, self.name, error.reason, row)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        released = self._release.take(flow)
        keyed, rows = self._keyed, released.rows
        places = released.followed.moments.places.tolist()
        controls: list[Control] = [(place, *what) for place, (_, *what) in zip(places, flow.controls, strict=True)]
        keyed.begin(released, controls)
        given: list[_Made] = []
        if keyed.is_in_turn:
            keyed.in_turn(released, controls, rows.objects())
        else:
            if len(rows):
                given = self._by_key(released)
            keyed.rest()
        made = self._ordered(given, released, controls)
        late = Flow(released.late, [each for each in released.followed.controls if each[1] == TICK])
        return Flow(made, released.followed.controls), late

    def _by_key(self, released: Released) -> list[_Made]:
        rows = released.rows
        columns = [rows.columns[place] for place in self._places]
        if columns:
            codes, firsts = distinct(columns, len(rows))
            keys = list(zip(*[column_values(column, firsts) for column in columns], strict=True))
        else:
            codes, firsts, keys = np.zeros(len(rows), np.int64), np.zeros(1, np.int64), [()]
        rank = np.argsort(codes, kind="stable")
        work = _Work(rows.take(rank), released.moment[rank], rank, codes[rank], released.group[rank])
        names = released.followed.groups.known
        groups = [names[number] for number in released.group[firsts].tolist()]
        segments = work.segments(None if self._columned is None else self._keyed.ttl)
        if self._columned is None:
            self._called(work, segments, keys, groups)
            return []
        made: list[_Made] = []
        # A key that is forgotten between two of its elements begins anew: its elements are so many runs.
        turn = _ordinals(work.code[segments[:-1]])
        for nth in range(int(turn.max()) + 1):
            which = np.flatnonzero(turn == nth)
            begins, ends = segments[which], segments[which + 1]
            part = work if len(which) == len(turn) else work.take(_ranges(begins, ends))
            starts = np.concatenate([[0], np.cumsum(ends - begins)])
            try:
                made += self._at_once(self._columned, part, starts, keys, groups)
            except Exception:  # which of the elements it was, the calls one by one will tell
                self._called(part, starts, keys, groups)
        return made

    def _called(self, work: _Work, starts: Array, keys: list[Any], groups: list[Any]) -> None:
        """Elements of each key call by call."""
        listed = list(
            zip(work.moment.tolist(), work.rows.at.tolist(), work.rank.tolist(), work.rows.objects(), strict=True)
        )
        bounds = starts.tolist()
        for code, begin, end in zip(work.code[starts[:-1]].tolist(), bounds, bounds[1:], strict=False):
            self._keyed.one_by_one(keys[code], groups[code], listed[begin:end])

    def _at_once(
        self, columned: Columned, work: _Work, starts: Array, keys: list[Any], groups: list[Any]
    ) -> list[_Made]:
        keyed, rows = self._keyed, work.rows
        codes, at = work.code[starts[:-1]].tolist(), rows.at[starts[:-1]].tolist()
        known = [keyed.known(keys[code], groups[code], since) for code, since in zip(codes, at, strict=True)]
        answer = columned.call(known, starts, rows)
        made = [self._made(each, work, starts, known) for each in answer.given]
        answer.keep()
        self._keep(answer, work, starts, known)
        return made

    def _keep(self, answer: Answer, work: _Work, starts: Array, known: list[Any]) -> None:
        last = starts[1:] - 1
        listed = zip(work.moment[last].tolist(), work.rows.at[last].tolist(), work.rank[last].tolist(), strict=True)
        forgotten = answer.forgotten.tolist()
        for number, (one, (moment, at, rank)) in enumerate(zip(known, listed, strict=True)):
            when = When(moment, at, ELEMENT, rank)
            if forgotten[number]:
                self._keyed.drop(one, when)
            else:
                self._keyed.keep(one, when, answer.timers.get(number, ()))

    def _made(self, given: Given, work: _Work, starts: Array, known: list[Any]) -> _Made:
        """Results of a call with when they would have happened, one by one."""
        cause = given.cause
        if len(cause) and not (cause.min() >= 0 and cause.max() < len(work.rank)):
            raise IndexError(f"a cause is the number of one of the {len(work.rank)} elements")
        moment, at, kind = work.moment[cause], work.rows.at[cause], np.full(len(cause), ELEMENT, np.int64)
        tie: list[Any] = work.rank[cause].tolist()
        rows = Rows(at, work.group[cause], moment, [], given.columns)
        if given.timer_at is not None:
            timer_at = given.timer_at
            key = np.searchsorted(starts, cause, side="right") - 1
            first = cause == starts[key]
            kind[:] = TIMER
            at = timer_at
            raised = [
                self._keyed.moment(known[number].group, moment_at)
                for number, moment_at in zip(key.tolist(), timer_at.tolist(), strict=True)
            ]
            before = np.where(first, 0, work.moment[np.maximum(cause - 1, 0)])
            moment = np.maximum(np.array(raised, np.int64), before)
            tie = [(known[number].sorts_as, "") for number in key.tolist()]
            rows = Rows(at, rows.source, moment, [], given.columns)
        rows.at = times(rows.columns, self._time, rows.at)
        return _Made(moment, at, kind, tie, rows)

    def _ordered(self, given: list[_Made], released: Released, controls: list[Control]) -> Rows:
        groups = released.followed.groups
        called = self._keyed.made
        loose = Rows.of([(at, source, row) for _, _, at, source, row in called], self._kinds)
        loose.place = np.array([place for _, place, _, _, _ in called], np.int64)
        if self._keyed.is_in_turn or not given:
            if not self._keyed.is_in_turn:
                order = sorted(range(len(called)), key=lambda number: called[number][0])
                loose = loose.take(np.array(order, np.int64))
            return loose
        sources = groups.sources()
        for each in given:
            each.rows.place, each.rows.sources = released.followed.moments.places[each.moment], sources
        whole = Rows.concat([*(each.rows for each in given), loose])
        whens = [when for when, *_ in called]
        keys: list[Array] = [
            np.concatenate(
                [*(getattr(each, name) for each in given), np.array([getattr(w, name) for w in whens], np.int64)]
            )
            for name in ("moment", "at", "kind")
        ]
        tie = _ranked([*(one for each in given for one in each.tie), *(when.tie for when in whens)], keys[2])
        after = np.concatenate(
            [np.zeros(len(tie) - len(whens), np.int64), np.array([w.after for w in whens], np.int64)]
        )
        return whole.take(np.lexsort((after, tie, keys[2], keys[1], keys[0])))

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, waiting = self._release.split(shard_of, [self._places[field] for field in route])
        state = self._keyed.state()
        pieces.shared = [pieces.shared, state["number"], state["touched"]]
        counts: Counter[int] = Counter()
        for entry in state["keys"]:
            shard = shard_of(tuple([entry[0][field] for field in route]))
            part = pieces.parts.setdefault(shard, [None, None])
            if len(part) == 2:
                part.append([])
            part[2].append(entry)
            counts[shard] += 1
            events, clocks = self._keyed.due_of(entry)
            if events is not None:
                waiting.ring(pieces, shard, self._grouping.of_key(entry[0]), events)
            if clocks is not None:
                pieces.ring(pieces.clock, shard, clocks)
        for shard, count in counts.items():
            pieces.count[shard] = max(pieces.count.get(shard, 0), count)
        return pieces

    def remembered(self) -> Sequence[tuple[tuple[Any, ...], Any]]:
        return [
            (key, {"state": state, "latest": latest, "timers": {name: moment for name, _, moment, *_ in timers}})
            for key, state, latest, timers, _ in self._keyed.state()["keys"]
        ]

    def forget(self, device: str) -> None:
        self._release.waiting.forget(device)

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self._grouping.position or 0, self._grouping.stamp

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        release, number, touched = shared
        self._release.merge(release, parts)
        keys = [entry for part in parts for entries in part[2:] for entry in entries]
        self._resume({"number": number, "elements": [], "touched": touched, "keys": keys})

    def snapshot(self) -> Any:
        return [self._release.snapshot(), self._keyed.state()]

    def restore(self, saved: Any) -> None:
        release, state = saved
        self._release.restore(release)
        self._resume(state)

    def _resume(self, state: Any) -> None:
        tracker = self._release.waiting.tracker
        self._keyed.time.marks = dict(tracker.marks)
        self._keyed.time.read = tracker.now()
        self._keyed.set_state(state)


def _ranked(ties: list[Any], kind: Array) -> Array:
    """Numbers in the order of what decides between events of one time: ranks of elements, and of timers their names."""
    timers = np.flatnonzero(kind == TIMER).tolist()
    if not timers:
        return np.array(ties, np.int64)
    order = {tie: number for number, tie in enumerate(sorted({ties[number] for number in timers}))}
    for number in timers:
        ties[number] = order[ties[number]]
    return np.array(ties, np.int64)


def _ordinals(codes: Array) -> Array:
    """Of runs in order of key, the how many-eth of its key each is."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    found: Array = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes))))
    return found


def _ranges(begins: Array, ends: Array) -> Array:
    """The numbers of ranges, one after the other."""
    lengths = ends - begins
    found: Array = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    return found
