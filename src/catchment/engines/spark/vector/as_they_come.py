"""Windows of time and sessions, computed by the operator of devices: elements as they come, and results at moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Flow
from catchment.engines.spark.vector.operated import AT_ONCE, Entry, VectorOperated
from catchment.engines.spark.vector.places import event_at
from catchment.engines.spark.vector.waiting import LEAST, Followed
from catchment.operators.build import operator_of
from catchment.operators.contract import Snapshot
from catchment.operators.keys import Key
from catchment.operators.members import Group
from catchment.operators.windows.sessions import Sessions
from catchment.operators.windows.time import TimeWindows
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


class VectorAsTheyCome(VectorOperated):
    """A step whose operator adds an element to its window when it comes."""

    FIELDS = ("keys", "windows", "held", "revised")
    adopts = True

    def __init__(self, step: steps.Aggregated | steps.TopK, given: Schema) -> None:
        operator = operator_of(step, (given,))
        assert isinstance(operator, TimeWindows | Sessions)
        self._windows = operator
        self._rows = Rows.none(())
        self._number = 0
        """That of the element that is taken now."""
        self._is_late: list[int] = []
        super().__init__(step, given, operator)

    def _late(self, at: int, source: Source, row: Row) -> None:
        self._is_late.append(self._number)

    def _quarantine(self, error: RowError, row: Row) -> None:
        if self._number < len(self._rows):
            self.place = int(self._rows.place[self._number])
        super()._quarantine(error, row)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        field = None if self.position is None else flow.rows.columns[self.position]
        followed = self.waiting.follow(flow, field)
        rows = self._rows = followed.rows
        places = followed.moments.places
        cuts = np.searchsorted(rows.place, places, side="right").tolist()
        risen = _by_moment(followed)
        take = self._taking(rows, followed)
        for number, (place, end) in enumerate(zip(places.tolist(), cuts, strict=True)):
            take(end)
            self._number, self.place = len(rows), place
            self._moment(risen.get(number, ()), event_at(place) == TOLD_AGAIN)
        take(len(rows))
        late = rows.take(np.array(self._is_late, np.int64))
        self._is_late.clear()
        self._rows = Rows.none(())
        return self.given(followed, late)

    def _moment(self, risen: Sequence[tuple[Group, int]], is_told_again: bool) -> None:
        operator = self._windows
        for name, bound in risen:
            self._rise(name, bound)
        # What is told again makes nothing due, and what was revised before it is given at a moment of this batch.
        if not is_told_again and (risen or (isinstance(operator, TimeWindows) and operator.revised)):
            operator.due([name for name, _ in risen])

    def _rise(self, group: Group, bound: int) -> None:
        self.told.marks[group] = bound + self._windows.grace
        self._windows.closes[0] = self.told.watermark(None) - self._windows.grace

    def _taking(self, rows: Rows, followed: Followed) -> Callable[[int], None]:
        """A function that has the elements taken that come before a number, and were not taken yet."""
        element = self.port.element
        ats, objects = rows.at.tolist(), rows.objects()
        sources = [rows.sources[source] for source in rows.source.tolist()]
        begins = _begins(followed, self.told.marks)
        done = 0

        def take(end: int) -> None:
            nonlocal done
            for number in range(done, end):
                self._number = number
                while begins and begins[-1][0] == number:
                    self._rise(*begins.pop()[1:])
                element(ats[number], sources[number], objects[number])
            done = max(done, end)

        return take

    def entries(self, state: Snapshot) -> Iterator[Entry]:
        operator = self._windows
        if isinstance(operator, Sessions):
            for entry in state["held"]:
                yield Entry("held", entry[0], entry, entry[1] - 1)
            return
        for entry in state["revised"]:
            yield Entry("revised", operator.key_of(entry[1]), entry, AT_ONCE)
        for entry in state.get("keys", ()):
            _, next_end, _, revisions = entry
            ends = [*([] if next_end is None else [next_end]), *(end + operator.keep for end, _ in revisions)]
            yield Entry("keys", operator.key_of(entry[0]), entry, min(ends) - 1 if ends else None)
        for entry in state.get("windows", ()):
            key = operator.key_of(entry[0])
            closed = self.told.watermark(self._grouping.of_key(key)) - operator.grace
            ends = [end if end > closed else end + operator.keep for end, *_ in entry[1]]
            yield Entry("windows", key, entry, min(ends) - 1)

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        waiting = self.waiting.split(shard_of)
        pieces = Pieces(waiting.shared)
        for shard, part in waiting.parts.items():
            pieces.parts[shard] = [part, {}]
            pieces.count[shard] = len(part["groups"])
        return self.spread(pieces, waiting, shard_of, route)

    def part(self) -> list[Any]:
        return [None, {}]

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        waiting, rest = shared
        self.waiting.merge(waiting, [part[0] for part in parts if part[0] is not None])
        self.resume(self.gathered(rest, parts))

    def snapshot(self) -> Any:
        return [self.waiting.snapshot(), self._windows.state()]

    def restore(self, saved: Any) -> None:
        waiting, state = saved
        self.waiting.restore(waiting)
        self.resume(state)

    def adopt(self, state: Snapshot) -> None:
        self.restore([{"progress": state["progress"], "ticks": state["ticks"]}, state])

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        entries = self.entries(self._windows.state())
        return [(key, {"kept": saved[1:]}) for field, key, saved, _ in entries if field != "revised"]


def _by_moment(followed: Followed) -> dict[int, list[tuple[Group, int]]]:
    """The groups that rose at each control, by number, with their bounds."""
    moments, found = followed.moments, dict[int, list[tuple[Group, int]]]()
    listed = zip(moments.number.tolist(), moments.group.tolist(), moments.bound.tolist(), strict=True)
    for number, group, bound in listed:
        found.setdefault(number, []).append((followed.groups.known[group], bound))
    return found


def _begins(followed: Followed, marks: dict[Group, int]) -> list[tuple[int, Group, int]]:
    """Groups that have a watermark as they begin: with the number of an element, and the bound then; the last first."""
    known = followed.groups.known
    unknown: Array = np.array([name not in marks for name in known], np.bool_)
    if not unknown.any():
        return []
    which = np.flatnonzero(unknown[followed.group] & (followed.closed > LEAST))
    _, first = np.unique(followed.group[which], return_index=True)
    numbers = sorted(which[first].tolist(), reverse=True)
    return [(number, known[followed.group[number]], int(followed.closed[number])) for number in numbers]
