"""The disk below an outbox: SQLite itself, in memory, on a disk that can lose, lie, fill up and fail.

SQLite is trusted with what it promises: a transaction is there whole or not at all, and once `COMMIT` returns under
`synchronous=FULL` it stays. So the states that a crash can leave are exactly those after each commit, from the last
durable one on, and a state is the database's bytes. What is *not* taken on trust is that the outbox asks for
that promise: each commit counts as durable only if the pragma said FULL when it was made.

Beyond the contract there are lying disks (durable commits go missing), restored backups (an old state comes back),
failures at a commit (after which a crash may bring the transaction back all the same: its bytes were in the WAL), full
and read-only disks (SQLite's own errors, by its own limits) and rot.
"""

from __future__ import annotations

import random
import sqlite3
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from catchment.sim.clock import Clock, Killed
from catchment.sim.process import Process
from catchment.sync.outbox import Damaged

STATES_KEPT = 12
"""So many states stay to go back to: a lying disk loses its last writes, and a backup is older than that."""


class State(NamedTuple):
    """The database after a commit."""

    image: bytes
    durable: bool
    made_us: int


class DatabaseDisk:
    """What lies on one device's flash. Switches stay as they are set."""

    def __init__(self, luck: random.Random, clock: Clock) -> None:
        self._luck = luck
        self._clock = clock
        self._states: deque[State] = deque(maxlen=STATES_KEPT)
        self._revenant: bytes | None = None
        """A transaction that failed at its commit and may be back after a crash."""
        self.commits = 0
        self.fails_at_commit = False
        """Every commit fails, with an error of the medium."""
        self._open: _Connection | None = None
        self._full = self._read_only = False

    # -- for the outbox --------------------------------------------------------------------------------------------

    def connect(self, process: Process) -> sqlite3.Connection:
        """Open it, as one life of a process."""
        process.act()
        connection = sqlite3.connect(":memory:", isolation_level=None, factory=_Connection)
        connection.attach(self, process)
        if self._states:
            connection.deserialize(self._states[-1].image)
        self._open = connection
        try:
            self._apply_switches()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            # Damaged beyond opening.
            connection.close()
            raise
        return connection

    def another(self) -> DatabaseDisk:
        """An empty one on the same flash, which is as full, or as broken, as this one."""
        other = DatabaseDisk(self._luck, self._clock)
        other._full, other._read_only, other.fails_at_commit = self._full, self._read_only, self.fails_at_commit
        return other

    # -- what may happen to it -------------------------------------------------------------------------------------

    def process_killed(self) -> None:
        """Whatever was committed is in the kernel's hands, and stays."""
        self._leave()
        self._maybe_bring_back()

    def power_cut(self) -> int:
        """Lose commits that were not durable, as far as luck has it. Returns how many went."""
        self._leave()
        self._maybe_bring_back()
        durable = max((i for i, state in enumerate(self._states) if state.durable), default=len(self._states) - 1)
        return self._lose(len(self._states) - 1 - self._luck.randint(durable, max(durable, len(self._states) - 1)))

    def lie(self, commits: int) -> int:
        """Lose the last commits although they were durable. Returns how many went."""
        self._leave()
        return self._lose(min(commits, len(self._states) - 1))

    def backup(self) -> bytes | None:
        """A copy of it as it is after the last commit."""
        return self._states[-1].image if self._states else None

    def restore(self, image: bytes) -> None:
        """Put a copy in its place."""
        self._leave()
        self._states.clear()
        self._revenant = None
        self._keep(image, durable=True)

    def rot(self, bits: int) -> bool:
        """Turn some bits of the database as it lies on the flash."""
        if not self._states:
            return False
        state = self._states.pop()
        image = bytearray(state.image)
        for _ in range(bits):
            image[self._luck.randrange(len(image))] ^= 1 << self._luck.randrange(8)
        self._keep(bytes(image), durable=True)
        return True

    def wipe(self) -> None:
        """Begin with nothing: a factory reset."""
        self._leave()
        self._states.clear()
        self._revenant = None

    def set_full(self, full: bool) -> None:
        """No page more than there are now; or as many as it takes."""
        self._full = full
        self._switch()

    def set_read_only(self, read_only: bool) -> None:
        """Nothing can be written."""
        self._read_only = read_only
        self._switch()

    @property
    def image(self) -> bytes | None:
        """The state after the last commit."""
        return self._states[-1].image if self._states else None

    @property
    def made_us(self) -> int:
        """When that state came to be: whatever was committed before is in it."""
        return self._states[-1].made_us if self._states else 0

    @property
    def has_revenant(self) -> bool:
        """Whether a transaction that failed may be there after a crash all the same."""
        return self._revenant is not None

    # -- how -------------------------------------------------------------------------------------------------------

    def closed(self, connection: _Connection) -> None:
        """Its process let go of it."""
        if self._open is connection:
            self._open = None

    def committed(self, connection: sqlite3.Connection, durable: bool) -> None:
        """A commit has gone through."""
        self.commits += 1
        self._revenant = None
        self._keep(connection.serialize(), durable=durable)

    def failed_at_commit(self, image: bytes) -> None:
        """A commit has failed after its bytes were written."""
        self._revenant = image

    def last(self) -> bytes:
        """The bytes to go back to when a commit fails."""
        return self._states[-1].image

    def has_state(self) -> bool:
        """Whether anything was ever committed."""
        return bool(self._states)

    def _keep(self, image: bytes, *, durable: bool) -> None:
        self._states.append(State(image, durable, self._clock.now_us))

    def _switch(self) -> None:
        """For what is open now, as far as it can be read."""
        with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
            self._apply_switches()

    def _apply_switches(self) -> None:
        connection = self._open
        if connection is None:
            return
        run = connection.quietly
        run(f"PRAGMA query_only={'ON' if self._read_only else 'OFF'}")
        (pages,) = run("PRAGMA page_count").fetchone()
        run(f"PRAGMA max_page_count={pages if self._full else 1 << 30}")

    def _leave(self) -> None:
        if self._open is not None:
            self._open.let_go()
            self._open = None

    def _maybe_bring_back(self) -> None:
        if self._revenant is not None and self._luck.random() < 0.5:
            self._keep(self._revenant, durable=False)
        self._revenant = None

    def _lose(self, commits: int) -> int:
        for _ in range(commits):
            self._states.pop()
        return commits


