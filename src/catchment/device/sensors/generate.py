"""A sensor for want of one: values made of a seed, the same in every run.

The n-th reading depends on the seed and n alone, so its position is one number. A float wanders smoothly between
`low` and `high`, an int counts, a text goes through a few words, a truth flips now and then.

>>> from catchment.program.types import Column
>>> wave = Generator(Schema("W", (Column("n", INT), Column("v", FLOAT))), seed=7)
>>> first = wave.read(0); second = wave.read(0)
>>> first["n"], second["n"], first["v"] != second["v"], wave.made
(0, 1, True, 2)
"""

from __future__ import annotations

import math
import zlib
from typing import Any

from catchment.device.sensors.sensor import Values
from catchment.program.types import BOOL, BYTES, DURATION, FLOAT, INT, STR, Column, Schema

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord")
_PERIOD = 97
"""Readings per wave: no round number, so that waves of several fields do not repeat together."""


class Generator:
    """See the module. After `count` readings it has nothing more to say."""

    def __init__(
        self, schema: Schema, *, seed: int = 0, low: float = 0.0, high: float = 1.0, count: int | None = None
    ) -> None:
        self._columns = [column for column in schema.fields if not column.event_time and column.stamp is None]
        self._seed = seed
        self._low, self._high = low, high
        self._count = count
        self.made = 0
        """How many readings it has made."""

    @property
    def spent(self) -> bool:
        """Whether it has made as many as it was to."""
        return self._count is not None and self.made >= self._count

    def read(self, at_us: int) -> Values | None:
        """The next reading."""
        if self.spent:
            return None
        number, self.made = self.made, self.made + 1
        return {column.name: self._value(column, number) for column in self._columns}

    def position(self) -> bytes:
        """How many were made."""
        return b"%d" % self.made

    def resume(self, position: bytes) -> None:
        """Go on after so many."""
        self.made = int(position)

    def _value(self, column: Column, number: int) -> Any:
        if column.type == FLOAT:
            return self._float(column.name, number)
        if column.type in (INT, DURATION):
            return number
        if column.type == BOOL:
            return self._noise(column.name, number // 10) < 0.5
        if column.type == STR:
            return _WORDS[int(self._noise(column.name, number // 10) * len(_WORDS))]
        if column.type == BYTES:
            return b"%d" % number
        return None

    def _float(self, name: str, number: int) -> float:
        """A slow wave with a little noise, within the bounds."""
        phase = self._noise(name, -1)
        wave = 0.5 + 0.45 * math.sin(2 * math.pi * (number / _PERIOD + phase))
        return self._low + (self._high - self._low) * (wave + 0.05 * (2 * self._noise(name, number) - 1))

    def _noise(self, name: str, number: int) -> float:
        """Between 0 and 1, the same for the same arguments on every machine."""
        return zlib.crc32(f"{self._seed}/{name}/{number}".encode()) / 2**32
