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
from catchment.engines.spark.vector.flow import Control, Flow
from catchment.engines.spark.vector.keys import column_values, distinct
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
class Followed:
    """What came of a batch's controls."""

    groups: Groups
    group: Array
    """Of each row, the number of its group."""
    closed: Array
    """Of each row, the watermark of its group less the grace, as it came."""
    moments: Moments
    controls: list[Control]
    """What the step says of time itself."""


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
    """The progress of a step with one input."""

    def __init__(self, grouping: Grouping, closing: Closing, scope: Scope) -> None:
        self.grouping = grouping
        self.grace = closing.grace
        self.tracker = Tracker(1, resolved(closing, scope), grouping.of_source)
        self._ticks = Ticks(1)
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
        rows, controls = flow.rows, flow.controls
        groups = Groups([], {})
        group = groups.of(field, len(rows))
        places = np.array([each[0] for each in controls], np.int64)
        cuts = np.searchsorted(rows.place, places, side="right")
        starts = _runs(rows, group, cuts)
        found = self._walk(rows, controls, groups, group, starts, cuts.tolist())
        closed, risen, said = found
        lengths = np.diff(np.append(starts, len(rows)))
        number, at, bound, before = (np.array([each[part] for each in risen], np.int64) for part in range(4))
        moments = Moments(number, at, bound, before, places)
        return Followed(groups, group, np.repeat(np.array(closed, np.int64), lengths), moments, said)

    def _walk(
        self, rows: Rows, controls: list[Control], groups: Groups, group: Array, starts: Array, cuts: list[int]
    ) -> tuple[list[int], list[tuple[int, int, int, int]], list[Control]]:
        tracker, marks, grace = self.tracker, self.tracker.marks, self.grace
        sources, bounds = rows.sources, self._bounds
        begins = starts.tolist()
        by_source, by_group = rows.source[starts].tolist(), group[starts].tolist()
        closed: list[int] = []
        risen: list[tuple[int, int, int, int]] = []
        said: list[Control] = []
        run = 0
        for number in range(len(controls) + 1):
            last = number == len(controls)
            upto = len(rows) if last else cuts[number]
            while run < len(begins) and begins[run] < upto:
                tracker.heard(0, sources[by_source[run]])
                name = groups.known[by_group[run]]
                mark = marks.get(name)
                if mark is None:
                    tracker.begin(name)
                    mark = marks.get(name)
                closed.append(LEAST if mark is None else max(mark - grace, LEAST))
                run += 1
            if last:
                break
            place, kind, *what = controls[number]
            if kind == PROGRESS:
                device, owner, at = what
                moved = tracker.progress(0, Source(device, owner), at)
            elif kind == TICK:
                moved = tracker.tick(0, what[0])
                self._first = what[0] if self._first is None else self._first
            else:
                device, owner, since = what
                moved = tracker.presence(0, Source(device, owner), since)
            if moved:
                if len(moved) > 1:
                    moved = sorted(moved, key=null_first)
                for name in moved:
                    bound = max(marks[name] - grace, LEAST)
                    risen.append((groups.number(name), number, bound, bounds.get(name, LEAST)))
                    bounds[name] = bound
                    said.append((place, PROGRESS, "", name, bound))
            if kind == TICK:
                least = self._ticks.take(0, what[0])
                if least is not None:
                    said.append((place, TICK, least))
        return closed, risen, said

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
        (now,) = shared["now"]
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
            "now": [now],
            "everyone": shared["everyone"],
            **{name: [each for part in parts for each in part[name]] for name in ("groups", "begun", "marks")},
            "members": members,
        }
        self.restore({"progress": progress, "ticks": shared["ticks"] if now is None else [[now], now]})

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


def _runs(rows: Rows, group: Array, cuts: Array) -> Array:
    """Where runs of one source and one group begin, cut where something is said between them."""
    if not len(rows):
        return np.zeros(0, np.int64)
    changes = (np.diff(rows.source) != 0) | (np.diff(group) != 0)
    begins = np.zeros(len(rows) + 1, np.bool_)
    begins[0] = True
    begins[1:-1] = changes
    begins[cuts] = True
    return np.flatnonzero(begins[:-1])
