"""The tick of a step with several inputs: the least of their largest, given when it rises.

>>> ticks = Ticks(2)
>>> ticks.take(0, 7), ticks.take(1, 5), ticks.take(1, 4), ticks.take(1, 9)
(None, 5, None, 7)
"""

from __future__ import annotations

from typing import Any


class Ticks:
    """The largest tick of each input, and the last that was given."""

    def __init__(self, ports: int) -> None:
        self._largest: list[int | None] = [None] * ports
        self._given: int | None = None

    def take(self, port: int, now: int) -> int | None:
        """The tick to give after this one came, if any."""
        before = self._largest[port]
        if before is not None and now <= before:
            return None
        self._largest[port] = now
        known = [tick for tick in self._largest if tick is not None]
        least = min(known)
        if len(known) < len(self._largest) or (self._given is not None and least <= self._given):
            return None
        self._given = least
        return least

    def save(self) -> Any:
        """As plain data."""
        return [self._largest, self._given]

    def load(self, saved: Any) -> None:
        """What was saved as this."""
        largest, self._given = saved
        self._largest[:] = largest
