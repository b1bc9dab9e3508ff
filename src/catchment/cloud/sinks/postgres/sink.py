"""Results into a PostgreSQL table, by COPY from executors: rows and the mark of their part in one transaction.

A part's mark says up to which portion its rows are in the table, so a share that is written again, by whoever and with
more portions, adds only what is not there. A row that PostgreSQL cannot hold is quarantined. psycopg is needed where
tasks run; the address is a URL that libpq takes, in which variables of the environment stand for what is secret.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from catchment.cloud.materialised import Portion, fenced, read
from catchment.cloud.sinks.postgres import table
from catchment.cloud.sinks.postgres.rows import copied
from catchment.cloud.sinks.postgres.table import MARKS, MARKS_COLUMNS, beside, quoted
from catchment.cloud.sinks.quarantine import keep_lines
from catchment.cloud.sinks.sink import Identity, Share, Work
from catchment.errors import ProgramError
from catchment.program.types import Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection, Cursor


class Database:
    """A connection, and its one transaction: committed at the end of a `with`, undone by an error."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        with contextlib.closing(self._connection):
            if kind is None:
                self._connection.commit()
            else:
                self._connection.rollback()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Cursor[Any]:
        """Do it. A statement is made of names that were checked, and of values by place."""
        return self._connection.execute(statement.encode(), values or None)

    def vacuum(self, table: str) -> None:
        """Write the table anew without what was deleted: outside of any transaction."""
        self._connection.autocommit = True
        self._connection.execute(f"VACUUM (FULL) {quoted(table)}".encode())

    def copy(self, statement: str, portions: Iterable[bytes | memoryview]) -> None:
        """COPY what is given."""
        with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for portion in portions:
                copy.write(portion)


_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_WHOLE = -1
"""The part that stands for all: everything up to its number is in the table."""
_CREATING = 0x6361746368
"""The advisory lock under which tables are made: two at once would each find none."""


@dataclass(frozen=True)
class PostgresSink:
    """What the author declared, and where rows go that cannot be held."""

    name: str
    output: str
    schema: Schema
    url: str
    table: str
    keep: str
    every_us: int
    quarantine: str

    def open(self, identity: Identity) -> OpenPostgres:
        """The table, made if it is not there."""
        return OpenPostgres(self, identity)


class OpenPostgres:
    """The table as the driver holds it: it asks for the marks once, and tasks do the rest."""

    def __init__(self, sink: PostgresSink, identity: Identity) -> None:
        self._sink, self._identity = sink, identity
        self._url = address(sink.url, os.environ)
        with connect(self._url) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
            _make(connection, sink)
            self.upto = _take_over(connection, sink, identity)

    def write(self, share: Share) -> Work:
        """The rows of a share, in the table, when this returns."""
        return partial(_write, self._sink, self._identity, self._url, share)

    def commit(self, portions: Sequence[Portion], receipts: Sequence[bytes]) -> None:
        """Each part has said so in its own transaction; that all have is written down for the next start."""
        self.upto = portions[-1].number
        with connect(self._url) as connection:
            log = msgspec.json.encode(portions[-1].upto, order="sorted").decode()
            _mark(connection, self._sink, self._identity, _WHOLE, self.upto, log)

    def chores(self) -> Sequence[Work]:
        """None: PostgreSQL tidies itself."""
        return ()

    def settle(self, receipts: Sequence[bytes]) -> None:
        """There were none."""

    def close(self) -> None:
        """Nothing is held between shares."""


def address(url: str, environment: Any) -> str:
    """The URL with what the environment says.

    >>> address("postgresql://fleet@db/${NAME}", {"NAME": "trips"})
    'postgresql://fleet@db/trips'
    """

    def said(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environment:
            raise ProgramError(
                "E046",
                f"the database's url names ${name}, which is not set",
                why="the environment of the process that runs the program has no such variable",
                fix=f"set it before `catchment run`: export {name}=postgresql://USER@HOST/DATABASE",
            )
        return str(environment[name])

    return _VARIABLE.sub(said, url)


def connect(url: str) -> Database:
    """A connection to that database."""
    try:
        import psycopg
    except ImportError as error:
        raise ProgramError(
            "E047",
            "there is no driver for PostgreSQL here",
            why=str(error),
            fix="pip install 'catchment[postgres]' where the program and its tasks run",
        ) from error
    return Database(psycopg.connect(url, connect_timeout=10, application_name="catchment"))


def _make(connection: Database, sink: PostgresSink) -> None:
    by = table.replaces_by(sink.schema, sink.keep)
    connection.execute(table.create(sink.table, sink.schema, by))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(beside(sink.table, MARKS))} ({MARKS_COLUMNS})")
    schema, _, name = sink.table.rpartition(".")
    found = dict(
        connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = %s AND table_schema = COALESCE(NULLIF(%s, ''), current_schema())",
            (name, schema),
        ).fetchall()
    )
    for column in sink.schema.fields:
        there, wanted = found.get(column.name), table.catalogue_type(column.type)
        if there is None:
            # A field that was added since: what was kept before has none.
            connection.execute(
                f"ALTER TABLE {quoted(sink.table)} ADD COLUMN {quoted(column.name)} {table.sql_type(column.type)}"
            )
        elif there != wanted:
            raise ProgramError(
                "E048",
                f"column {column.name} of {sink.table} is {there}, and {sink.schema.name} needs {wanted}",
                why="the table was made for another record, or by hand",
                fix=f"ALTER TABLE {sink.table} ALTER {column.name} TYPE {wanted}, or name another table",
            )


