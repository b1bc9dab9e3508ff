"""Windows of time, `tumble` and `hop`: what is common to those that hold each window and those that hold panes.

Windows close at the moment at which the watermark of their key's group reaches `end + grace`. An element for a closed
window joins it for as long as `keep` says, and the window gives its next revision at the next moment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from catchment.operators.aggregates.aggregate import Order, Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Snapshot
from catchment.operators.keys import Grouping, Key, collapsed
from catchment.operators.members import Group
from catchment.operators.ordering import sortable_key
from catchment.operators.waiting import Waiting
from catchment.plan.history import Source
from catchment.program.steps import Scope
from catchment.program.types import Schema
from catchment.program.window import TimeWindow

Name: TypeAlias = Any
"""What a key is looked up by: the value of its one field, or the key, since looking up a tuple takes longer."""


class Due(NamedTuple):
    """A result that is due. Results sort by their first two fields."""

    end: int
    sorts_as: Any
    key: Key
    group: Group
    revision: int
    summary: Summary


class TimeWindows(Waiting):
    """The base. `closed` of a group is `W - grace`: windows that end there or before are closed."""

    def __init__(
        self, window: TimeWindow, keys: tuple[str, ...], scope: Scope, schema: Schema, contents: Contents
    ) -> None:
        super().__init__(Grouping.of(schema, keys, scope), window.closing, scope)
        self.window = window
        self.keep = window.closing.keep
        self.contents = contents
        self.schema = schema
        self.keys = keys
        self._alone = len(keys) == 1
        self.sorts_as: Callable[[Key], Any] = sortable_key(schema, keys)
        self.arrived = 0
        # Closed windows that were joined since the last moment.
        self.revised: dict[tuple[int, Name], Group] = {}

    @abstractmethod
    def revise(self, end: int, name: Name, group: Group) -> Due:
        """The next revision of a closed window."""

    @abstractmethod
    def close(self, group: Group, closed: int) -> list[Due]:
        """The windows of a group that close, in any order; forget those that are final."""

    def due(self, groups: list[Group]) -> None:
        if self.revised:
            self._give([self.revise(end, name, group) for (end, name), group in self.revised.items()])
            self.revised.clear()
        found: list[Due] = []
        for group in groups:
            found += self.close(group, self.tracker.marks[group] - self.grace)
        self._give(found)

    def _give(self, found: list[Due]) -> None:
        if len(found) > 1:
            found.sort(key=_place)
        size, rows_of, give = self.window.size, self.contents.rows, self.output.element
        for end, _, key, group, revision, summary in found:
            rows, failure = rows_of((*key, end - size, end, revision, end - 1), summary)
            if failure is not None:
                self.quarantine(failure, rows[0])
                continue
            source = collapsed(group)
            for row in rows:
                give(end - 1, source, row)

    def first_end(self, at: int) -> int:
        """The end of the earliest window that holds the moment."""
        size, every = self.window.size, self.window.every
        return at + every - (at - size) % every

    def key_of(self, name: Name) -> Key:
        """The key of that name."""
        return (name,) if self._alone else name

    def next_order(self, at: int, source: Source) -> Order:
        """What the element that is taken now sorts by."""
        self.arrived += 1
        return at, source[0], self.arrived

    def state(self) -> Snapshot:
        return {"arrived": self.arrived, "revised": [list(place) for place in self.revised]}

    def set_state(self, state: Snapshot) -> None:
        self.arrived = state["arrived"]
        self.revised.clear()
        for end, saved in state["revised"]:
            name: Name = frozen(saved)
            self.revised[end, name] = self.grouping.of_key(self.key_of(name))


def _place(due: Due) -> tuple[int, Any]:
    return due[:2]
