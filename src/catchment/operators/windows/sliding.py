"""Overlapping windows from panes: each pane is summarised once, and a window merges few summaries, not all its panes.

Where parts can be taken out again, one running summary slides. Otherwise panes are merged in blocks as long as a
window: a window spans the end of one block and the beginning of the next, so it is one suffix merged with one prefix,
and each pane is merged three times in all. Blocks begin at multiples of the size and not where a window happened to be
first asked for, so the same panes give the same result to the last bit, also after a restart.

A pane is known by its start; one that is not there holds nothing. Panes may not change once a window asked for them,
or `forget` must be called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from catchment.operators.aggregates.aggregate import StuckError, Summary
from catchment.operators.contents import Contents

Panes = Mapping[int, Summary]


class Slider(Protocol):
    """Gives windows of one key in the order of their starts."""

    end: int | None
    """Where the last window ended: what is before may not change without `forget`."""

    def window(self, start: int, end: int, panes: Panes) -> Summary:
        """The summary of the panes from start to end, or None where there are none. It may not be changed."""

    def forget(self) -> None:
        """Begin anew: panes have changed."""


class Blocks:
    """By suffixes and prefixes of blocks."""

    __slots__ = ("_contents", "_filled", "_middle", "_pane", "_prefix", "_size", "_suffixes", "end")

    def __init__(self, contents: Contents, size: int, pane: int) -> None:
        self._contents = contents
        self._size = size
        self._pane = pane
        self.forget()

    def forget(self) -> None:
        self.end: int | None = None
        self._middle: int | None = None
        self._filled = 0
        self._prefix: Summary = None
        self._suffixes: list[tuple[int, Summary]] = []  # by falling start

    def window(self, start: int, end: int, panes: Panes) -> Summary:
        middle = start + -start % self._size
        if middle != self._middle:
            self._middle = self._filled = middle
            self._prefix = None
            self._suffixes = self._fold(start, middle, panes)
        self._extend(end, panes)
        self.end = end
        suffixes = self._suffixes
        while suffixes and suffixes[-1][0] < start:
            suffixes.pop()
        if not suffixes:
            return self._prefix
        suffix = suffixes[-1][1]
        return suffix if self._prefix is None else self._contents.merge(suffix, self._prefix)

    def _fold(self, start: int, middle: int, panes: Panes) -> list[tuple[int, Summary]]:
        found: list[tuple[int, Summary]] = []
        for at in range(middle - self._pane, start - 1, -self._pane):
            pane = panes.get(at)
            if pane is not None:
                found.append((at, self._contents.merge(pane, found[-1][1]) if found else pane))
        return found

    def _extend(self, end: int, panes: Panes) -> None:
        for at in range(self._filled, end, self._pane):
            pane = panes.get(at)
            if pane is not None:
                self._prefix = pane if self._prefix is None else self._contents.merge(self._prefix, pane)
        self._filled = max(self._filled, end)


class Subtracting:
    """By adding the pane that enters and taking out the one that leaves; only for what is exact."""

    __slots__ = ("_contents", "_count", "_pane", "_start", "_total", "end")

    def __init__(self, contents: Contents, size: int, pane: int) -> None:
        self._contents = contents
        self._pane = pane
        self.forget()

    def forget(self) -> None:
        self.end: int | None = None
        self._start = 0
        self._count = 0
        self._total: Summary = None

    def window(self, start: int, end: int, panes: Panes) -> Summary:
        if self.end is None or start >= self.end or start < self._start:
            self.forget()
            self._start = self.end = start
        try:
            for at in range(self._start, start, self._pane):
                self._leave(panes.get(at))
        except StuckError:
            self.forget()
            self.end = start
        for at in range(self.end, end, self._pane):
            self._enter(panes.get(at))
        self._start, self.end = start, end
        return self._total if self._count else None

    def _enter(self, pane: Summary) -> None:
        if pane is not None:
            self._total = self._contents.merge(self._total, pane) if self._count else pane
            self._count += 1

    def _leave(self, pane: Summary) -> None:
        if pane is not None:
            self._total = self._contents.remove(self._total, pane)
            self._count -= 1


class Merging:
    """By merging all panes: for summaries that grow with what they hold, of which none is worth keeping."""

    __slots__ = ("_contents", "_pane", "end")

    def __init__(self, contents: Contents, size: int, pane: int) -> None:
        self._contents = contents
        self._pane = pane
        self.end: int | None = None

    def forget(self) -> None:
        pass

    def window(self, start: int, end: int, panes: Panes) -> Summary:
        total: Summary = None
        for at in range(start, end, self._pane):
            pane = panes.get(at)
            if pane is not None:
                total = pane if total is None else self._contents.merge(total, pane)
        return total


def slider_for(contents: Contents, size: int, every: int) -> type[Blocks] | type[Subtracting] | type[Merging]:
    """The way that suits these contents; where windows hardly overlap, there is nothing to gain."""
    if contents.bulky or size <= 2 * every:
        return Merging
    return Subtracting if contents.removable else Blocks