def _take_over(connection: Database, sink: PostgresSink, identity: Identity) -> int:
    """How far all parts are; from here on no older generation may write."""
    marks = quoted(beside(sink.table, MARKS))
    rows = connection.execute(
        f"SELECT part, store, generation, number FROM {marks} WHERE program = %s AND sink = %s FOR UPDATE",
        (identity.program, sink.name),
    ).fetchall()
    for _, store, generation, _ in rows:
        if store != identity.store:
            raise ProgramError(
                "E049",
                f"{sink.table} holds results of {sink.name}, kept from another data directory",
                why="its marks say how far in that directory's output it goes, and nothing of this one's",
                fix=f"name another table, or DELETE FROM {beside(sink.table, MARKS)} to go on in this one",
            )
        if generation > identity.generation:
            raise fenced(sink.table, identity.generation, generation)
    connection.execute(
        f"UPDATE {marks} SET generation = %s WHERE program = %s AND sink = %s",
        (identity.generation, identity.program, sink.name),
    )
    return next((number for part, _, _, number in rows if part == _WHOLE), 0)


def _mark(connection: Database, sink: PostgresSink, identity: Identity, part: int, number: int, log: str) -> None:
    connection.execute(
        f"INSERT INTO {quoted(beside(sink.table, MARKS))} AS known VALUES (%s, %s, %s, %s, %s, %s, %s) "
        "ON CONFLICT (program, sink, part) DO UPDATE "
        "SET number = excluded.number, log = excluded.log, generation = excluded.generation",
        (identity.program, sink.name, part, identity.store, identity.generation, number, log),
    )


def _write(sink: PostgresSink, identity: Identity, url: str, share: Share) -> bytes:
    import pyarrow as pa

    with connect(url) as connection:
        known = _locked(connection, sink, identity, share.part)
        files = [file for file in share.files if file.number > known]
        if not files:
            return b"0"
        rows = pa.concat_tables([read(file.path, sink.output).table(sink.schema) for file in files])
        kept, refused = copied(rows, sink.schema)
        if refused:
            given = rows.select(sink.schema.names).take([number for number, _ in refused]).to_pylist()
            lines = [
                {"step": sink.name, "reason": why, "given": row} for (_, why), row in zip(refused, given, strict=True)
            ]
            keep_lines(
                sink.quarantine, f"{files[-1].number:012d}-{share.part:04d}-{sink.name.replace('/', '.')}", lines
            )
        _copy(connection, sink, kept)
        _mark(connection, sink, identity, share.part, files[-1].number, files[-1].log)
    return str(kept.num_rows).encode()


def _locked(connection: Database, sink: PostgresSink, identity: Identity, part: int) -> int:
    """The mark of a part, which nobody else changes until this transaction ends."""
    marks = quoted(beside(sink.table, MARKS))
    connection.execute(
        f"INSERT INTO {marks} VALUES (%s, %s, %s, %s, %s, 0, '') ON CONFLICT DO NOTHING",
        (identity.program, sink.name, part, identity.store, identity.generation),
    )
    row = connection.execute(
        f"SELECT generation, number FROM {marks} WHERE program = %s AND sink = %s AND part = %s FOR UPDATE",
        (identity.program, sink.name, part),
    ).fetchone()
    assert row is not None
    generation, number = row
    if generation > identity.generation:
        raise fenced(sink.table, identity.generation, generation)
    return int(number)


def _copy(connection: Database, sink: PostgresSink, rows: pa.Table) -> None:
    by = table.replaces_by(sink.schema, sink.keep)
    if not by:
        _copy_into(connection, sink.table, sink.schema.names, rows)
        return
    staged = "catchment_staged"
    connection.execute(
        f"CREATE TEMPORARY TABLE {quoted(staged)} ON COMMIT DROP AS "
        f"SELECT *, 0::bigint AS _n FROM {quoted(sink.table)} WITH NO DATA"
    )
    numbered = rows.append_column("_n", [range(rows.num_rows)])
    _copy_into(connection, staged, (*sink.schema.names, "_n"), numbered)
    connection.execute(table.merge(sink.table, staged, sink.schema, by))


def _copy_into(connection: Database, into: str, names: Sequence[str], rows: pa.Table) -> None:
    columns = ", ".join(map(quoted, names))
    connection.copy(f"COPY {quoted(into)} ({columns}) FROM STDIN (FORMAT csv)", _csv(rows))


def _csv(rows: pa.Table) -> Iterator[memoryview]:
    import pyarrow.csv as csv

    for batch in rows.to_batches(max_chunksize=16_384):
        text = io.BytesIO()
        csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
        yield text.getbuffer()
