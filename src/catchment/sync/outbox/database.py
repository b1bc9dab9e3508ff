"""The file below an outbox: SQLite in WAL mode, each commit on disk before it returns, a clear state when it is not.

Promises: what `transaction` commits survives kill -9 and a power cut; what it could not commit raises `OutboxError` and
leaves no trace; `health` says which it is. Beside the file lies a little ballast, given back to a full disk so that at
least the count of what it cannot take can be written. Knows SQLite and its failures. Must not know what is stored.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from catchment.errors import InternalError
from catchment.sync.outbox.mending import finish, sync_directory

_PACKER = msgspec.msgpack.Encoder()
FORMAT = 1
"""The layout of the tables. A file of a later one is not touched."""
FORMATS_MAX = 1000
"""No version will have come so far: a number beyond it has rotted."""


class Health(StrEnum):
    """What an outbox can do at the moment."""

    WORKING = "working"
    FULL = "disk full"
    READ_ONLY = "read only"
    DAMAGED = "damaged"


class OutboxError(InternalError):
    """The disk did not take it: nothing of the transaction is stored, and the caller still has it."""

    def __init__(self, code: str, what: str, *, why: str, fix: str, health: Health) -> None:
        super().__init__(code, what, why=why, fix=fix)
        self.health = health


_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE epoch(id INTEGER PRIMARY KEY, counter INTEGER NOT NULL, nonce BLOB NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE stream(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seal INTEGER NOT NULL, promise_us INTEGER, promise_stamp INTEGER
);
CREATE TABLE schema(id INTEGER PRIMARY KEY, json BLOB NOT NULL UNIQUE, seal INTEGER NOT NULL);
CREATE TABLE stamp(
  id INTEGER PRIMARY KEY, session BLOB NOT NULL, offset_us INTEGER, wall_us INTEGER, seal INTEGER NOT NULL
);
CREATE TABLE channel(
  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, next INTEGER NOT NULL, acked INTEGER NOT NULL,
  refused INTEGER NOT NULL, dropped INTEGER NOT NULL, thinned INTEGER NOT NULL, PRIMARY KEY(stream, epoch)
) WITHOUT ROWID;
CREATE TABLE entry(
  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, number INTEGER NOT NULL, schema INTEGER NOT NULL,
  stamp INTEGER NOT NULL, reading_us INTEGER NOT NULL, promise_us INTEGER, row BLOB NOT NULL, seal INTEGER NOT NULL,
  PRIMARY KEY(stream, epoch, number)
) WITHOUT ROWID;
CREATE TABLE state(key TEXT PRIMARY KEY, value BLOB NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE arrived(
  stream TEXT NOT NULL, counter INTEGER NOT NULL, nonce BLOB NOT NULL, position INTEGER NOT NULL,
  upto INTEGER NOT NULL, PRIMARY KEY(stream, counter, nonce)
) WITHOUT ROWID;
CREATE TABLE result(
  id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, key BLOB NOT NULL, schema INTEGER NOT NULL,
  row BLOB NOT NULL, seal INTEGER NOT NULL
);
CREATE INDEX result_by_key ON result(stream, key);
"""

SEALED: dict[str, tuple[int, ...]] = {
    "epoch": (0, 1, 2),
    "stream": (0, 1),
    "schema": (0, 1),
    "stamp": (0, 1, 2, 3),
    "entry": (0, 1, 2, 3, 4, 5, 7),
    "state": (0, 1),
    "result": (1, 2, 3, 4),
}
"""The columns that a row's seal covers, by table: SQLite would not notice a bit that rots inside a value."""
SEAL_AT = {"epoch": 3, "stream": 2, "schema": 2, "stamp": 4, "entry": 8, "state": 2, "result": 5}

VALUE_BYTES_MAX = 64 * 1024 * 1024
"""No value is larger; one that claims to be is damaged, and would otherwise be allocated before it is read."""
BALLAST_BYTES = 256 * 1024

Connect = Callable[[], sqlite3.Connection]


def connect_to(path: Path) -> Connect:
    """A way to open that file; the simulator passes its own, over memory."""

    def connect() -> sqlite3.Connection:
        path.parent.mkdir(parents=True, exist_ok=True)
        finish(path)
        fresh = not path.exists()
        if not fresh:
            _check_header(path)
        connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
        if fresh:
            connection.execute("PRAGMA user_version")  # the file appears only when it is first read
            sync_directory(path.parent)
        return connection

    return connect


def seal(*values: object) -> int:
    """A checksum over the values of a row."""
    return zlib.crc32(_PACKER.encode(values))


def is_sound(table: str, row: Sequence[object]) -> bool:
    """Whether a whole row of that table is as it was written."""
    return row[SEAL_AT[table]] == seal(*[row[column] for column in SEALED[table]])


