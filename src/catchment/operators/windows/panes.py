"""Windows of time by panes: an element is added to one pane, and windows are made of the panes that they span.

A pane is as long as the greatest common divisor of size and slide, so every window is a whole number of panes. Each
key has its next window on the agenda and no more, and a slider that makes one window from the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from catchment.operators.aggregates.aggregate import Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.members import Group
from catchment.operators.waiting import Take
from catchment.operators.windows.agenda import Agenda
from catchment.operators.windows.entering import generated, looking
from catchment.operators.windows.sliding import Merging, Slider, slider_for
from catchment.operators.windows.time import Due, Name, TimeWindows
from catchment.plan.history import Source
from catchment.program.steps import Scope
from catchment.program.types import Row, Schema
from catchment.program.window import TimeWindow


class _Panes:
    """What is held of a key."""

    __slots__ = ("dropped", "group", "name", "next_end", "panes", "revisions", "slider")

    def __init__(self, name: Name, group: Group, slider: Slider) -> None:
        self.name = name
        self.group = group
        self.panes: dict[int, Summary] = {}
        self.next_end: int | None = None  # of the earliest open window that holds something
        self.revisions: dict[int, int] = {}  # of closed windows that are kept, the next one
        self.slider = slider
        self.dropped = DAWN  # no pane begins before


DAWN = -(1 << 100)
"""Before every pane."""


class PaneWindows(TimeWindows):
    """A summary for each pane that an open or kept window spans."""

    def __init__(
        self, window: TimeWindow, keys: tuple[str, ...], scope: Scope, schema: Schema, contents: Contents
    ) -> None:
        super().__init__(window, keys, scope, schema, contents)
        self.pane = gcd(window.size, window.every)
        self._slider = slider_for(contents, window.size, window.every)
        self._keys: dict[Name, _Panes] = {}
        self._closing: Agenda[_Panes] = Agenda()
        self._final: Agenda[_Panes] = Agenda()

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        inlined = self.contents.inlined
        body = [
            # An element that is not before the watermark is in open windows only.
            "if at < closed and not belongs(at, source, row, closed, late):",
            "    return",
            *looking(inlined),
            "held = keys.get(name)",
            "if held is None:",
            "    held = keys[name] = new(name, group)",
            f"start = at - at % {self.pane}",
            "summary = held.panes.get(start)",
            "if summary is None:",
            "    summary = held.panes[start] = empty()",
            "    schedule(held, at, closed)",
            *(["order = next_order(at, source)"] if self.contents.ordered else ["order = None"]),
            *inlined.add,
            "if at < closed:",
            "    revises(held, at, start, closed)",
        ]
        bindings = {
            **inlined.bindings,
            "belongs": self._belongs,
            "keys": self._keys,
            "new": self._held,
            "empty": self.contents.empty,
            "schedule": self._schedule,
            "next_order": self.next_order,
            "revises": self._revises,
        }
        return generated(self, self.schema, self.keys, late, quarantine, body, bindings)

    def _held(self, name: Name, group: Group) -> _Panes:
        return _Panes(name, group, self._slider(self.contents, self.window.size, self.pane))

    def _belongs(
        self, at: int, source: Source, row: Row, closed: int, late: Callable[[int, Source, Row], None]
    ) -> bool:
        """Whether any of the element's windows is not final. If one is, the element leaves by the late port."""
        final = closed - self.keep
        if self.first_end(at) <= final:
            late(at, source, row)
        return at - at % self.window.every + self.window.size > final

    def _schedule(self, held: _Panes, at: int, closed: int) -> None:
        """See to it that the earliest open window of a new pane will be due."""
        if at < held.dropped:
            held.dropped = at - at % self.pane
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
            self.revised[closed_end, held.name] = held.group
            if closed_end not in held.revisions:
                held.revisions[closed_end] = 0
                self._final.add(held.group, closed_end, held)

    def revise(self, end: int, name: Name, group: Group) -> Due:
        held = self._keys[name]
        summary = Merging(self.contents, self.window.size, self.pane).window(end - self.window.size, end, held.panes)
        return self._due(end, held, summary)

    def _due(self, end: int, held: _Panes, summary: Summary) -> Due:
        revision = 0
        if self.keep:
            revision = held.revisions.get(end, 0)
            if end not in held.revisions:
                self._final.add(held.group, end, held)
            held.revisions[end] = revision + 1
        key = self.key_of(held.name)
        return Due(end, self.sorts_as(key), key, held.group, revision, summary)

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
        start, newest = end - self.window.size, end - self.window.every - self.pane
        if newest >= start and newest in held.panes:
            return end  # the one before ended with a pane that this one holds too
        if any(start <= at < end for at in held.panes):
            return end
        later = [at for at in held.panes if at >= end]
        return self.first_end(min(later)) if later else None

    def _drop(self, held: _Panes, before: int) -> None:
        """Forget panes that no window will ask for again."""
        panes = held.panes
        if (before - held.dropped) // self.pane < len(panes):
            for at in range(held.dropped, before, self.pane):
                panes.pop(at, None)
        else:
            for at in [at for at in panes if at < before]:
                del panes[at]
        held.dropped = max(held.dropped, before)
        if not panes and held.next_end is None:
            self._keys.pop(held.name, None)

    def state(self) -> Snapshot:
        save = self.contents.save
        keys = [
            [
                held.name,
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
        for saved_name, next_end, panes, revisions in state["keys"]:
            name: Name = frozen(saved_name)
            held = self._keys[name] = self._held(name, self.grouping.of_key(self.key_of(name)))
            held.panes = {at: self.contents.load(saved) for at, saved in panes}
            held.next_end = next_end
            held.revisions = dict(revisions)
            if next_end is not None:
                self._closing.add(held.group, next_end, held)
            for end in held.revisions:
                self._final.add(held.group, end, held)
