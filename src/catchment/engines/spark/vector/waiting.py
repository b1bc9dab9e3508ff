"""What progress does to a step in one batch: what was closed when each element came, and the moments of each group.

Controls go one by one through the tracker that devices use, so idle, presence and ticks mean the same; elements go by
runs of one source and group, which are as many as uploads, not as points. Knows sources and time; not what waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.events import PROGRESS, TICK
from catchment.engines.spark.rows import Array, Column, Rows
from catchment.engines.spark.state.pieces import NEVER_DUE, Pieces, ShardOf
from catchment.engines.spark.vector.course import Course, course
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Control, Flow
from catchment.engines.spark.vector.keys import column_values, distinct
from catchment.engines.spark.vector.places import event_at
from catchment.operators.keys import Grouping
from catchment.operators.members import BUSY, Group
from catchment.operators.ordering import null_first
from catchment.operators.progress import Tracker, resolved
from catchment.operators.ticks import Ticks
from catchment.plan.history import Source
from catchment.program.steps import Scope
from catchment.program.window import Closing

LEAST = -(1 << 62)
"""Before every instant, in 64 bits, with room to subtract."""


@dataclass(slots=True)
class Groups:
    """The groups met in a batch, by number."""

    known: list[Group]
    numbers: dict[Group, int]

    def number(self, group: Group) -> int:
        """The number of a group."""
        found = self.numbers.get(group)
        if found is None:
            found = self.numbers[group] = len(self.known)
            self.known.append(group)
        return found

    def of(self, column: Column | None, count: int) -> Array:
        """The number of the group of each row, given the field that names it."""
        if column is None:
            return np.full(count, self.number(None), np.int64)
        codes, firsts = distinct([column], count)
        return np.array([self.number(group) for group in column_values(column, firsts)], np.int64)[codes]

    def sources(self) -> list[Source]:
        """The source of what a step gives, by group."""
        return [Source("", group) for group in self.known]


@dataclass(slots=True)
class Moments:
    """When the watermark of which group rose, in order; `bound` is that watermark, less the grace.

    A moment is a control, by number: several may share a place, and one may raise several groups.
    """

    group: Array
    number: Array
    bound: Array
    before: Array
    """The bound until then."""
    places: Array
    """The place of each control."""

    @property
    def place(self) -> Array:
        """The place of each."""
        return self.places[self.number]

    def first_beyond(self, group: Array, at: Array, *, reached: bool = False) -> tuple[Array, Array]:
        """For each time: whether its group's bound came to lie beyond it (or, `reached`, at it), and at which moment.

        Bounds of a group rise, so its moments in order are in order of bound too.
        """
        if not len(self.group):
            return np.zeros(len(at), np.bool_), np.zeros(len(at), np.int64)
        values, rank = np.unique(self.bound, return_inverse=True)
        span = len(values) + 1
        codes = self.group * span + rank
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        wanted = np.searchsorted(values, at, side="left" if reached else "right")
        found = np.searchsorted(codes, group * span + wanted, side="left")
        there = np.minimum(found, len(codes) - 1)
        hit = (found < len(codes)) & (codes[there] // span == group)
        return hit, self.number[order][there]


@dataclass(slots=True)
class Heard:
    """The elements of an input, at places that fit those of the moments."""

    rows: Rows
    group: Array
    """Of each row, the number of its group."""
    closed: Array
    """Of each row, the watermark of its group less the grace, as it came."""
    following: Array
    """Of each row, the control before which it came, by number."""


@dataclass(slots=True)
class Followed:
    """What came of a batch's controls."""

    groups: Groups
    inputs: list[Heard]
    moments: Moments
    controls: list[Control]
    """What the step says of time itself."""

    @property
    def ticks(self) -> list[Control]:
        """What of that leaves with late elements."""
        return [each for each in self.controls if each[1] == TICK]

    @property
    def rows(self) -> Rows:
        """The elements of the first input."""
        return self.inputs[0].rows

    @property
    def group(self) -> Array:
        """Of each of them, the number of its group."""
        return self.inputs[0].group

    @property
    def closed(self) -> Array:
        """Of each of them, the watermark of its group less the grace, as it came."""
        return self.inputs[0].closed


