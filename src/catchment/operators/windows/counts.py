"""Windows of counts: after each `every` elements of a key, in order, what the last `size` hold.

Panes here are runs of elements: as many as divide both size and slide, so each is summarised once.
"""

from __future__ import annotations

from math import gcd

from catchment.operators.aggregates.aggregate import Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.release import Releasing
from catchment.operators.windows.sliding import Slider, slider_for
from catchment.program.row_error import RowError
from catchment.program.steps import Scope
from catchment.program.types import Row, Schema
from catchment.program.window import CountWindow


class _Panes:
    """What is held of a key: how many elements there were, and of each pane its summary and its first time."""

    __slots__ = ("begins", "count", "panes", "slider")

    def __init__(self, slider: Slider) -> None:
        self.count = 0
        self.panes: dict[int, Summary] = {}
        self.begins: dict[int, int] = {}
        self.slider = slider


class CountWindows(Releasing):
    """The panes of the last elements of each key."""

    def __init__(
        self, window: CountWindow, keys: tuple[str, ...], scope: Scope, schema: Schema, contents: Contents
    ) -> None:
        super().__init__((schema,), (keys,), window.closing, scope)
        self._size, self._every = window.size, window.every
        self._pane = gcd(window.size, window.every)
        self._contents = contents
        self._slider = slider_for(contents, window.size, window.every)
        self._keys: dict[Key, _Panes] = {}

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        try:
            seen = self._contents.look(row)
        except RowError as error:
            self.quarantine(error, row)
            return
        held = self._keys.get(key)
        if held is None:
            held = self._keys[key] = self._held()
        place = held.count
        held.count += 1
        start = place - place % self._pane
        pane = held.panes.get(start)
        if pane is None:
            pane = held.panes[start] = self._contents.empty()
            held.begins[start] = at
        self._contents.add(pane, seen, at, place)
        if held.count % self._every == 0:
            self._give(key, held, at)

    def _held(self) -> _Panes:
        return _Panes(self._slider(self._contents, self._size, self._pane))

    def _give(self, key: Key, held: _Panes, at: int) -> None:
        start = max(0, held.count - self._size)
        summary = held.slider.window(start, held.count, held.panes)
        rows, failure = self._contents.rows((*key, held.begins[start], at + 1, 0, at), summary)
        # One slide more than is needed, for sliders that take out what leaves.
        for old in [old for old in held.panes if old < start]:
            del held.panes[old], held.begins[old]
        if failure is not None:
            self.quarantine(failure, rows[0])
            return
        source = collapsed(self.grouping.of_key(key))
        for row in rows:
            self.output.element(at, source, row)

    def state(self) -> Snapshot:
        save = self._contents.save
        keys = [
            [key, held.count, [[start, held.begins[start], save(pane)] for start, pane in held.panes.items()]]
            for key, held in self._keys.items()
        ]
        return {**super().state(), "keys": keys}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._keys.clear()
        for key, count, panes in state["keys"]:
            held = self._keys[frozen(key)] = self._held()
            held.count = count
            for start, begins, saved in panes:
                held.begins[start] = begins
                held.panes[start] = self._contents.load(saved)
