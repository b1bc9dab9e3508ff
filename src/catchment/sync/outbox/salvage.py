"""What can still be read of a damaged outbox, carried over into a new one.

Promises: the damaged files are set aside, never deleted; entries that can be read keep their (epoch, number) and go
out; what cannot be read leaves a gap in the numbers, which the receiver counts. A device's state, its results and their
marks are carried over together or not at all, since one without the others would count something twice.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from catchment.sync.outbox.database import SEAL_AT, VALUE_BYTES_MAX, Database, is_sound
from catchment.sync.outbox.mending import Damaged, Mending

_BELONG_TOGETHER = ("state", "arrived", "result")


class Salvage(msgspec.Struct, frozen=True):
    """What became of a damaged outbox."""

    set_aside: str
    entries: int
    """Entries that were read and will be sent."""
    missing: int | None
    """Numbers that were given but whose entries could not be read; None where even the numbers were lost."""
    state_kept: bool


def mend(place: Mending) -> Salvage:
    """Replace the damaged outbox at that place by a new one with what can be read of it."""
    damaged = place.damaged()
    try:
        fresh = Database(place.beside)
        try:
            salvaged = salvage(damaged, fresh)
            # Without a log of its own it is one file, to be put in place at once.
            fresh.settle()
        finally:
            fresh.close()
    finally:
        damaged.source.close()
    place.swap()
    return salvaged


def salvage(damaged: Damaged, fresh: Database) -> Salvage:
    """Carry over what can be read."""
    source = damaged.source
    source.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
    with fresh.transaction() as into:
        named = [_copy(source, into, table, "id") for table in ("epoch", "stream", "schema", "stamp")]
        numbered = _copy(source, into, "channel", "stream, epoch")
        _copy(source, into, "entry", "stream, epoch, number")
        together = [_read(source, table, None) for table in _BELONG_TOGETHER]
        whole = all(rows is not None for rows in together)
        if whole:
            for table, rows in zip(_BELONG_TOGETHER, together, strict=True):
                _insert(into, table, rows or [])
        entries, missing = _settle(into)
    return Salvage(damaged.name, entries, missing if numbered and all(named) else None, whole)


def _copy(source: sqlite3.Connection, into: sqlite3.Connection, table: str, key: str) -> bool:
    """Copy a table from both ends until the damage. Returns whether all of it was read."""
    whole = _read(source, table, None)
    if whole is not None:
        _insert(into, table, whole)
        return _is_intact(source, table)
    for order in (key, ", ".join(f"{column} DESC" for column in key.split(", "))):
        _insert(into, table, _read(source, table, order) or [])
    return False


def _is_intact(source: sqlite3.Connection, table: str) -> bool:
    """Whether the table's pages fit together: one that was overwritten with zeros may read as if it held no rows."""
    try:
        return source.execute(f"PRAGMA quick_check({table})").fetchall() == [("ok",)]
    except sqlite3.DatabaseError:
        return False


def _read(source: sqlite3.Connection, table: str, order: str | None) -> list[tuple[Any, ...]] | None:
    """The sound rows up to the damage in that order; with no order, all rows or None."""
    rows: list[tuple[Any, ...]] = []
    try:
        for row in source.execute(f"SELECT * FROM {table}" + (f" ORDER BY {order}" if order else "")):
            if table not in SEAL_AT or is_sound(table, row):
                rows.append(row)
            elif order is None:
                return None
    except (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError):
        return rows if order else None
    return rows


def _insert(into: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        places = ", ".join("?" * len(rows[0]))
        into.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)


def _settle(into: sqlite3.Connection) -> tuple[int, int]:
    """Keep what can be sent, give it a channel, and count it and the numbers that have neither entry nor reason."""
    # An entry without its stream, epoch, schema or clock cannot be sent: it counts as unread.
    into.execute(
        "DELETE FROM entry WHERE stream NOT IN (SELECT id FROM stream) OR epoch NOT IN (SELECT id FROM epoch) "
        "OR schema NOT IN (SELECT id FROM schema) OR stamp NOT IN (SELECT id FROM stamp)"
    )
    into.execute(
        "DELETE FROM channel WHERE stream NOT IN (SELECT id FROM stream) OR epoch NOT IN (SELECT id FROM epoch)"
    )
    into.execute(
        "UPDATE stream SET promise_us = NULL, promise_stamp = NULL WHERE promise_stamp NOT IN (SELECT id FROM stamp)"
    )
    into.execute(
        "INSERT OR IGNORE INTO channel "
        "SELECT stream, epoch, max(number) + 1, 0, 0, 0, 0 FROM entry GROUP BY stream, epoch"
    )
    (open_numbers,) = into.execute(
        "SELECT coalesce(sum(next - acked - refused - dropped - thinned), 0) FROM channel"
    ).fetchone()
    (entries,) = into.execute("SELECT count(*) FROM entry").fetchone()
    return int(entries), max(int(open_numbers) - int(entries), 0)
