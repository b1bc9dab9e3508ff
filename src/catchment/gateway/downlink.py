"""The downlink: results on their way to devices, with the guarantee that uploads have.

A sink in another process appends, once per (program, query, generation, epoch, log range): a replay changes nothing, a
fenced-off sink is refused. Each (target, stream) numbers its results; a device is given what lies behind its mark until
it acknowledges, in order, with the numbers that `keep=LATEST` has overtaken named as gaps. A target is a device, or a
user and so each of the user's devices. Knows SQLite; must not know sockets, Spark or what a payload means.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec

from catchment.errors import PeerError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS store(nonce BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS ledger(
    program TEXT NOT NULL, query TEXT NOT NULL, generation INTEGER NOT NULL, epoch INTEGER NOT NULL,
    range TEXT NOT NULL, PRIMARY KEY(program, query)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter(
    target TEXT NOT NULL, stream TEXT NOT NULL, next INTEGER NOT NULL, keep TEXT NOT NULL,
    PRIMARY KEY(target, stream)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS result(
    id INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, stream TEXT NOT NULL, first INTEGER NOT NULL,
    count INTEGER NOT NULL, key BLOB NOT NULL, schema BLOB NOT NULL, codec TEXT NOT NULL, payload BLOB NOT NULL,
    written_us INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS result_number ON result(target, stream, first);
CREATE INDEX IF NOT EXISTS result_key ON result(target, stream, key);
CREATE TABLE IF NOT EXISTS acked(
    device TEXT NOT NULL, target TEXT NOT NULL, stream TEXT NOT NULL, upto INTEGER NOT NULL,
    PRIMARY KEY(device, target, stream)
) STRICT, WITHOUT ROWID;
"""


class Keep(Enum):
    """What is kept for a device that is away."""

    ALL = "all"
    """Every result, until it is acknowledged."""
    LATEST = "latest"
    """The newest result of each key, for good."""


class Mark(NamedTuple):
    """What a sink's append stands for; a replay carries the same."""

    program: str
    query: str
    generation: int
    epoch: int
    range: str


class Result(msgspec.Struct, frozen=True):
    """Rows for a target, encoded: `target` is `to_device(…)` or `to_user(…)`."""

    target: str
    stream: str
    schema: bytes
    codec: str
    payload: bytes
    count: int = 1
    key: bytes = b""


class Outgoing(msgspec.Struct, frozen=True):
    """A result with its numbers: rows are numbered from `first`; of the numbers before, `skipped` never come."""

    stream: str
    epoch_nonce: bytes
    skipped: int
    first: int
    count: int
    schema: bytes
    codec: str
    payload: bytes

    @property
    def upto(self) -> int:
        """The number after its last."""
        return self.first + self.count


def to_device(device: str) -> str:
    """The target that is one device."""
    return f"device:{device}"


def to_user(user: str) -> str:
    """The target that is every device of a user."""
    return f"user:{user}"


