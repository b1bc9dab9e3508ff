"""Pressure: how far the cloud is behind, and so how much slower adaptive streams should sample.

Behind is measured in time: how long ago the log ended where its slowest reader has confirmed. A log that nobody has
ever confirmed has no reader to wait for. Uploads that pile up before the disk count too. No I/O, no clock.

>>> lag = Lag()
>>> lag.observe(end=100, confirmed=100, now_us=0); lag.observe(end=200, confirmed=100, now_us=30_000_000)
>>> lag.behind_us(now_us=90_000_000)
60000000
>>> pressure(behind_us=90_000_000, waiting=0.0).slow_down
3.0
"""

from __future__ import annotations

from collections import deque

from catchment.sync.parts import Pressure

CALM_US = 30_000_000
"""Being this far behind is nothing to slow down for: micro-batches and restarts take seconds."""
SLOW_DOWN_MAX = 20.0
_SAMPLES_MAX = 4096


class Lag:
    """One partition's ends over time, against what its slowest reader has confirmed."""

    def __init__(self) -> None:
        self._ends: deque[tuple[int, int]] = deque()

    def observe(self, *, end: int, confirmed: int | None, now_us: int) -> None:
        """The log ends there now, and everything before `confirmed` has been read."""
        if confirmed is None:
            self._ends.clear()
            return
        if not self._ends or self._ends[-1][0] < end:
            if len(self._ends) >= _SAMPLES_MAX:
                # Far behind, a coarser memory is as good: every other sample goes.
                self._ends = deque(list(self._ends)[::2])
            self._ends.append((end, now_us))
        while self._ends and self._ends[0][0] <= confirmed:
            self._ends.popleft()

    def behind_us(self, *, now_us: int) -> int:
        """How long the oldest entry that is not confirmed has waited."""
        return max(0, now_us - self._ends[0][1]) if self._ends else 0


def pressure(*, behind_us: int, waiting: float, calm_us: int = CALM_US) -> Pressure:
    """The advice; `waiting` is the share of the gateway's memory for uploads that is taken."""
    slow = max(1.0, behind_us / calm_us, 1.0 + (waiting - 0.5) * 8 if waiting > 0.5 else 1.0)
    return Pressure(lag_us=behind_us, slow_down=round(min(slow, SLOW_DOWN_MAX), 2))