class Database:
    """One open file, owned by one thread of one process."""

    def __init__(self, connect: Connect, *, disk_bytes_max: int | None = None, ballast: Path | None = None) -> None:
        self.health = Health.WORKING
        self.commits = 0
        """How often something was made durable."""
        self._connection = _opened(connect, disk_bytes_max)
        self._depth = 0
        self._ballast = ballast
        self._take_ballast()

    @property
    def connection(self) -> sqlite3.Connection:
        """For reading; writing belongs into a `transaction`."""
        return self._connection

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, which a further one would join."""
        return self._depth > 0

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, on disk when it ends; one inside another joins it.

        `durable=False` is for what may be done again after a power cut, such as forgetting what was acknowledged: it is
        atomic and in order, but waits for the next durable commit to reach the disk.
        """
        if self._depth:
            self._depth += 1
            try:
                yield self._connection
            finally:
                self._depth -= 1
            return
        self._depth = 1
        try:
            if not durable:
                self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            self._roll_back()
            failure = outbox_error(error)
            self.health = failure.health
            if failure.health is Health.FULL:
                self._give_ballast()
            raise failure from error
        except BaseException:
            self._roll_back()
            raise
        else:
            self.commits += durable
            if self.health is not Health.WORKING:
                self.health = Health.WORKING
                self._take_ballast()
        finally:
            self._depth = 0
            if not durable:
                self._connection.execute("PRAGMA synchronous=FULL")

    def settle(self) -> None:
        """Bring everything into one file, whose log is gone. It is to be closed then."""
        if self._connection.execute("PRAGMA database_list").fetchone()[2]:
            try:
                self._connection.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.DatabaseError as error:
                raise outbox_error(error) from error

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _give_ballast(self) -> None:
        if self._ballast is not None:
            self._ballast.unlink(missing_ok=True)

    def _take_ballast(self) -> None:
        if self._ballast is None or self._ballast.exists():
            return
        try:
            with self._ballast.open("wb") as file:
                file.write(bytes(BALLAST_BYTES))
        except OSError:
            self._ballast.unlink(missing_ok=True)

    def _roll_back(self) -> None:
        # A full disk ends the transaction by itself; then there is nothing left to roll back.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def outbox_error(error: sqlite3.DatabaseError) -> OutboxError:
    """What a failure of SQLite means to us. One that is a mistake of ours, not of the disk, is raised as it is."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
        # Nothing of this size was ever stored: the length itself is damaged.
        return damaged(str(error))
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError | sqlite3.InternalError):
        raise error
    code = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    if code == sqlite3.SQLITE_ERROR:
        raise error
    why = f"SQLite says {error} ({error.sqlite_errorname})"
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return OutboxError(
                "S430",
                "the outbox is in use",
                why=f"another process has it open: {why}",
                fix="stop the other process, or give this one a directory of its own",
                health=Health.READ_ONLY,
            )
        case sqlite3.SQLITE_FULL:
            return OutboxError(
                "S431",
                "the disk under the outbox is full",
                why=why,
                fix="free some space: the outbox carries on by itself, and counts what it cannot take until then",
                health=Health.FULL,
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return OutboxError(
                "S433",
                "the outbox is damaged",
                why=why,
                fix="reopen it: what can be read is kept and sent, the damaged file is set aside",
                health=Health.DAMAGED,
            )
        case _:
            return OutboxError(
                "S432",
                "the outbox cannot be written",
                why=why,
                fix="make its directory writable: the outbox carries on by itself, and counts what it cannot take",
                health=Health.READ_ONLY,
            )


def _opened(connect: Connect, disk_bytes_max: int | None) -> sqlite3.Connection:
    connection: sqlite3.Connection | None = None
    try:
        connection = connect()
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
        # One process owns the file: a second start is refused here, and WAL needs no shared memory.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if not 0 <= found <= FORMATS_MAX:
            raise damaged(f"it says that its format is {found}")
        if found > FORMAT:
            raise OutboxError(
                "S434",
                f"the outbox has format {found}",
                why=f"a later version wrote it, and this one reads formats up to {FORMAT}",
                fix="run that version again, or give this one a directory of its own",
                health=Health.READ_ONLY,
            )
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        if connection.execute("PRAGMA database_list").fetchone()[2]:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")
        (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if problem != "ok":
            raise damaged(problem)
        connection.execute("BEGIN IMMEDIATE")
        if found == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("COMMIT")
        # A bit that rots in a column's name is no damage to SQLite: every statement that names it would fail for ever.
        # It is read as bytes: what rotted may be no text.
        written = {bytes(sql) for (sql,) in connection.execute("SELECT CAST(sql AS BLOB) FROM sqlite_schema") if sql}
        missing = [made for made in map(str.strip, _TABLES.split(";")) if made and made.encode() not in written]
        if missing:
            raise damaged(f"it has no longer what was made as {missing[0]}")
        if disk_bytes_max is not None:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count={max(disk_bytes_max // page_bytes, 1)}")
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            # Nothing of ours is wrong here, so it is what the file says of itself that makes no sense.
            raise damaged(str(error)) from error
        raise outbox_error(error) from error
    except UnicodeDecodeError as error:
        # Even the names of the tables are damaged, and so is SQLite's message about it.
        if connection is not None:
            connection.close()
        raise damaged(str(error)) from error
    except OutboxError:
        if connection is not None:
            connection.close()
        raise
    return connection


def damaged(problem: str) -> OutboxError:
    return OutboxError(
        "S433",
        "the outbox is damaged",
        why=f"its check says: {problem}",
        fix="reopen it: what can be read is kept and sent, the damaged file is set aside",
        health=Health.DAMAGED,
    )


def _check_header(path: Path) -> None:
    """A version number that SQLite does not know makes a file read-only to it; to us it is damage."""
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:] not in (b"", b"\1\1", b"\2\2"):
        raise damaged(f"its header claims the versions {header[18:].hex()}")
