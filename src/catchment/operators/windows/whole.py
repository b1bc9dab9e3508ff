"""Windows of time, each held whole: an element is added to every window that it belongs to.

What an overlap of n costs is n additions per element; `panes` gives the same results for one.
"""

from __future__ import annotations

from catchment.operators.aggregates.aggregate import Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.inlined import indented
from catchment.operators.members import NEVER, Group
from catchment.operators.waiting import Take
from catchment.operators.windows.agenda import Agenda
from catchment.operators.windows.entering import generated, looking
from catchment.operators.windows.time import Due, Name, TimeWindows
from catchment.program.steps import Scope
from catchment.program.types import Schema
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
        self._windows: dict[Name, dict[int, _Window]] = {}
        self._closing: Agenda[Name] = Agenda()
        self._final: Agenda[Name] = Agenda()

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        inlined = self.contents.inlined
        size, every, keep = self.window.size, self.window.every, self.keep
        final = f"closed - {keep}" if keep else "closed"
        body = [
            f"first, last = at + {every} - (at - {size}) % {every}, at - at % {every} + {size}",
            f"if first <= {final}:",
            "    late(at, source, row)",
            f"    if last <= {final}:",
            "        return",
            f"    first += ({final} - first) // {every} * {every} + {every}",
            *looking(inlined),
            *(["order = next_order(at, source)"] if self.contents.ordered else ["order = None"]),
            "windows = keys.get(name)",
            "if windows is None:",
            "    windows = keys[name] = {}",
            f"for end in range(first, last + 1, {every}):",
            "    window = windows.get(end)",
            "    if window is None:",
            "        window = windows[end] = new(end, name, group, closed)",
            "    summary = window.summary",
            *indented(inlined.add, 1),
            *(["    if end <= closed:", "        revised[end, name] = group"] if keep else []),
        ]
        bindings = {
            **inlined.bindings,
            "next_order": self.next_order,
            "keys": self._windows,
            "new": self._new,
            "revised": self.revised,
        }
        return generated(self, self.schema, self.keys, late, quarantine, body, bindings)

    def _new(self, end: int, name: Name, group: Group, closed: int) -> _Window:
        (self._closing if end > closed else self._final).add(group, end, name)
        return _Window(self.contents.empty())

    def revise(self, end: int, name: Name, group: Group) -> Due:
        return self._due(end, name, group)

    def _due(self, end: int, name: Name, group: Group) -> Due:
        window = self._windows[name][end]
        window.revision += 1
        key = self.key_of(name)
        return Due(end, self.sorts_as(key), key, group, window.revision - 1, window.summary)

    def close(self, group: Group, closed: int) -> list[Due]:
        found = []
        for end, name in self._closing.due(group, closed):
            found.append(self._due(end, name, group))
            if self.keep:
                self._final.add(group, end, name)
            else:
                self._forget(end, name)
        for end, name in self._final.due(group, closed - self.keep):
            self._forget(end, name)
        return found

    def _forget(self, end: int, name: Name) -> None:
        of_key = self._windows[name]
        del of_key[end]
        if not of_key:
            del self._windows[name]

    def state(self) -> Snapshot:
        save = self.contents.save
        windows = [
            [name, [[end, save(window.summary), window.revision] for end, window in of_key.items()]]
            for name, of_key in self._windows.items()
        ]
        return {**super().state(), "windows": windows}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._windows.clear()
        self._closing.clear()
        self._final.clear()
        for saved_name, saved_windows in state["windows"]:
            name: Name = frozen(saved_name)
            group = self.grouping.of_key(self.key_of(name))
            closed = self.tracker.marks.get(group, NEVER) - self.grace
            of_key = self._windows[name] = {}
            for end, saved, revision in saved_windows:
                window = of_key[end] = _Window(self.contents.load(saved))
                window.revision = revision
                (self._closing if end > closed else self._final).add(group, end, name)