@dataclass(slots=True)
class WaitingPieces:
    """Progress in pieces, and when something that waits in a group can next be due."""

    shared: Any
    parts: dict[int, Any]
    holds: dict[Group, int]
    behind: int | None
    """How far the clock is ahead of a group that follows it; None where there is one group of all."""

    def ring(self, pieces: Pieces, shard: int, group: Group, at: int) -> None:
        """Something of a group waits until the bound lies beyond that time."""
        if self.behind is None:
            pieces.ring(pieces.alarm, shard, at)
        elif self.holds.get(group, NEVER_DUE) > at:
            pieces.ring(pieces.clock, shard, at + self.behind)


class VectorWaiting:
    """The progress of a step. `reach` is how far before its watermark a result may still lie."""

    def __init__(self, grouping: Grouping, closing: Closing, scope: Scope, *, ports: int = 1, reach: int = 0) -> None:
        self.grouping = grouping
        self.grace = closing.grace
        self.tracker = Tracker(ports, resolved(closing, scope), grouping.of_source)
        self._reach = reach
        self._ports = ports
        self._ticks = Ticks(ports)
        self._first: int | None = None
        awhile = [
            closing.idle,
            *([] if closing.offline is None or closing.offline.at_most is None else [closing.offline.at_most]),
        ]
        self._awhile = min(awhile)
        # What each group's bound was at its last moment.
        self._bounds: dict[Group, int] = {}

    def follow(self, flow: Flow, field: Column | None) -> Followed:
        """Take a batch; `field` is the column of what names the group."""
        return self.follow_all([flow], [field])

    def follow_all(self, flows: Sequence[Flow], fields: Sequence[Column | None]) -> Followed:
        """Take a batch of each input."""
        groups = Groups([], {})
        taken = course(flows)
        named = [groups.of(field, len(rows)) for field, rows in zip(fields, taken.rows, strict=True)]
        runs = [_Runs.of(rows, group, cuts) for rows, group, cuts in zip(taken.rows, named, taken.cuts, strict=True)]
        risen, said = self._walk(taken, groups, runs)
        number, at, bound, before = (np.array([each[part] for each in risen], np.int64) for part in range(4))
        inputs = [
            Heard(rows, group, np.repeat(np.array(run.closed, np.int64), run.lengths), following)
            for rows, group, run, following in zip(taken.rows, named, runs, taken.following, strict=True)
        ]
        return Followed(groups, inputs, Moments(number, at, bound, before, taken.places), said)

    def _walk(
        self, taken: Course, groups: Groups, runs: list[_Runs]
    ) -> tuple[list[tuple[int, int, int, int]], list[Control]]:
        tracker, marks, grace = self.tracker, self.tracker.marks, self.grace
        bounds = self._bounds
        risen: list[tuple[int, int, int, int]] = []
        said: list[Control] = []
        for number, (place, (port, (came, kind, *what))) in enumerate(
            zip(taken.places.tolist(), taken.controls, strict=True)
        ):
            for side, run in enumerate(runs):
                if run.next < run.ends[number]:
                    self._hear(side, run, run.ends[number], groups)
            if kind == PROGRESS:
                device, owner, at = what
                moved = tracker.progress(port, Source(device, owner), at)
            elif kind == TICK:
                moved = tracker.tick(port, what[0])
                self._first = what[0] if self._first is None else self._first
            else:
                device, owner, since = what
                moved = tracker.presence(port, Source(device, owner), since)
            if moved:
                if len(moved) > 1:
                    moved = sorted(moved, key=null_first)
                for name in moved:
                    bound = max(marks[name] - grace, LEAST)
                    risen.append((groups.number(name), number, bound, bounds.get(name, LEAST)))
                    bounds[name] = bound
                    said.append((place, PROGRESS, "", name, bound - self._reach))
            if kind == TICK:
                least = self._ticks.take(port, what[0])
                if event_at(came) == TOLD_AGAIN:
                    least = what[0]
                if least is not None:
                    said.append((place, TICK, least))
        for side, run in enumerate(runs):
            self._hear(side, run, len(run.begins), groups)
        return risen, said

    def _hear(self, port: int, run: _Runs, upto: int, groups: Groups) -> None:
        """Elements came at a port: runs of them up to that one."""
        tracker, marks, grace = self.tracker, self.tracker.marks, self.grace
        for number in range(run.next, upto):
            tracker.heard(port, run.sources[run.source[number]])
            name = groups.known[run.group[number]]
            mark = marks.get(name)
            if mark is None:
                tracker.begin(name)
                mark = marks.get(name)
                if mark is not None:  # what everyone promised is promised to it
                    self._bounds[name] = max(mark - grace, LEAST)
            run.closed.append(LEAST if mark is None else max(mark - grace, LEAST))
        run.next = upto

    def split(self, shard_of: ShardOf) -> WaitingPieces:
        """What is remembered by shard of its group, where there are groups."""
        saved = self.snapshot()
        if self.grouping.position is None:
            return WaitingPieces(saved, {}, {}, None)
        progress = saved["progress"]
        group_of = self.grouping.of_source
        assert group_of is not None
        parts: dict[int, Any] = {}
        holds: dict[Group, int] = {}
        behind = self.grace + self._awhile

        def part(group: Group) -> Any:
            fresh: dict[str, Any] = {"now": progress["now"][0], "groups": [], "begun": [], "members": [], "marks": []}
            return parts.setdefault(shard_of((group,)), fresh)

        for name in progress["groups"]:
            part(name)["groups"].append(name)
        for name in progress["begun"]:
            part(name)["begun"].append(name)
        for pair in progress["marks"]:
            part(pair[0])["marks"].append(pair)
        for member in progress["members"]:
            _, device, owner, promise, _, state, _, is_awake = member
            group = group_of(Source(device, owner))
            part(group)["members"].append(member)
            if not device:
                # The step before follows the clock, as far behind as may be.
                behind = self.grace
            elif state == BUSY and not is_awake:
                # No tick moves this source: the group waits for it, however late it is.
                holds[group] = min(holds.get(group, NEVER_DUE), LEAST if promise is None else promise)
        shared = {
            "now": progress["now"],
            "everyone": progress["everyone"],
            "first": self._first,
            "ticks": saved["ticks"],
        }
        return WaitingPieces(shared, parts, holds, behind)

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        """Remember that, as it was at the oldest of the parts: the ticks since then are to be told again."""
        if self.grouping.position is None:
            self.restore(shared)
            return
        self._first = shared["first"]
        now = shared["now"][0]
        members: list[Any] = []
        for part in parts:
            if part["now"] is None and self._first is not None:
                # Whoever was there before the first tick was heard at it.
                part["members"] = [[*m[:4], self._first if m[7] else m[4], *m[5:]] for m in part["members"]]
                part["now"] = self._first
            now = part["now"] if now is None else min(now, part["now"])
            members += part["members"]
        # Those that may fall quiet, the one heard longest ago first, as the tracker keeps them.
        members.sort(key=lambda member: (member[7], member[4] or 0 if member[7] else 0))
        progress = {
            "now": [now] * self._ports,
            "everyone": shared["everyone"],
            **{name: [each for part in parts for each in part[name]] for name in ("groups", "begun", "marks")},
            "members": members,
        }
        self.restore({"progress": progress, "ticks": shared["ticks"] if now is None else [[now] * self._ports, now]})

    def forget(self, device: str) -> None:
        """Wait for that device no more."""
        saved = self.snapshot()
        progress = saved["progress"]
        progress["members"] = [member for member in progress["members"] if member[1] != device]
        self.restore(saved)

    def bound(self, group: Group) -> int:
        """The watermark of a group less the grace, as it was at its last moment."""
        return self._bounds.get(group, LEAST)

    def snapshot(self) -> Any:
        """As plain data."""
        return {"progress": self.tracker.snapshot(), "ticks": self._ticks.save()}

    def restore(self, saved: Any) -> None:
        """Remember that."""
        self.tracker.restore(saved["progress"])
        self._ticks.load(saved["ticks"])
        self._bounds = {group: max(mark - self.grace, LEAST) for group, mark in self.tracker.marks.items()}


@dataclass(slots=True)
class _Runs:
    """Elements of one input by runs of one source and one group, cut where something is said between them."""

    sources: list[Source]
    begins: list[int]
    lengths: Array
    source: list[int]
    group: list[int]
    ends: list[int]
    """Of each control, how many runs come before it."""
    closed: list[int]
    """Of each run so far, the watermark of its group less the grace."""
    next: int = 0

    @classmethod
    def of(cls, rows: Rows, group: Array, cuts: Array) -> _Runs:
        count = len(rows)
        begins = np.zeros(count + 1, np.bool_)
        begins[:1] = count > 0
        if count:
            begins[1:-1] = (np.diff(rows.source) != 0) | (np.diff(group) != 0)
            begins[cuts] = True
        starts = np.flatnonzero(begins[:-1])
        lengths = np.diff(np.append(starts, count))
        ends = np.searchsorted(starts, cuts, side="left").tolist()
        return cls(
            rows.sources, starts.tolist(), lengths, rows.source[starts].tolist(), group[starts].tolist(), ends, []
        )
