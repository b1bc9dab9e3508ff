"""Keys as small numbers: each key of a step has one for as long as it is remembered.

>>> from catchment.engines.spark.rows import column_of
>>> from catchment.program.types import INT, STR
>>> keys = Keys()
>>> keys.number([column_of(["a", None, "a"], STR), column_of([1, 1, 1], INT)], 3).tolist(), keys.known
([0, 1, 0], [('a', 1), (None, 1)])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Column
from catchment.program.types import BOOL, BYTES, DURATION, INSTANT, INT, STR, DataType

NUMBERED: tuple[DataType, ...] = (STR, BYTES, INT, INSTANT, DURATION, BOOL)
"""Types of keys that can be numbered: Python and numpy agree on which of their values are equal."""


class Keys:
    """The keys that are known, by number."""

    def __init__(self, known: Sequence[tuple[Any, ...]] = ()) -> None:
        self.known: list[tuple[Any, ...]] = list(known)
        self._numbers: dict[tuple[Any, ...], int] = {key: number for number, key in enumerate(self.known)}

    def number(self, columns: Sequence[Column], count: int) -> Array:
        """The number of each row's key; new ones get the next numbers, in the order in which they come."""
        if not columns:
            self._add([()] if count else [])
            return np.zeros(count, np.int64)
        codes, firsts = distinct(columns, count)
        found = list(zip(*[column_values(column, firsts) for column in columns], strict=True))
        return self._add(found)[codes]

    def _add(self, keys: Sequence[tuple[Any, ...]]) -> Array:
        numbers = self._numbers
        found = []
        for key in keys:
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(self.known)
                self.known.append(key)
            found.append(number)
        return np.array(found, np.int64)


def column_values(column: Column, which: Array) -> list[Any]:
    """Some values as Python's."""
    valid = None if column.valid is None else column.valid[which]
    return Column(column.values[which], valid, column.words).objects()


def distinct(columns: Sequence[Column], count: int) -> tuple[Array, Array]:
    """Equal rows by a number: (the number of each row, the first row of each number), numbers by first appearance."""
    codes: Array | None = None
    for column in columns:
        own = _codes(column)
        codes = own if codes is None else _compact(codes * (int(own.max(initial=0)) + 1) + own)
    assert codes is not None
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], firsts[order]


def _codes(column: Column) -> Array:
    values = column.values
    if column.words is not None:
        codes = values + 1
    elif values.dtype == np.bool_:
        codes = values.astype(np.int64) + 1
    else:
        codes = _compact(values) + 1
    return codes if column.valid is None else np.where(column.valid, codes, 0)


def _compact(values: Array) -> Array:
    inverse: Array = np.unique(values, return_inverse=True)[1]
    return inverse
