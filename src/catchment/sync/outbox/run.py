"""What leaves an outbox at a time: consecutive numbers of one stream, epoch, schema and clock.

Plain values, and how a list of entries is cut into them. Knows no database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from catchment.program.types import Row, Schema
from catchment.sync.codecs.packed import unpack_row
from catchment.sync.frame import Epoch, Gap, Lost

GAPS_MAX = 1000
"""A run has at most so many gaps, for the header of a frame holds few thousands."""


class Stamp(msgspec.Struct, frozen=True):
    """Which clock elements were read by.

    `session` is the boot, `offset_us` what was added to readings to make event times (None where event times are the
    author's own), `wall_us` what the wall clock claimed as (wall − reading): give a new one only when it moved
    noticeably, since each distinct stamp is stored and ends a run.
    """

    session: bytes
    offset_us: int | None = None
    wall_us: int | None = None

    def counts_like(self, other: Stamp) -> bool:
        """Whether event times and promises of the two can be compared."""
        return self.session == other.session and self.offset_us == other.offset_us


class Position(msgspec.Struct, frozen=True, order=True):
    """Where to read a stream on: the store's own number of an epoch, and a number in it."""

    epoch: int
    number: int


class Entry(NamedTuple):
    """An element as it is stored."""

    number: int
    schema: int
    stamp: int
    reading_us: int
    promise_us: int | None
    row: bytes


class Run(msgspec.Struct, frozen=True):
    """What one data frame would carry. Without rows, it tells of a gap only and has neither schema nor stamp."""

    stream: str
    epoch: Epoch
    first: int
    gaps: tuple[Gap, ...]
    schema: Schema | None
    stamp: Stamp | None
    reading_us: int
    span_us: int
    promise_us: int | None
    lost: Lost
    packed: tuple[bytes, ...]
    after: Position
    """Where the next run starts."""

    @property
    def upto(self) -> int:
        """The number after the last that this run accounts for."""
        return self.after.number

    def rows(self) -> list[Row]:
        """The elements."""
        return [] if self.schema is None else [unpack_row(self.schema, row) for row in self.packed]


def cut(entries: Sequence[Entry], first: int) -> Sequence[Entry]:
    """The first entries that can share a run: one schema, one clock, few gaps."""
    gaps, expected = 0, first
    for index, entry in enumerate(entries):
        gaps += entry.number != expected
        expected = entry.number + 1
        if (entry.schema, entry.stamp) != (entries[0].schema, entries[0].stamp) or gaps > GAPS_MAX:
            return entries[:index]
    return entries


def gaps_between(first: int, numbers: Sequence[int], upto: int) -> tuple[Gap, ...]:
    """The numbers from `first` up to `upto` that are missing, run-length coded.

    >>> gaps_between(10, [12, 13, 15, 17], 18)
    (Gap(at=0, skipped=2, rows=1), Gap(at=2, skipped=1, rows=2))
    """
    gaps: list[Gap] = []
    expected = first
    for at, number in enumerate([*numbers, upto]):
        skipped = number - expected
        if skipped:
            last = gaps[-1] if gaps else None
            if last is not None and last.skipped == skipped and last.at + last.rows == at:
                gaps[-1] = Gap(last.at, skipped, last.rows + 1)
            else:
                gaps.append(Gap(at, skipped))
        expected = number + 1
    return tuple(gaps)
