"""An agenda: what is due at which moment, for each group, whose watermark alone says how far the group is.

>>> agenda: Agenda[str] = Agenda()
>>> agenda.add("ada", 60, "x"); agenda.add("ada", 60, "y"); agenda.add("ada", 120, "x")
>>> list(agenda.due("ada", 119)), list(agenda.due("bob", 119))
([(60, 'x'), (60, 'y')], [])
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from catchment.operators.members import Group

T = TypeVar("T")


class _Days(Generic[T]):
    """The moments of one group, each once, and what is due at each."""

    __slots__ = ("at", "moments")

    def __init__(self) -> None:
        self.moments: list[int] = []
        self.at: dict[int, list[T]] = {}


class Agenda(Generic[T]):
    """What is due when. A group of which nothing is due takes no room."""

    def __init__(self) -> None:
        self._groups: dict[Group, _Days[T]] = {}

    def add(self, group: Group, moment: int, what: T) -> None:
        """Something more is due then."""
        days = self._groups.get(group)
        if days is None:
            days = self._groups[group] = _Days()
        there = days.at.get(moment)
        if there is None:
            heappush(days.moments, moment)
            days.at[moment] = [what]
        else:
            there.append(what)

    def due(self, group: Group, until: int) -> Iterator[tuple[int, T]]:
        """All of a group up to and including that moment, earliest first; what is added meanwhile too."""
        days = self._groups.get(group)
        if days is None:
            return
        moments, at = days.moments, days.at
        while moments and moments[0] <= until:
            moment = heappop(moments)
            for what in at.pop(moment):
                yield moment, what
        if not moments:
            del self._groups[group]

    def clear(self) -> None:
        """Forget all."""
        self._groups.clear()
