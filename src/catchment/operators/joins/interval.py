"""`join(within=(before, after))`: pairs of which the right element lies that near to the left one.

Elements are taken in order, so those of a key stand in order, and a partner is one of a run of them. A left element
can be forgotten once `W - grace` is past all that could still be its partner; one that had none leaves then, with
nulls, if the join is outer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from operator import attrgetter

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.members import Group
from catchment.operators.pairing import Pairing, Side, pairs
from catchment.operators.release import Releasing
from catchment.program import steps
from catchment.program.types import Row, Schema


class _Held:
    """An element that may still have partners."""

    __slots__ = ("at", "key", "number", "paired", "row")

    def __init__(self, at: int, number: int, key: Key, row: Row, paired: bool = False) -> None:
        self.at = at
        self.number = number  # in the order in which elements were taken
        self.key = key
        self.row = row
        self.paired = paired

    @property
    def side(self) -> Side:
        return Side(self.at, self.row)


_at, _number = attrgetter("at"), attrgetter("number")


class IntervalJoin(Releasing):
    """For each side, its elements by key, and by group in the order in which they are forgotten."""

    def __init__(self, step: steps.Join, given: tuple[Schema, ...]) -> None:
        self._reaches = (step.after, step.before)
        super().__init__(
            given, (step.keys, step.right_keys), step.closing, step.scope, reach=max(step.before, step.after)
        )
        self._pairing = Pairing(step, given, optional=(1,) if step.outer else ())
        self._outer = step.outer
        self._by_key: tuple[dict[Key, list[_Held]], ...] = ({}, {})
        self._by_group: tuple[dict[Group, deque[_Held]], ...] = ({}, {})
        self._taken = 0

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        self._pair = self._pairing.giving(outputs[0].element, quarantine)
        return super().connect(outputs, quarantine)

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        self._taken += 1
        held = _Held(at, self._taken, key, row)
        if pairs(key):
            source = collapsed(self.grouping.of_key(key))
            for other in self._partners(at, port, key):
                held.paired = other.paired = True
                left, right = (held, other) if port == 0 else (other, held)
                self._pair(source, left.side, right.side)
        elif port == 1 or not self._outer:
            return
        self._hold(port, held)

    def _partners(self, at: int, port: int, key: Key) -> list[_Held]:
        others = self._by_key[1 - port].get(key)
        if others is None:
            return []
        after, before = self._reaches if port == 0 else self._reaches[::-1]
        return others[bisect_left(others, at - before, key=_at) : bisect_right(others, at + after, key=_at)]

    def _hold(self, port: int, held: _Held) -> None:
        self._by_key[port].setdefault(held.key, []).append(held)
        self._by_group[port].setdefault(self.grouping.of_key(held.key), deque()).append(held)

    def after(self, groups: list[Group]) -> None:
        lonely: list[_Held] = []
        for group in groups:
            passed = self.tracker.marks[group] - self.grace
            lonely += [held for held in self._forgotten(0, group, passed) if not held.paired]
            self._forgotten(1, group, passed)
        if self._outer:
            for held in sorted(lonely, key=_number):
                self._pair(collapsed(self.grouping.of_key(held.key)), held.side, None)

    def _forgotten(self, port: int, group: Group, passed: int) -> list[_Held]:
        """Forget what can have no more partners."""
        holds = self._by_group[port].get(group)
        if holds is None:
            return []
        found = []
        while holds and holds[0].at + self._reaches[port] < passed:
            found.append(holds.popleft())
        if not holds:
            del self._by_group[port][group]
        by_key = self._by_key[port]
        for key, count in Counter(held.key for held in found).items():
            del by_key[key][:count]
            if not by_key[key]:
                del by_key[key]
        return found

    def state(self) -> Snapshot:
        held = [
            [port, one.at, one.number, one.key, one.row, one.paired]
            for port, by_group in enumerate(self._by_group)
            for holds in by_group.values()
            for one in holds
        ]
        return {**super().state(), "taken": self._taken, "held": held}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._taken = state["taken"]
        for known in (*self._by_key, *self._by_group):
            known.clear()  # type: ignore[attr-defined]  # a union of dicts
        for port, at, number, key, row, paired in state["held"]:
            self._hold(port, _Held(at, number, frozen(key), frozen(row), paired))
