"""Windows of time by panes: an element is added to one pane, and windows are made of the panes that they span.

A pane is as long as the greatest common divisor of size and slide, so every window is a whole number of panes. Each
key has its next window on the agenda and no more, and a slider that makes one window from the one before.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from catchment.operators.aggregates.aggregate import Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Key
from catchment.operators.progress import Group
from catchment.operators.waiting import Take
from catchment.operators.windows.agenda import Agenda
from catchment.operators.windows.sliding import Merging, Slider, slider_for
from catchment.operators.windows.time import Due, TimeWindows
from catchment.plan.history import Source
from catchment.program.row_error import RowError
from catchment.program.steps import Scope
from catchment.program.types import Row, Schema
from catchment.program.window import TimeWindow


class _Panes:
    """What is held of a key."""

    __slots__ = ("group", "key", "next_end", "panes", "revisions", "slider")

    def __init__(self, key: Key, group: Group, slider: Slider) -> None:
        self.key = key
        self.group = group
        self.panes: dict[int, Summary] = {}
        self.next_end: int | None = None  # of the earliest open window that holds something
        self.revisions: dict[int, int] = {}  # of closed windows that are kept, the next one
        self.slider = slider


class PaneWindows(TimeWindows):
    """A summary for each pane that an open or kept window spans."""

    def __init__(
        self, window: TimeWindow, keys: tuple[str, ...], scope: Scope, schema: Schema, contents: Contents
    ) -> None:
        super().__init__(window, keys, scope, schema, contents)
        self.pane = gcd(window.size, window.every)
        self._slider = slider_for(contents, window.size, window.every)
        self._keys: dict[Key, _Panes] = {}
        self._closing: Agenda[_Panes] = Agenda()
        self._final: Agenda[_Panes] = Agenda()

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        keys, pane_size = self._keys, self.pane
        key_of, group_of = self.key_of, self.grouping.of_key
        heard, mark_of, grace = self.tracker.heard, self.mark, self.grace
        look, add, empty, ordered = self.contents.look, self.contents.add, self.contents.empty, self.contents.ordered
        order: Any = None

        def take(at: int, source: Source, row: Row) -> None:
            nonlocal order
            key = key_of(row)
            group = group_of(key)
            heard(0, source)
            closed = mark_of(group) - grace
            # An element that is not before the watermark is in open windows only.
            if at < closed and not self._belongs(at, source, row, closed, late):
                return
            try:
                seen = look(row)
            except RowError as error:
                quarantine(error, row)
                return
            held = keys.get(key)
            if held is None:
                held = keys[key] = self._held(key, group)
            if ordered:
                self.arrived += 1
                order = (at, source[0], self.arrived)
            start = at - at % pane_size
            pane = held.panes.get(start)
            if pane is None:
                pane = held.panes[start] = empty()
                self._schedule(held, at, closed)
            add(pane, seen, at, order)
            if at < closed:
                self._revises(held, at, start, closed)

        return take

    def _held(self, key: Key, group: Group) -> _Panes:
        return _Panes(key, group, self._slider(self.contents, self.window.size, self.pane))

    def _belongs(self, at: int, source: Source, row: Row, closed: int, late: Port) -> bool:
        """Whether any of the element's windows is not final. If one is, the element leaves by the late port."""
        final = closed - self.keep
        if self.first_end(at) <= final:
            late.element(at, source, row)
        return at - at % self.window.every + self.window.size > final

    def _schedule(self, held: _Panes, at: int, closed: int) -> None:
        """See to it that the earliest open window of a new pane will be due."""
        every = self.window.every
        end = self.first_end(at)
        if end <= closed:
            end += (closed - end) // every * every + every
        if end <= at - at % every + self.window.size and (held.next_end is None or end < held.next_end):
            held.next_end = end
            self._closing.add(held.group, end, held)

    def _revises(self, held: _Panes, at: int, start: int, closed: int) -> None:
        """An element before the watermark: it may be in what the slider has seen, and in closed windows."""
        if held.slider.end is not None and start < held.slider.end:
            held.slider.forget()
        every = self.window.every
        end = self.first_end(at)
        if end <= closed - self.keep:
            end += (closed - self.keep - end) // every * every + every
        for closed_end in range(end, min(closed, at - at % every + self.window.size) + 1, every):
            self.revised[closed_end, held.key] = held.group
            if closed_end not in held.revisions:
                held.revisions[closed_end] = 0
                self._final.add(held.group, closed_end, held)

    def revise(self, end: int, key: Key, group: Group) -> Due:
        held = self._keys[key]
        summary = Merging(self.contents, self.window.size, self.pane).window(end - self.window.size, end, held.panes)
        return self._due(end, held, summary)

    def _due(self, end: int, held: _Panes, summary: Summary) -> Due:
        revision = 0
        if self.keep:
            revision = held.revisions.get(end, 0)
            if end not in held.revisions:
                self._final.add(held.group, end, held)
            held.revisions[end] = revision + 1
        return Due(end, self.sorts_as(held.key), held.key, held.group, revision, summary)

    def close(self, group: Group, closed: int) -> list[Due]:
        found = []
        size, every = self.window.size, self.window.every
        for end, held in self._closing.due(group, closed):
            if held.next_end != end:
                continue  # another window of the key came before it, and put this one on the agenda anew
            summary = held.slider.window(end - size, end, held.panes)
            found.append(self._due(end, held, summary))
            following = self._following(held, end + every)
            held.next_end = following
            if following is not None:
                self._closing.add(group, following, held)
            else:
                held.slider.forget()
            if not self.keep:
                # One slide more than is needed, for sliders that take out what leaves.
                self._drop(held, end - size if following is not None else end + every - size)
        for end, held in self._final.due(group, closed - self.keep):
            del held.revisions[end]
            self._drop(held, end - size)
            if held.next_end is None and not held.revisions:
                self._drop(held, end + every - size)
        return found

    def _following(self, held: _Panes, end: int) -> int | None:
        """The end of the next window that holds something, from that one on."""
        start = end - self.window.size
        if any(start <= at < end for at in held.panes):
            return end
        later = [at for at in held.panes if at >= end]
        return self.first_end(min(later)) if later else None

    def _drop(self, held: _Panes, before: int) -> None:
        """Forget panes that no window will ask for again."""
        for at in [at for at in held.panes if at < before]:
            del held.panes[at]
        if not held.panes and held.next_end is None:
            self._keys.pop(held.key, None)

    def state(self) -> Snapshot:
        save = self.contents.save
        keys = [
            [
                held.key,
                held.next_end,
                [[at, save(pane)] for at, pane in held.panes.items()],
                [list(pair) for pair in held.revisions.items()],
            ]
            for held in self._keys.values()
        ]
        return {**super().state(), "keys": keys}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._keys.clear()
        self._closing.clear()
        self._final.clear()
        for saved_key, next_end, panes, revisions in state["keys"]:
            key: Key = frozen(saved_key)
            held = self._keys[key] = self._held(key, self.grouping.of_key(key))
            held.panes = {at: self.contents.load(saved) for at, saved in panes}
            held.next_end = next_end
            held.revisions = dict(revisions)
            if next_end is not None:
                self._closing.add(held.group, next_end, held)
            for end in held.revisions:
                self._final.add(held.group, end, held)
