"""`join(within=window)`: all pairs of a key's left and right elements in a window, when it closes.

Elements of a key stand in order, so a window is a slice of them; each is held once, however many windows overlap.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, NamedTuple

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Grouping, Key, collapsed, key_of
from catchment.operators.members import Group
from catchment.operators.ordering import sortable_key
from catchment.operators.pairing import Pairing, Side, pairs
from catchment.operators.waiting import Take, Waiting
from catchment.operators.windows.agenda import Agenda
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import Row, Schema
from catchment.program.window import TimeWindow


class _Element(NamedTuple):
    at: int
    device: str
    arrived: int
    row: Row

    @property
    def side(self) -> Side:
        return Side(self.at, self.row)


class _Held:
    """The elements of both sides of a key, in order."""

    __slots__ = ("group", "key", "next_end", "sides")

    def __init__(self, key: Key, group: Group) -> None:
        self.key = key
        self.group = group
        self.sides: tuple[list[_Element], list[_Element]] = ([], [])
        self.next_end: int | None = None  # of the earliest open window that holds something


class _Due(NamedTuple):
    end: int
    sorts_as: Any
    held: _Held
    left: list[_Element]
    right: list[_Element]


class WindowJoin(Waiting):
    """Both sides' elements that an open window holds."""

    def __init__(self, step: steps.Join, window: TimeWindow, given: tuple[Schema, ...]) -> None:
        grouping = Grouping.of(given[0], step.keys, step.scope)
        super().__init__(grouping, window.closing, step.scope, ports=2, reach=window.size)
        self._window = window
        self._outer = step.outer
        self._pairing = Pairing(step, given, optional=(1,) if step.outer else ())
        self._keys_of = (key_of(given[0], step.keys), key_of(given[1], step.right_keys))
        self._sorts_as = sortable_key(given[0], step.keys)
        self._held: dict[Key, _Held] = {}
        self._closing: Agenda[_Held] = Agenda()
        self._arrived = 0

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        self._pair = self._pairing.giving(outputs[0].element, quarantine)
        return super().connect(outputs, quarantine)

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        key_of, group_of, heard = self._keys_of[port], self.grouping.of_key, self.tracker.heard
        size, every = self._window.size, self._window.every

        def take(at: int, source: Source, row: Row) -> None:
            key = key_of(row)
            group = group_of(key)
            heard(port, source)
            closed = self.mark(group) - self.grace
            end, last = at + every - (at - size) % every, at - at % every + size
            if end <= closed:
                late.element(at, source, row)
                if last <= closed:
                    return
                end += (closed - end) // every * every + every
            self._arrived += 1
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(key, group)
            insort(held.sides[port], _Element(at, source[0], self._arrived, row))
            self._schedule(held, end)

        return take

    def _schedule(self, held: _Held, end: int) -> None:
        if held.next_end is None or end < held.next_end:
            held.next_end = end
            self._closing.add(held.group, end, held)

    def due(self, groups: list[Group]) -> None:
        found: list[_Due] = []
        for group in groups:
            for end, held in self._closing.due(group, self.tracker.marks[group] - self.grace):
                if held.next_end == end:
                    found.append(_Due(end, self._sorts_as(held.key), held, *self._slices(held, end)))
                    self._go_on(held, end + self._window.every)
        if len(found) > 1:
            found.sort(key=lambda due: due[:2])
        for due in found:
            self._give(due)

    def _slices(self, held: _Held, end: int) -> list[list[_Element]]:
        start = end - self._window.size
        return [side[bisect_left(side, (start,)) : bisect_left(side, (end,))] for side in held.sides]

    def _go_on(self, held: _Held, end: int) -> None:
        """Forget what is before the next window, and put the next one that holds something on the agenda."""
        for side in held.sides:
            del side[: bisect_left(side, (end - self._window.size,))]
        held.next_end = None
        firsts = [side[0].at for side in held.sides if side]
        if not firsts:
            del self._held[held.key]
            return
        size, every = self._window.size, self._window.every
        at = min(firsts)
        self._schedule(held, max(end, at + every - (at - size) % every))

    def _give(self, due: _Due) -> None:
        held = due.held
        source = collapsed(held.group)
        partners = due.right if pairs(held.key) else []
        for left in due.left:
            for right in partners:
                self._pair(source, left.side, right.side)
            if self._outer and not partners:
                self._pair(source, left.side, None)

    def state(self) -> Snapshot:
        held = [
            [held.key, held.next_end, *([list(element) for element in side] for side in held.sides)]
            for held in self._held.values()
        ]
        return {"arrived": self._arrived, "held": held}

    def set_state(self, state: Snapshot) -> None:
        self._arrived = state["arrived"]
        self._held.clear()
        self._closing.clear()
        for saved_key, next_end, *sides in state["held"]:
            key: Key = frozen(saved_key)
            held = self._held[key] = _Held(key, self.grouping.of_key(key))
            for side, saved in zip(held.sides, sides, strict=True):
                side.extend(_Element._make(frozen(element)) for element in saved)
            self._schedule(held, next_end)