class Downlink:
    """The store. Every process that uses it opens its own."""

    def __init__(self, path: Path | str, *, nonce: bytes, durable: bool = True) -> None:
        """`nonce` names the store when it is made; `durable=False` may forget acknowledgements in a power cut."""
        self._lock = threading.RLock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        with self._write():
            for statement in filter(str.strip, _SCHEMA.split(";\n")):
                self._database.execute(statement)
            if self._database.execute("SELECT 1 FROM store").fetchone() is None:
                self._database.execute("INSERT INTO store VALUES(?)", (nonce,))
        (self._nonce,) = self._database.execute("SELECT nonce FROM store").fetchone()
        self._seen = 0

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._database.close()

    def append(self, mark: Mark, results: Iterable[Result], *, keep: Keep, now_us: int) -> bool:
        """Store what an epoch of a sink produced, all or nothing; False if that is already there."""
        with self._write():
            row = self._database.execute(
                "SELECT generation, epoch, range FROM ledger WHERE program=? AND query=?", (mark.program, mark.query)
            ).fetchone()
            if row is not None:
                generation, epoch, known_range = row
                if mark.generation < generation:
                    raise PeerError(
                        "G530",
                        f"generation {mark.generation} of {mark.program}/{mark.query} may not write any more",
                        why=f"generation {generation} has taken over",
                        fix="stop this query: the one that took over goes on from the committed range",
                    )
                if mark.epoch == epoch and mark.range != known_range:
                    raise PeerError(
                        "G531",
                        f"epoch {mark.epoch} of {mark.program}/{mark.query} was written from another range of the log",
                        why=f"it was {known_range} and is {mark.range} now",
                        fix="replay the recorded range, or start the query under a new name",
                    )
                if mark.epoch <= epoch:
                    self._enter(mark._replace(epoch=epoch, range=known_range))
                    return False
            for result in results:
                self._insert(result, keep, now_us)
            self._enter(mark)
            return True

    def fence(self, program: str, generation: int) -> None:
        """Take nothing more from earlier generations of a program."""
        with self._write():
            self._database.execute(
                "UPDATE ledger SET generation=max(generation, ?2) WHERE program=?1", (program, generation)
            )

    def pending(
        self, device: str, user: str, have: Mapping[tuple[str, bytes], int], *, bytes_max: int
    ) -> list[Outgoing]:
        """What the device lacks, in order, up to about that many bytes: behind `have`, or behind what it acknowledged.

        `have` is keyed by stream and epoch nonce, as the device names what it holds.
        """
        found: list[Outgoing] = []
        taken = 0
        with self._lock:
            for target in (to_device(device), to_user(user)):
                nonce = self._epoch(target)
                streams = self._database.execute(
                    "SELECT counter.stream, counter.next, acked.upto FROM counter LEFT JOIN acked "
                    "ON acked.target = counter.target AND acked.stream = counter.stream AND acked.device = ? "
                    "WHERE counter.target = ?",
                    (device, target),
                ).fetchall()
                for stream, after_last, acked in streams:
                    at = have.get((stream, nonce), acked or 0)
                    if at >= after_last:
                        continue
                    for first, count, schema, codec, payload in self._database.execute(
                        "SELECT first, count, schema, codec, payload FROM result "
                        "WHERE target=? AND stream=? AND first+count > ? ORDER BY first",
                        (target, stream, at),
                    ):
                        if found and taken + len(payload) > bytes_max:
                            return found
                        taken += len(payload)
                        found.append(Outgoing(stream, nonce, max(0, first - at), first, count, schema, codec, payload))
                        at = first + count
        return found

    def acknowledge(self, acknowledged: Iterable[tuple[str, str, str, bytes, int]]) -> None:
        """Devices hold these: (device, user, stream, epoch nonce, every number below)."""
        with self._write():
            for device, user, stream, nonce, upto in acknowledged:
                for target in (to_device(device), to_user(user)):
                    # The nonce says which of the two targets the stream's numbers are of; any other is not ours.
                    if self._epoch(target) == nonce:
                        self._database.execute(
                            "INSERT INTO acked VALUES(?1,?2,?3,?4) ON CONFLICT DO UPDATE SET upto=max(upto, ?4)",
                            (device, target, stream, upto),
                        )

    def fresh(self) -> list[str]:
        """Targets that have had new results since this was last asked, by this object."""
        with self._lock:
            rows = self._database.execute(
                "SELECT max(id), target FROM result WHERE id > ? GROUP BY target", (self._seen,)
            )
            fresh = [(top, target) for top, target in rows if top is not None]
            self._seen = max([self._seen, *(top for top, _ in fresh)])
        return [target for _, target in fresh]

    def written_after(self, seen: int, *, limit: int = 2000) -> list[tuple[int, str, str, bytes, str, bytes, int]]:
        """Results with a higher id, in the order in which they were written, for whoever shows them: (id, target,
        stream, schema, codec, payload, written_us). Those that every device holds may be gone already."""
        with self._lock:
            return self._database.execute(
                "SELECT id, target, stream, schema, codec, payload, written_us FROM result WHERE id > ? "
                "ORDER BY id LIMIT ?",
                (seen, limit),
            ).fetchall()

    def trim(self, devices_of: Callable[[str], Iterable[str]], *, before_us: int) -> tuple[int, int]:
        """Delete results of `keep=ALL` that every device of their target holds, and those written before an instant.

        `devices_of` names the devices of a target. Returns how many were held by all, and how many just grew too old.
        """
        held = 0
        with self._write():
            counters = self._database.execute("SELECT target, stream FROM counter WHERE keep=?", (Keep.ALL.value,))
            for target, stream in counters.fetchall():
                uptos = dict(
                    self._database.execute(
                        "SELECT device, upto FROM acked WHERE target=? AND stream=?", (target, stream)
                    )
                )
                upto = min([uptos.get(device, 0) for device in devices_of(target)], default=0)
                held += self._database.execute(
                    "DELETE FROM result WHERE target=? AND stream=? AND first+count <= ?", (target, stream, upto)
                ).rowcount
            old = self._database.execute(
                "DELETE FROM result WHERE written_us < ?1 AND EXISTS (SELECT 1 FROM counter WHERE keep=?2 "
                "AND counter.target = result.target AND counter.stream = result.stream)",
                (before_us, Keep.ALL.value),
            ).rowcount
        return held, old

    def forget(self, target: str) -> None:
        """Delete everything of a target: its results, numbers and acknowledgements. Its bytes are overwritten."""
        kind, _, device = target.partition(":")
        with self._lock:
            self._database.execute("PRAGMA secure_delete=ON")
            with self._write():
                for table in ("result", "counter", "acked"):
                    self._database.execute(f"DELETE FROM {table} WHERE target=?", (target,))
                if kind == "device":
                    self._database.execute("DELETE FROM acked WHERE device=?", (device,))
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def size(self) -> tuple[int, int]:
        """Results that wait, and the bytes of their payloads."""
        with self._lock:
            row = self._database.execute("SELECT count(*), coalesce(sum(length(payload)), 0) FROM result").fetchone()
        return row[0], row[1]

    def _insert(self, result: Result, keep: Keep, now_us: int) -> None:
        target, stream = result.target, result.stream
        row = self._database.execute(
            "SELECT next FROM counter WHERE target=? AND stream=?", (target, stream)
        ).fetchone()
        first = 0 if row is None else row[0]
        self._database.execute(
            "INSERT INTO counter VALUES(?1,?2,?3,?4) ON CONFLICT DO UPDATE SET next=?3, keep=?4",
            (target, stream, first + result.count, keep.value),
        )
        if keep is Keep.LATEST:
            self._database.execute(
                "DELETE FROM result WHERE target=? AND stream=? AND key=?", (target, stream, result.key)
            )
        self._database.execute(
            "INSERT INTO result(target,stream,first,count,key,schema,codec,payload,written_us) "
            "VALUES(?,?,?,?,?,?,?,?,?)",
            (target, stream, first, result.count, result.key, result.schema, result.codec, result.payload, now_us),
        )

    def _enter(self, mark: Mark) -> None:
        self._database.execute(
            "INSERT INTO ledger VALUES(?1,?2,?3,?4,?5) "
            "ON CONFLICT DO UPDATE SET generation=max(generation, ?3), epoch=?4, range=?5",
            mark,
        )

    def _epoch(self, target: str) -> bytes:
        """The nonce of a target's numbers: another owner's numbers are another epoch."""
        return hashlib.blake2b(target.encode(), digest_size=8, key=self._nonce).digest()

    @contextmanager
    def _write(self) -> Iterator[None]:
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield
