"""When a sensor is read next: its interval, stretched by the rules that hold at the moment.

A rule is an expression over what the device knows of itself, compiled once. Of the rules that hold the strongest
counts, and a pause is the strongest. The cloud's advice counts as one more rule of every stream that is adaptive; a
fixed interval is the author's word, and stays.

>>> from catchment.program.nodes import FieldRef
>>> from catchment.program.sampling import SlowDown
>>> rate = Rate(Sampling(5, (SlowDown(FieldRef("battery_low"), 4), SlowDown(FieldRef("indoors"), 0))))
>>> rate.interval_us(Surroundings()), rate.interval_us(Surroundings(battery_low=True, slow_down=2.0))
(5, 20)
>>> rate.interval_us(Surroundings(indoors=True)) is None
True
"""

from __future__ import annotations

from catchment.device.surroundings import Surroundings
from catchment.operators.expressions import compile_predicate
from catchment.program.row_error import RowError
from catchment.program.sampling import DEVICE_CONTEXT, Sampling


class Rate:
    """The interval of one sensor."""

    def __init__(self, sampling: Sampling) -> None:
        self.every_us = sampling.every
        self._rules = [(compile_predicate(rule.when, (DEVICE_CONTEXT,)), rule.slow_down) for rule in sampling.rules]
        self._last: tuple[Surroundings, int | None] | None = None

    def interval_us(self, now: Surroundings) -> int | None:
        """How long from one reading to the next; None while it is not to be read."""
        if self._last is None or self._last[0] != now:
            self._last = (now, self._interval(now))
        return self._last[1]

    def _interval(self, now: Surroundings) -> int | None:
        if not self._rules:
            return self.every_us
        row = now.row()
        stretch = now.slow_down
        for holds, slow_down in self._rules:
            try:
                if not holds(row):
                    continue
            except RowError:
                # A rule that cannot be computed of these values says nothing about them.
                continue
            if slow_down == 0:
                return None
            stretch = max(stretch, slow_down)
        return round(self.every_us * stretch)
