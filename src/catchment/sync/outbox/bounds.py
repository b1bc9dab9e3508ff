"""How a stream of an outbox is kept within its bound: what is refused, dropped or thinned, and counted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from catchment.program.sync import Bound, Thin
from catchment.sync.outbox.database import damaged


@dataclass(slots=True)
class Fill:
    """A stream and how full it is: kept in memory, so that an append needs no count. The tables are the truth."""

    id: int
    bound: Bound = field(default_factory=Bound)
    records: int = 0
    size: int = 0
    promise_us: int | None = None
    promise_stamp: int | None = None

    @property
    def over(self) -> bool:
        """Whether there is more than the bound allows."""
        return self.records > 0 and not self.holds(self.records, self.size)

    def holds(self, records: int, size: int) -> bool:
        """Whether the bound allows so much."""
        return (self.bound.records is None or records <= self.bound.records) and (
            self.bound.bytes is None or size <= self.bound.bytes
        )

    def fitting(self, packed: Sequence[bytes]) -> int:
        """How many of these rows still fit."""
        records, size = self.records, self.size
        for index, row in enumerate(packed):
            records, size = records + 1, size + len(row)
            if not self.holds(records, size):
                return index
        return len(packed)


_OLDEST = "SELECT epoch, number FROM entry WHERE stream = ? ORDER BY epoch, number LIMIT ?"
_ALL_BUT_ONE_IN = (
    "SELECT epoch, number FROM (SELECT epoch, number, row_number() OVER (ORDER BY epoch, number) AS place "
    "FROM entry WHERE stream = ? ORDER BY epoch, number LIMIT ?) WHERE place % ? != 1"
)


def trim(connection: sqlite3.Connection, fill: Fill) -> int:
    """Bring the stream within its bound, as it says. Returns how many elements went."""
    before, when_full = fill.records, fill.bound.when_full
    while isinstance(when_full, Thin) and fill.over and fill.records >= 2 * when_full.keep_one_in:
        half = max(fill.records // 2, when_full.keep_one_in)
        _give_up(connection, fill, "thinned", _ALL_BUT_ONE_IN, (fill.id, half, when_full.keep_one_in))
    while fill.over:
        _give_up(connection, fill, "dropped", _OLDEST, (fill.id, max(_excess(fill), 1)))
    return before - fill.records


def forget(connection: sqlite3.Connection, fill: Fill, which: str, values: tuple[Any, ...]) -> None:
    """Delete the entries of the stream for which that holds."""
    records, size = connection.execute(
        f"SELECT count(*), sum(length(row)) FROM entry WHERE stream = ? AND {which}", (fill.id, *values)
    ).fetchone()
    connection.execute(f"DELETE FROM entry WHERE stream = ? AND {which}", (fill.id, *values))
    fill.records -= records
    fill.size -= size or 0


def _excess(fill: Fill) -> int:
    """About how many elements are too many, so that few rounds are needed."""
    records = 0 if fill.bound.records is None else fill.records - fill.bound.records
    if fill.bound.bytes is not None:
        records = max(records, (fill.size - fill.bound.bytes) * fill.records // max(fill.size, 1))
    return records


def _give_up(
    connection: sqlite3.Connection,
    fill: Fill,
    reason: Literal["dropped", "thinned"],
    query: str,
    values: tuple[Any, ...],
) -> None:
    which = f"(epoch, number) IN ({query})"
    per_epoch = connection.execute(
        f"SELECT epoch, count(*) FROM entry WHERE stream = ? AND {which} GROUP BY epoch", (fill.id, *values)
    ).fetchall()
    for epoch, count in per_epoch:
        connection.execute(
            f"UPDATE channel SET {reason} = {reason} + ? WHERE stream = ? AND epoch = ?", (count, fill.id, epoch)
        )
    if not per_epoch:
        # A key that rotted is found by no search: going on would be for ever.
        raise damaged(f"of {fill.records} entries of stream {fill.id} none is where it was put")
    forget(connection, fill, which, values)
