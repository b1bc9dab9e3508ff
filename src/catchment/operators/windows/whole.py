"""Windows of time, each held whole: an element is added to every window that it belongs to.

What an overlap of n costs is n additions per element; `panes` gives the same results for one.
"""

from __future__ import annotations

from typing import Any

from catchment.operators.aggregates.aggregate import Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Key
from catchment.operators.progress import NEVER, Group
from catchment.operators.waiting import Take
from catchment.operators.windows.agenda import Agenda
from catchment.operators.windows.time import Due, TimeWindows
from catchment.plan.history import Source
from catchment.program.row_error import RowError
from catchment.program.steps import Scope
from catchment.program.types import Row, Schema
from catchment.program.window import TimeWindow


class _Window:
    __slots__ = ("revision", "summary")

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.revision = 0  # of its next result


class WholeWindows(TimeWindows):
    """A summary for each window that is open or kept."""

    def __init__(
        self, window: TimeWindow, keys: tuple[str, ...], scope: Scope, schema: Schema, contents: Contents
    ) -> None:
        super().__init__(window, keys, scope, schema, contents)
        self._windows: dict[Key, dict[int, _Window]] = {}
        self._closing: Agenda[Key] = Agenda()
        self._final: Agenda[Key] = Agenda()

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        windows, revised = self._windows, self.revised
        key_of, group_of = self.key_of, self.grouping.of_key
        heard, mark_of, grace, keep = self.tracker.heard, self.mark, self.grace, self.keep
        size, every = self.window.size, self.window.every
        look, add, empty, ordered = self.contents.look, self.contents.add, self.contents.empty, self.contents.ordered
        order: Any = None

        def take(at: int, source: Source, row: Row) -> None:
            nonlocal order
            key = key_of(row)
            group = group_of(key)
            heard(0, source)
            closed = mark_of(group) - grace
            first, last = at + every - (at - size) % every, at - at % every + size
            if first <= closed - keep:
                late.element(at, source, row)
                if last <= closed - keep:
                    return
                first += (closed - keep - first) // every * every + every
            try:
                seen = look(row)
            except RowError as error:
                quarantine(error, row)
                return
            if ordered:
                self.arrived += 1
                order = (at, source[0], self.arrived)
            of_key = windows.get(key)
            if of_key is None:
                of_key = windows[key] = {}
            for end in range(first, last + 1, every):
                window = of_key.get(end)
                if window is None:
                    window = of_key[end] = _Window(empty())
                    if end > closed:
                        self._closing.add(group, end, key)
                    else:
                        self._final.add(group, end, key)
                add(window.summary, seen, at, order)
                if end <= closed:
                    revised[end, key] = group

        return take

    def revise(self, end: int, key: Key, group: Group) -> Due:
        return self._due(end, key, group)

    def _due(self, end: int, key: Key, group: Group) -> Due:
        window = self._windows[key][end]
        window.revision += 1
        return Due(end, self.sorts_as(key), key, group, window.revision - 1, window.summary)

    def close(self, group: Group, closed: int) -> list[Due]:
        found = []
        for end, key in self._closing.due(group, closed):
            found.append(self._due(end, key, group))
            if self.keep:
                self._final.add(group, end, key)
            else:
                self._forget(end, key)
        for end, key in self._final.due(group, closed - self.keep):
            self._forget(end, key)
        return found

    def _forget(self, end: int, key: Key) -> None:
        of_key = self._windows[key]
        del of_key[end]
        if not of_key:
            del self._windows[key]

    def state(self) -> Snapshot:
        save = self.contents.save
        windows = [
            [key, [[end, save(window.summary), window.revision] for end, window in of_key.items()]]
            for key, of_key in self._windows.items()
        ]
        return {**super().state(), "windows": windows}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._windows.clear()
        self._closing.clear()
        self._final.clear()
        for saved_key, saved_windows in state["windows"]:
            key: Key = frozen(saved_key)
            group = self.grouping.of_key(key)
            closed = self.tracker.marks.get(group, NEVER) - self.grace
            of_key = self._windows[key] = {}
            for end, saved, revision in saved_windows:
                window = of_key[end] = _Window(self.contents.load(saved))
                window.revision = revision
                (self._closing if end > closed else self._final).add(group, end, key)
