"""`dft`: magnitudes of the first coefficients of the discrete Fourier transform.

In a window of time the angle of a value follows from its time, and a window's start only turns all of them by one
angle, which a magnitude does not see. So values are turned by their time alone, and summaries of panes just add up.
Elsewhere the angle follows from a value's place among all of them, so the values are kept until they are asked for.

>>> dft = TimedFourier(bins=2, size=4)
>>> summary = dft.empty()
>>> for at in range(4): summary = dft.add(summary, 3.0, at, None)
>>> [round(magnitude, 9) for magnitude in dft.result(summary)]
[12.0, 0.0]
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from catchment.operators.aggregates.aggregate import Aggregate, Order
from catchment.operators.aggregates.collect import Collect

_TURN = -2j * math.pi


class TimedFourier(Aggregate):
    """The summary is [how many, how many of them not finite, a complex sum for each coefficient]."""

    def __init__(self, bins: int, size: int) -> None:
        self._bins = bins
        self._size = size
        self.add = self._adding()  # a closure, because it runs for each element

    def empty(self) -> list[Any]:
        return [0, 0, *[0j] * self._bins]

    def _adding(self) -> Callable[[list[Any], Any, int, Order], list[Any]]:
        size, places, turn, exp = self._size, range(2, self._bins + 2), _TURN / self._size, cmath.exp

        def add(summary: list[Any], value: Any, at: int, order: Order) -> list[Any]:
            summary[0] += 1
            if value - value != 0:
                summary[1] += 1
                return summary
            one = exp(turn * (at % size))
            term = complex(value)
            for place in places:
                summary[place] += term
                term *= one
            return summary

        return add

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [one + other for one, other in zip(left, right, strict=True)]

    def result(self, summary: list[Any]) -> tuple[float, ...]:
        count, odd, *terms = summary
        if not count:
            return ()
        return (math.nan,) * self._bins if odd else tuple([abs(term) for term in terms])

    def save(self, summary: list[Any]) -> Any:
        return [*summary[:2], *([term.real, term.imag] for term in summary[2:])]

    def load(self, saved: Any) -> list[Any]:
        return [*saved[:2], *(complex(*term) for term in saved[2:])]


class PlacedFourier(Collect):
    """Outside windows of time: the place among the values stands for the time, and their number for the size."""

    def __init__(self, bins: int) -> None:
        self._bins = bins

    def result(self, summary: Any) -> tuple[float, ...]:
        values = self.in_order(summary)
        if not values:
            return ()
        if not all(map(math.isfinite, values)):
            return (math.nan,) * self._bins
        size = len(values)
        turns = [cmath.exp(_TURN * place / size) for place in range(size)]
        return tuple(
            [
                abs(sum((value * turns[b * place % size] for place, value in enumerate(values)), 0j))
                for b in range(self._bins)
            ]
        )
