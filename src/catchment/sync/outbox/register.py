"""What entries refer to by a small number: epochs, schemas and clocks.

Promises: a number read from the tables means what it meant when it was written, or the outbox is called damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from catchment.program.types import Schema
from catchment.sync.frame import Epoch
from catchment.sync.outbox.database import Database, damaged, is_sound, seal
from catchment.sync.outbox.run import Stamp


class Register:
    """The tables epoch, schema and stamp, kept in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.epochs: dict[int, Epoch] = {}
        self.schemas: dict[int, Schema] = {}
        self.stamps: dict[int, Stamp] = {}
        self._schema_ids: dict[Schema, int] = {}
        self._stamp_ids: dict[Stamp, int] = {}
        self.reload()

    def reload(self) -> None:
        """Read the tables again."""
        self.epochs = {row[0]: Epoch(row[1], row[2]) for row in self._rows("epoch")}
        self.schemas = {row[0]: msgspec.json.decode(row[1], type=Schema) for row in self._rows("schema")}
        self.stamps = {row[0]: Stamp(*row[1:4]) for row in self._rows("stamp")}
        self._schema_ids = {schema: id_ for id_, schema in self.schemas.items()}
        self._stamp_ids = {stamp: id_ for id_, stamp in self.stamps.items()}

    def checkpoint(self) -> Callable[[], None]:
        """What brings the memory back to now."""
        before = [
            dict(self.epochs), dict(self.schemas), dict(self.stamps), dict(self._schema_ids), dict(self._stamp_ids)
        ]  # fmt: skip

        def restore() -> None:
            self.epochs, self.schemas, self.stamps, self._schema_ids, self._stamp_ids = before  # type: ignore[assignment]

        return restore

    def new_epoch(self, nonce: bytes) -> int:
        """Begin an epoch with a counter above all that were, and return its number."""
        write = self._database.connection.execute
        write("INSERT OR IGNORE INTO meta VALUES ('counter', 0)")
        (counter,) = write(
            "UPDATE meta SET value = 1 + max(value, (SELECT coalesce(max(counter), 0) FROM epoch)) "
            "WHERE key = 'counter' RETURNING value"
        ).fetchone()
        (id_,) = write(
            "SELECT 1 + coalesce(max(id), 0) FROM (SELECT id FROM epoch UNION SELECT epoch FROM channel)"
        ).fetchone()
        write("INSERT INTO epoch VALUES (?, ?, ?, ?)", (id_, counter, nonce, seal(id_, counter, nonce)))
        self.epochs[id_] = Epoch(counter, nonce)
        return int(id_)

    def epoch_id(self, epoch: Epoch) -> int | None:
        """The number of an epoch that still has something open."""
        return next((id_ for id_, known in self.epochs.items() if known == epoch), None)

    def schema_id(self, schema: Schema) -> int:
        """The number of a schema."""
        found = self._schema_ids.get(schema)
        if found is None:
            json = msgspec.json.encode(schema)
            row = self._database.connection.execute("SELECT id FROM schema WHERE json = ?", (json,)).fetchone()
            found = row[0] if row is not None else self._insert("schema", json)
            self._schema_ids[schema], self.schemas[found] = found, schema
        return found

    def stamp_id(self, stamp: Stamp) -> int:
        """The number of a clock."""
        found = self._stamp_ids.get(stamp)
        if found is None:
            found = self._insert("stamp", stamp.session, stamp.offset_us, stamp.wall_us)
            self._stamp_ids[stamp], self.stamps[found] = found, stamp
        return found

    def sweep(self, epoch: int) -> None:
        """Forget what nothing refers to any more, but that epoch."""
        write = self._database.connection.execute
        write("DELETE FROM channel WHERE acked >= next AND epoch != ?", (epoch,))
        write("DELETE FROM epoch WHERE id != ? AND id NOT IN (SELECT epoch FROM channel)", (epoch,))
        write("DELETE FROM schema WHERE id NOT IN (SELECT schema FROM entry UNION SELECT schema FROM result)")
        write(
            "DELETE FROM stamp WHERE id NOT IN (SELECT stamp FROM entry) "
            "AND id NOT IN (SELECT promise_stamp FROM stream WHERE promise_stamp IS NOT NULL)"
        )
        self.reload()

    def _insert(self, table: str, *values: object) -> int:
        connection: sqlite3.Connection = self._database.connection
        (id_,) = connection.execute(f"SELECT 1 + coalesce(max(id), 0) FROM {table}").fetchone()
        row = (id_, *values, seal(id_, *values))
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        return int(id_)

    def _rows(self, table: str) -> list[tuple[Any, ...]]:
        rows = self._database.connection.execute(f"SELECT * FROM {table}").fetchall()
        for row in rows:
            if not is_sound(table, row):
                raise damaged(f"row {row[0]} of {table} is not as it was written")
        return rows
