"""What came down to a device: how far each downlink stream is durable here, and the results themselves.

Promises: a mark moves in the same transaction as the rows that it speaks of, so that a result is neither lost nor seen
twice. Results stay until they are forgotten, in the order they came; with a key, only the latest of each key stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from catchment.program.types import Row, Schema
from catchment.sync.codecs.packed import pack_row, unpack_row
from catchment.sync.frame import Epoch, Mark
from catchment.sync.outbox.database import Database, damaged, seal
from catchment.sync.outbox.register import Register


class Result(msgspec.Struct, frozen=True):
    """A result that reached the device. `id` grows with each."""

    id: int
    stream: str
    row: Row


class Inbox:
    """The results of one device. Every change runs inside a transaction of its caller."""

    def __init__(self, database: Database, register: Register) -> None:
        self._database = database
        self._register = register

    def marks(self) -> tuple[Mark, ...]:
        """How far each stream is durable here, epochs in the order in which they were first met."""
        found = self._database.connection.execute(
            "SELECT stream, counter, nonce, upto FROM arrived ORDER BY stream, position"
        )
        return tuple([Mark(stream, Epoch(counter, nonce), upto) for stream, counter, nonce, upto in found])

    def store(self, mark: Mark, schema: Schema | None, rows: Sequence[Row], keys: Sequence[bytes] | None) -> None:
        """Keep the rows and move the mark. With `keys`, a row replaces the earlier one of its key."""
        write = self._database.connection.execute
        write(
            "INSERT INTO arrived VALUES (?1, ?2, ?3, (SELECT count(*) FROM arrived WHERE stream = ?1), ?4) "
            "ON CONFLICT(stream, counter, nonce) DO UPDATE SET upto = excluded.upto",
            (mark.stream, mark.epoch.counter, mark.epoch.nonce, mark.upto),
        )
        if schema is None:
            return
        shape = self._register.schema_id(schema)
        for index, row in enumerate(rows):
            key = b"" if keys is None else keys[index]
            if keys is not None:
                write("DELETE FROM result WHERE stream = ? AND key = ?", (mark.stream, key))
            values = (mark.stream, key, shape, pack_row(schema, row))
            write("INSERT INTO result(stream, key, schema, row, seal) VALUES (?, ?, ?, ?, ?)", (*values, seal(*values)))

    def results(self, stream: str, after: int = 0, limit: int = 1000) -> list[Result]:
        """The results with a higher id, in order."""
        found = self._database.connection.execute(
            "SELECT id, key, schema, row, seal FROM result WHERE stream = ? AND id > ? ORDER BY id LIMIT ?",
            (stream, after, limit),
        )
        results = []
        for id_, key, shape, row, sealed in found:
            if sealed != seal(stream, key, shape, row):
                raise damaged(f"result {id_} of {stream} is not as it was written")
            results.append(Result(id_, stream, unpack_row(self._register.schemas[shape], row)))
        return results

    def forget(self, stream: str, upto: int) -> None:
        """Drop the results up to that id."""
        self._database.connection.execute("DELETE FROM result WHERE stream = ? AND id <= ?", (stream, upto))