_READS = ("SELECT", "PRAGMA", "EXPLAIN")


class _Connection(sqlite3.Connection):
    """A connection whose process may end, and whose disk may fail, at every statement that writes."""

    _disk: DatabaseDisk | None
    _process: Process
    _full_sync: bool

    def attach(self, disk: DatabaseDisk, process: Process) -> None:
        self._disk, self._process, self._full_sync = disk, process, True

    def let_go(self) -> None:
        """Its process is gone, or about to be: what it still does changes nothing."""
        self._disk = None

    def quietly(self, statement: str) -> sqlite3.Cursor:
        """Run something that is not the process's doing."""
        return super().execute(statement)

    def close(self) -> None:
        if self._disk is not None:
            self._disk.closed(self)
        super().close()

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if not self._process.alive:
            raise Killed(self._process.name)
        if statement.startswith("PRAGMA synchronous"):
            self._full_sync = statement.endswith("FULL")
        if statement.startswith("PRAGMA journal_mode"):
            # A journal is how SQLite keeps its promise on a file, and over memory it cannot be opened again.
            return super().execute("SELECT 'memory'")
        if not statement.startswith(_READS):
            self._process.act()
            if statement == "COMMIT":
                return self._commit()
            cursor = super().execute(statement, *values)
            if not self.in_transaction and self._disk is not None and statement != "ROLLBACK":
                self._disk.committed(self, self._full_sync)
            return cursor
        return super().execute(statement, *values)

    def executemany(self, statement: str, values: Iterable[Any], /) -> sqlite3.Cursor:
        self._process.act()
        return super().executemany(statement, values)

    def _commit(self) -> sqlite3.Cursor:
        disk = self._disk
        assert disk is not None
        if disk.fails_at_commit:
            # The transaction's bytes are in the WAL, the sync after them failed: it does not count, and it is not gone.
            if disk.has_state():
                disk.failed_at_commit(self.serialize())
            super().execute("ROLLBACK")
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        cursor = super().execute("COMMIT")
        disk.committed(self, self._full_sync)
        # Between the commit and its hearing of it, it may end too.
        self._process.act()
        return cursor


class DiskMending:
    """A damaged database replaced by another, which lies beside it until it is whole."""

    def __init__(self, disk: DatabaseDisk, process: Process) -> None:
        self._disk = disk
        self._process = process
        self._beside = disk.another()

    def damaged(self) -> Damaged:
        """What is there."""
        self._process.act()
        source = sqlite3.connect(":memory:", isolation_level=None)
        if self._disk.image:
            source.deserialize(self._disk.image)
        return Damaged("damaged", source)

    def beside(self) -> sqlite3.Connection:
        """An empty one on the same flash."""
        self._beside = self._disk.another()
        return self._beside.connect(self._process)

    def swap(self) -> None:
        """The one beside takes its place."""
        self._process.act()
        self._disk.restore(self._beside.image or b"")
        # A process may end between the change and hearing of it.
        self._process.act()
