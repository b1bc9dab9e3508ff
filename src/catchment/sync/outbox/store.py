"""The outbox: everything of a device that must survive its next crash.

Elements to send, with numbers that are never given twice; results that came down; the program's state. What one
`transaction` holds of them is stored together or not at all, and is on the disk before it returns.

Promises: nothing is lost without being counted. When the disk is full, read-only or damaged, `health` says so, elements
that cannot be stored are counted and reported upstream once they can be, and nothing raises at a sensor. Knows no
clock, socket or randomness: readings and nonces are given. One thread at a time, one process per outbox.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from catchment.program.sync import Bound
from catchment.program.types import Row, Schema
from catchment.sync.frame import Epoch, Lost, Mark
from catchment.sync.outbox.database import (
    Connect,
    Database,
    Health,
    OutboxError,
    connect_to,
    damaged,
    outbox_error,
    seal,
)
from catchment.sync.outbox.inbox import Result
from catchment.sync.outbox.mending import FileMending, Mending
from catchment.sync.outbox.opened import Opened
from catchment.sync.outbox.queue import Appended
from catchment.sync.outbox.run import Position, Run, Stamp
from catchment.sync.outbox.salvage import Salvage, mend


class Outbox:
    """See the module. Make one with `Outbox.open`."""

    def __init__(
        self,
        path: Path | None,
        connect: Connect,
        fresh_nonce: Callable[[], bytes],
        disk_bytes_max: int | None,
        mending: Mending | None = None,
    ) -> None:
        self._path = path
        self._connect = connect
        self._mending = mending
        self._fresh_nonce = fresh_nonce
        self._disk_bytes_max = disk_bytes_max
        self._bounds: dict[str, Bound] = {}
        self._undo: list[Callable[[], None]] = []
        self._uncounted: dict[str, int] = {}
        self._unforgotten: dict[tuple[str, Epoch], int] = {}
        self._opened: Opened | None = None
        self._health = Health.WORKING
        self.openings = 0
        """How often the file was opened. After a change, positions and the epoch of before mean nothing."""
        self.salvaged: Salvage | None = None
        """What became of a damaged file, if this outbox began with one."""

    @classmethod
    def open(
        cls,
        path: Path | None,
        *,
        fresh_nonce: Callable[[], bytes],
        connect: Connect | None = None,
        mending: Mending | None = None,
        disk_bytes_max: int | None = None,
    ) -> Outbox:
        """Open or make the outbox at that path, and begin a new epoch with a nonce of 8 random bytes.

        A damaged file is set aside and what can be read of it carried over. On a full or read-only disk the outbox
        opens with that `health` and counts; every later append tries again. One that is in use, or of a later format,
        raises.
        """
        if connect is None:
            if path is None:
                raise TypeError("an outbox has a path, or a way to connect")
            connect = connect_to(path)
        mending = mending or (None if path is None else FileMending(path))
        outbox = cls(path, connect, fresh_nonce, disk_bytes_max, mending)
        try:
            outbox._open()
        except OutboxError as failure:
            if failure.code in {"S430", "S434"}:
                raise
            outbox._health = failure.health
        return outbox

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def health(self) -> Health:
        """What it can do at the moment."""
        return self._health if self._opened is None else self._opened.database.health

    @property
    def epoch(self) -> Epoch | None:
        """This start's epoch; None until there is a disk to begin one on."""
        return None if self._opened is None else self._opened.epoch

    @property
    def commits(self) -> int:
        """How often something was made durable since it was opened."""
        return 0 if self._opened is None else self._opened.database.commits

    @property
    def uncounted(self) -> int:
        """Elements given up while the disk took nothing, not even their count: held here until it does."""
        return sum(self._uncounted.values())

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, which what is written now joins."""
        return self._opened is not None and self._opened.database.in_transaction

    # -- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[None]:
        """What is appended, saved and received inside is stored together; raises `OutboxError` if it is not."""
        opened = self._ready()
        database, queue = opened.database, opened.queue
        if database.in_transaction:
            with database.transaction():
                yield
            return
        uncounted = dict(self._uncounted)
        self._undo = [queue.checkpoint()]
        try:
            with database.transaction(durable=durable):
                if durable:
                    for stream, count in uncounted.items():
                        queue.give_up(stream, count)
                    self._uncounted.clear()
                yield
        except BaseException as failure:
            for undo in reversed(self._undo):
                undo()
            self._uncounted = uncounted
            if isinstance(failure, OutboxError):
                self._renew_if_damaged(failure)
            raise

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Should the transaction that is open fail, call this: for whoever keeps in memory what it just stored."""
        self._undo.append(undo)

    def bind(self, stream: str, bound: Bound) -> None:
        """Bound a stream, now and after every reopening. May change at any time."""
        self._bounds[stream] = bound
        if self._opened is not None:
            self._opened.queue.bind(stream, bound)

    def append(
        self, stream: str, schema: Schema, rows: Sequence[Row], *, stamp: Stamp, readings_us: Sequence[int]
    ) -> Appended:
        """Take elements in, in order, each with the reading of the boot clock at which it came to be.

        Inside a transaction a failing disk raises, since the caller's state would be ahead of its outputs. Outside one,
        what the disk does not take is refused and counted.
        """
        if self.in_transaction:
            return self._ready().queue.append(stream, schema, rows, stamp, readings_us)
        try:
            with self.transaction():
                return self._ready().queue.append(stream, schema, rows, stamp, readings_us)
        except OutboxError:
            self._count(stream, len(rows))
            return Appended(0, len(rows))

    def give_up(self, stream: str, count: int, *, thinned: bool = False) -> None:
        """Count elements that were not appended: lost with a transaction that failed, or left out on purpose."""
        if self.in_transaction:
            self._ready().queue.give_up(stream, count, thinned=thinned)
            return
        try:
            with self.transaction():
                self._ready().queue.give_up(stream, count, thinned=thinned)
        except OutboxError:
            self._count(stream, count)

    def promise(self, stream: str, until_us: int, *, stamp: Stamp) -> None:
        """Nothing appended to the stream from now on is older than that, in event time of this stamp's clock.

        Durable with the transaction around it, so that a restart cannot fall behind what was promised.
        """
        with self.transaction():
            self._ready().queue.set_promise(stream, until_us, stamp)

    def save_state(self, key: str, value: bytes) -> None:
        """Keep a value under a key, instead of the one before."""
        with self.transaction():
            self._connection().execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", (key, value, seal(key, value)))

    def acknowledge(self, marks: Sequence[Mark]) -> bool:
        """Forget what is durable at the receiver. Returns whether anything was new."""
        for mark in marks:
            known = (mark.stream, mark.epoch)
            self._unforgotten[known] = max(mark.upto, self._unforgotten.get(known, 0))
        try:
            return self._forget_acknowledged()
        except OutboxError:
            # On a full disk there is ballast now; on any other `retry` is for later.
            return self.health is Health.FULL and self._retry(self._forget_acknowledged)

    def supersede(self, ended: Mark) -> bool:
        """The receiver met a later epoch, so this one is over at the mark: begin another for what is left of it.

        Positions mean nothing after that, as after an opening. Returns whether anything was left.
        """
        with self.transaction():
            moved = self._ready().queue.renumber(ended, self._fresh_nonce())
        self.openings += moved
        return moved

    def retry(self) -> None:
        """Try again what a troubled disk did not take: to forget what was acknowledged, to count what was given up.

        Until it is forgotten, what an earlier start left stands before everything that came later.
        """
        if self._unforgotten:
            self.acknowledge(())
        if self._uncounted:
            self._retry(self._write_counts)

    def receive(
        self, mark: Mark, schema: Schema | None = None, rows: Sequence[Row] = (), *, keys: Sequence[bytes] | None = None
    ) -> None:
        """Keep results that came down, and with them the mark to acknowledge."""
        with self.transaction():
            self._ready().inbox.store(mark, schema, rows, keys)

    def forget_results(self, stream: str, upto: int) -> None:
        """Drop results that the program has dealt with."""
        with self.transaction():
            self._ready().inbox.forget(stream, upto)

    # -- reading -------------------------------------------------------------------------------------------------
    # Where nothing could be opened, there is nothing to read. Damage that a read comes upon raises, and the next use
    # finds the outbox opened anew with what could be salvaged.

    def load_state(self, key: str) -> bytes | None:
        """The value last saved under that key."""
        with self._reading():
            row = self._connection().execute("SELECT value, seal FROM state WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            if row[1] != seal(key, row[0]):
                raise damaged(f"the state {key!r} is not as it was written")
            return bytes(row[0])

    def streams(self) -> list[str]:
        """Streams that ever had an element."""
        return [] if self._opened is None else self._opened.queue.names()

    def size(self, stream: str) -> tuple[int, int]:
        """Elements and bytes that are not yet acknowledged."""
        return (0, 0) if self._opened is None else self._opened.queue.size(stream)

    def lost(self, stream: str) -> Lost:
        """What was given up and may not have been reported yet."""
        with self._reading():
            counted = Lost() if self._opened is None else self._opened.queue.lost(stream)
        return Lost(counted.refused + self._uncounted.get(stream, 0), counted.dropped, counted.thinned)

    def numbered(self) -> list[tuple[str, Epoch, int]]:
        """Of each stream and epoch that is not over, how many numbers its elements were given."""
        with self._reading():
            return [] if self._opened is None else self._opened.queue.numbered()

    def start(self, stream: str) -> Position | None:
        """The first number that is not acknowledged, or None where there is nothing to send."""
        with self._reading():
            return None if self._opened is None else self._opened.queue.start(stream)

    def oldest(self, stream: str, position: Position) -> tuple[Stamp, int] | None:
        """The clock and reading of the first element from there on."""
        with self._reading():
            return None if self._opened is None else self._opened.queue.oldest(stream, position)

    def epoch_of(self, position: Position) -> Epoch:
        """The epoch that a position stands in."""
        return self._ready().register.epochs[position.epoch]

    def run(self, stream: str, position: Position, *, records_max: int = 1000, bytes_max: int = 1 << 20) -> Run | None:
        """What a frame from that position would carry, or None where its epoch ends."""
        with self._reading():
            return None if self._opened is None else self._opened.queue.run(stream, position, records_max, bytes_max)

    def promised(self, stream: str) -> tuple[Stamp, int] | None:
        """The promise that holds once everything appended has gone."""
        return None if self._opened is None else self._opened.queue.promise(stream)

    def marks(self) -> tuple[Mark, ...]:
        """How far each downlink stream is durable here."""
        with self._reading():
            return () if self._opened is None else self._opened.inbox.marks()

    def results(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Result]:
        """Results that came down, with ids above `after`."""
        with self._reading():
            return [] if self._opened is None else self._opened.inbox.results(stream, after, limit)

    def close(self) -> None:
        """Let go of the file. Nothing waits to be written."""
        if self._opened is not None:
            self._opened.database.close()
        self._opened = None

    # -- how -----------------------------------------------------------------------------------------------------

    def _count(self, stream: str, count: int) -> None:
        """Hold a count until the disk takes it, which on a full one may be at once: there is ballast now."""
        self._uncounted[stream] = self._uncounted.get(stream, 0) + count
        if self.health is Health.FULL:
            self._retry(self._write_counts)

    def _write_counts(self) -> bool:
        with self.transaction():
            return True

    def _forget_acknowledged(self) -> bool:
        with self.transaction(durable=False):
            queue = self._ready().queue
            marks = [Mark(stream, epoch, upto) for (stream, epoch), upto in self._unforgotten.items()]
            news = [queue.acknowledge(mark) for mark in marks]
        self._unforgotten.clear()
        return any(news)

    def _retry(self, action: Callable[[], bool]) -> bool:
        with suppress(OutboxError):
            return action()
        return False

    def _connection(self) -> sqlite3.Connection:
        return self._ready().database.connection

    def _ready(self) -> Opened:
        if self._opened is None:
            self._open()
        assert self._opened is not None
        return self._opened

    def _open(self) -> None:
        if self._health is Health.DAMAGED:
            self._replace_damaged()
            return
        try:
            self._begin(self._database_at_path())
        except OutboxError as failure:
            self._health = failure.health
            if failure.health is not Health.DAMAGED:
                raise
            self._replace_damaged()

    def _replace_damaged(self) -> None:
        """Put a new one with what can be read of it in the place of the damaged one."""
        if self._mending is None:
            raise damaged("and it has no place to be set aside at")
        self.salvaged = mend(self._mending)
        self._begin(self._database_at_path())

    def _database_at_path(self) -> Database:
        ballast = None if self._path is None else self._path.with_name(self._path.name + ".ballast")
        return Database(self._connect, disk_bytes_max=self._disk_bytes_max, ballast=ballast)

    def _begin(self, database: Database) -> None:
        opened = Opened.begin(database, self._fresh_nonce())
        for stream, bound in self._bounds.items():
            opened.queue.bind(stream, bound)
        self._opened = opened
        self._health = Health.WORKING
        self.openings += 1

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OutboxError) as error:
            failure = error if isinstance(error, OutboxError) else outbox_error(error)
            if not self.in_transaction:
                self._renew_if_damaged(failure)
            raise failure from error

    def _renew_if_damaged(self, failure: OutboxError) -> None:
        """Open a new file with what can be read of the damaged one; if that fails too, the next use tries again."""
        if failure.health is not Health.DAMAGED:
            return
        self.close()
        self._health = Health.DAMAGED
        with suppress(OutboxError):
            self._open()
