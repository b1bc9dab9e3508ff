"""What is to happen in event time, for each group: elements, timers, and keys to be forgotten, in one order.

At one time elements come first, then timers, then forgetting. An entry may have become void since it was made (a
timer was replaced, a key is gone): whoever takes it out can tell, and says how many there are, so that void entries
are swept out before they are more than the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, NamedTuple

from catchment.operators.members import Group

ELEMENT, TIMER, FORGET = 0, 1, 2
_SWEEP_MIN = 64


class Happening(NamedTuple):
    """Sorted by its first four fields; `number` is unique."""

    at: int
    kind: int
    place: tuple[Any, ...]
    number: int
    what: Any


class Schedule:
    """A heap for each group. `is_void` says of an entry whether it is to be passed over."""

    def __init__(self, is_void: Callable[[Happening], bool]) -> None:
        self._groups: dict[Group, list[Happening]] = {}
        self._is_void = is_void
        self._size = 0
        self._void = 0

    def add(self, group: Group, happening: Happening) -> None:
        """Something is to happen."""
        heappush(self._groups.setdefault(group, []), happening)
        self._size += 1

    def voided(self, count: int = 1) -> None:
        """So many more entries are void now."""
        self._void += count
        if self._void > _SWEEP_MIN and self._void * 2 > self._size:
            self._sweep()

    def happen(
        self, groups: Iterable[Group], bound: Callable[[Group], int], take: Callable[[Group, Happening], None]
    ) -> None:
        """Let all happen that is before the bound of its group, in one order over the groups.

        What is added to the group meanwhile happens too, when it is its turn.
        """
        pending = [(first, group) for group in groups if (first := self._first(group, bound(group))) is not None]
        heapify(pending)
        while pending:
            happening, group = pending[0]
            self._remove(group)
            take(group, happening)
            following = self._first(group, bound(group))
            if following is None:
                heappop(pending)
            else:
                heapreplace(pending, (following, group))

    def _first(self, group: Group, bound: int) -> Happening | None:
        """What is to happen first in a group, void entries aside, if it is before the bound."""
        while heap := self._groups.get(group):
            if heap[0].at >= bound:
                break
            if not self._is_void(heap[0]):
                return heap[0]
            self._remove(group)
            self._void -= 1
        return None

    def _remove(self, group: Group) -> None:
        heap = self._groups[group]
        heappop(heap)
        self._size -= 1
        if not heap:
            del self._groups[group]

    def _sweep(self) -> None:
        for group, heap in list(self._groups.items()):
            heap[:] = [happening for happening in heap if not self._is_void(happening)]
            heapify(heap)
            if not heap:
                del self._groups[group]
        self._size = sum(map(len, self._groups.values()))
        self._void = 0

    def entries(self) -> Iterable[Happening]:
        """All entries, void ones too, in no order."""
        return (happening for heap in self._groups.values() for happening in heap)

    def clear(self) -> None:
        """Forget all."""
        self._groups.clear()
        self._size = self._void = 0
