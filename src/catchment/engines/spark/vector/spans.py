"""What neighbouring panes of a key hold together: a difference of running sums, or the least or greatest of a span."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catchment.engines.spark.rows import Array
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.aggregates import Part


class Spans:
    """Panes by key and start, sorted by them.

    >>> spans = Spans(np.array([0, 0, 1]), np.array([0, 5, 5]))
    >>> low, high = spans.of(np.array([0, 1]), np.array([0, 0]), np.array([10, 10]))
    >>> low.tolist(), high.tolist(), spans.together([np.array([1, 2, 4])], [np.add], low, high)[0].tolist()
    ([0, 2], [2, 3], [3, 4])
    """

    def __init__(self, key: Array, start: Array) -> None:
        self._starts, rank = np.unique(start, return_inverse=True)
        self._span = len(self._starts) + 1
        self._codes = key * self._span + rank

    def of(self, key: Array, start: Array, end: Array) -> tuple[Array, Array]:
        """The panes of a key that begin in [start, end): the first, and the one behind the last."""
        low = np.searchsorted(self._codes, key * self._span + np.searchsorted(self._starts, start))
        high = np.searchsorted(self._codes, key * self._span + np.searchsorted(self._starts, end))
        return low, high

    def together(self, parts: Sequence[Part], operations: Sequence[np.ufunc], low: Array, high: Array) -> list[Part]:
        """The parts of spans that are not empty."""
        found: list[Part] = []
        for part, operation in zip(parts, operations, strict=True):
            if part is None:
                found.append(None)
            elif operation is np.add:
                roomy = aggregates.roomy(part)
                assert roomy is not None
                sums = np.concatenate([np.zeros(1, part.dtype), np.cumsum(roomy)])
                found.append(sums[high] - sums[low])
            else:
                found.append(_extremes(part, operation, low, high))
        return found


def _extremes(part: Array, operation: np.ufunc, low: Array, high: Array) -> Array:
    """The least or greatest of each span, by two spans of a power of two that cover it."""
    lengths = high - low
    level = np.frexp(lengths)[1] - 1
    found = np.empty(len(low), part.dtype)
    table = part
    for power in range(int(level.max(initial=0)) + 1):
        if power:
            reach = 1 << (power - 1)
            table = operation(table[:-reach], table[reach:])
        here = level == power
        if here.any():
            found[here] = operation(table[low[here]], table[high[here] - (1 << power)])
    return found
