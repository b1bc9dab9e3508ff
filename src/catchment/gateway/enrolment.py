"""Enrolment: which devices there are, whose they are, and what proves it.

An operator makes a one-time token for a user; a device turns it into a credential of its own. Only hashes are kept, so
a stolen store opens nothing. Nothing is lost to a lost answer: a token may be used again until the credential it gave
has been used, and after a rotation the old credential works until the new one has been used. A revoked device is
refused at its next word. Knows SQLite; time and randomness are arguments. Gateways and the command line share it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from catchment.errors import PeerError

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.@:-]{0,119}$")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS token(
    hash BLOB PRIMARY KEY, user TEXT NOT NULL, program TEXT NOT NULL, device TEXT, kind TEXT NOT NULL,
    expires_us INTEGER NOT NULL, used_by TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS device(
    device TEXT PRIMARY KEY, user TEXT NOT NULL, program TEXT NOT NULL, kind TEXT NOT NULL,
    credential BLOB NOT NULL, previous BLOB, used INTEGER NOT NULL DEFAULT 0,
    enrolled_us INTEGER NOT NULL, revoked_us INTEGER, quarantined_us INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS device_user ON device(user);
"""


class Enrolled(msgspec.Struct, frozen=True):
    """A device as the gateway knows it."""

    device: str
    user: str
    program: str
    kind: str
    enrolled_us: int
    revoked_us: int | None = None
    quarantined_us: int | None = None
    """Since when two live copies of it are known, and neither is let in."""


class Given(msgspec.Struct, frozen=True):
    """What a device gets for its token: its name and the secret that proves it from now on."""

    device: str
    user: str
    program: str
    credential: str


class Enrolment:
    """The store."""

    def __init__(self, path: Path | str, *, secret: Callable[[], str]) -> None:
        self._path = path
        self._secret = secret
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.executescript(_SCHEMA)
        self._known: dict[str, tuple[Enrolled, bytes, bytes | None, bool]] = {}
        self._version = -1
        self._used: dict[str, bytes] = {}

    def close(self) -> None:
        """Close the store."""
        self.write_down()
        self._database.close()

    def token(
        self, *, user: str, program: str = "", device: str | None = None, kind: str = "", now_us: int, valid_us: int
    ) -> str:
        """A new one-time token: for this user, for `device` if named, valid so long."""
        for name in (user, *([device] if device is not None else [])):
            _check_name(name)
        token = self._secret()
        with self._lock:
            self._database.execute(
                "INSERT INTO token VALUES(?,?,?,?,?,?,NULL)",
                (_hash(token), user, program, device, kind, now_us + valid_us),
            )
        return token

    def enrol(self, token: str, *, device: str, kind: str = "", now_us: int) -> Given:
        """Turn a token into a credential for `device` (the token's own name for it wins; it is given one if it has
        none)."""
        self.write_down()
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            row = self._database.execute(
                "SELECT user, program, device, kind, expires_us, used_by FROM token WHERE hash=?", (_hash(token),)
            ).fetchone()
            if row is None or now_us > row[4]:
                raise PeerError(
                    "G520",
                    "this enrolment token is not valid",
                    why="no such token was given out" if row is None else "it has expired",
                    fix="ask for a new one: catchment gateway token --user NAME",
                )
            user, program, named, token_kind, _, used_by = row
            # Of the token: shown again, because the answer was lost, it gives the same.
            name = named or device or f"{user}-{_hash(token).hex()[:6]}"
            _check_name(name)
            there = self._database.execute(
                "SELECT user, used, revoked_us FROM device WHERE device=?", (name,)
            ).fetchone()
            if used_by is not None and (used_by != name or there is None or there[1]):
                raise PeerError(
                    "G521",
                    "this enrolment token was used",
                    why=f"it enrolled {used_by}, which has used its credential since",
                    fix="use that device's credential, or ask for a new token: catchment gateway token --user NAME",
                )
            if used_by is None and there is not None and there[0] != user and there[2] is None:
                raise PeerError(
                    "G522",
                    f"the name {name} is taken",
                    why="a device of another user is enrolled under it",
                    fix="choose another name, or revoke that device first: catchment gateway revoke NAME",
                )
            credential = self._secret()
            self._database.execute(
                "INSERT OR REPLACE INTO device VALUES(?,?,?,?,?,NULL,0,?,NULL,NULL)",
                (name, user, program, token_kind or kind, _hash(credential), now_us),
            )
            self._database.execute("UPDATE token SET used_by=? WHERE hash=?", (name, _hash(token)))
            self._version = -1
        return Given(name, user, program, credential)

    def prove(self, device: str, credential: str) -> Enrolled:
        """The device, if the credential is its own; refused otherwise."""
        with self._lock:
            known = self._look_up(device)
            offered = _hash(credential)
            if known is not None:
                enrolled, current, previous, used = known
                is_current = hmac.compare_digest(offered, current)
                if is_current or (previous is not None and hmac.compare_digest(offered, previous)):
                    if enrolled.revoked_us is not None:
                        raise _revoked(device)
                    if is_current and (not used or previous is not None):
                        # Written down soon, with those of others: a sync for each would stop everybody's uploads.
                        self._used[device] = current
                        self._known[device] = (enrolled, current, None, True)
                    return enrolled
        # One answer for an unknown device and a wrong secret: names are not to be probed for.
        raise PeerError(
            "G523",
            f"the device {device} did not prove itself",
            why="no device of that name is enrolled here with that credential",
            fix="enrol it with a token: catchment gateway token --user NAME",
        )

    def check(self, device: str) -> None:
        """Refused if the device, which proved itself before, was revoked since, as far as `refresh` has looked."""
        known = self._known.get(device)
        if known is None:
            with self._lock:
                known = self._look_up(device)
        if known is None or known[0].revoked_us is not None:
            raise _revoked(device)

    def write_down(self) -> None:
        """Write down whose credentials were used since the last time: old credentials and tokens end with that."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            # A connection of its own, so that nobody who has to prove itself waits for this sync.
            with (
                contextlib.closing(sqlite3.connect(self._path, isolation_level=None, timeout=10)) as database,
                database,
            ):
                database.execute("BEGIN IMMEDIATE")
                database.executemany(
                    "UPDATE device SET used=1, previous=NULL WHERE device=? AND credential=?", used.items()
                )

    def rotate(self, device: str, credential: str) -> str:
        """A new credential; the old one works until the new one is used."""
        self.prove(device, credential)
        self.write_down()
        new = self._secret()
        with self._lock:
            # Proved with the current one, or with the one before it after a lost answer: either stays good until then.
            self._database.execute(
                "UPDATE device SET previous=?, credential=?, used=1 WHERE device=? AND revoked_us IS NULL",
                (_hash(credential), _hash(new), device),
            )
            self._known.pop(device, None)
        return new

    def revoke(self, device: str, *, now_us: int) -> bool:
        """Refuse the device from now on; whether there was one to refuse."""
        with self._lock:
            done = self._database.execute(
                "UPDATE device SET revoked_us=? WHERE device=? AND revoked_us IS NULL", (now_us, device)
            )
            self._known.pop(device, None)
            return done.rowcount > 0

    def forget(self, device: str) -> bool:
        """Delete a device, its credential and its tokens; whether there was one. Its bytes are overwritten."""
        with self._lock:
            self._database.execute("PRAGMA secure_delete=ON")
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute("DELETE FROM token WHERE device=?1 OR used_by=?1", (device,))
                done = self._database.execute("DELETE FROM device WHERE device=?", (device,)).rowcount
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._known.pop(device, None)
            self._used.pop(device, None)
            return done > 0

    def quarantine(self, device: str, *, now_us: int | None) -> bool:
        """Remember that two live copies of the device are known; with None, that somebody has seen to it."""
        with self._lock:
            done = self._database.execute("UPDATE device SET quarantined_us=? WHERE device=?", (now_us, device))
            self._known.pop(device, None)
            return done.rowcount > 0

    def devices(self, user: str | None = None) -> list[Enrolled]:
        """Every device, revoked ones too, by name; of one user if named."""
        with self._lock:
            rows = self._database.execute(
                "SELECT device, user, program, kind, enrolled_us, revoked_us, quarantined_us FROM device "
                "WHERE ?1 IS NULL OR user=?1 ORDER BY device",
                (user,),
            )
            return [Enrolled(*row) for row in rows]

    def find(self, device: str) -> Enrolled | None:
        """The device of that name."""
        with self._lock:
            known = self._look_up(device)
        return None if known is None else known[0]

    def refresh(self) -> None:
        """Look whether another process changed the store: one may revoke a device."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        (version,) = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._known.clear()
            self._version = version

    def _look_up(self, device: str) -> tuple[Enrolled, bytes, bytes | None, bool] | None:
        self._refresh()
        known = self._known.get(device)
        if known is None:
            row = self._database.execute(
                "SELECT device, user, program, kind, enrolled_us, revoked_us, quarantined_us, "
                "credential, previous, used "
                "FROM device WHERE device=?",
                (device,),
            ).fetchone()
            if row is None:
                return None
            seen = self._used.get(device) == row[7]
            known = (Enrolled(*row[:7]), row[7], None if seen else row[8], seen or bool(row[9]))
            self._known[device] = known
        return known


def _hash(secret: str) -> bytes:
    # Secrets are 256 random bits, so a plain hash cannot be searched; a slow one would only slow honest devices.
    return hashlib.sha256(secret.encode()).digest()


def _revoked(device: str) -> PeerError:
    return PeerError(
        "G524",
        f"the device {device} is revoked",
        why="an operator took its credential away",
        fix="enrol it again with a new token: catchment gateway token --user NAME",
    )


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise PeerError(
            "G525",
            f"{name!r} cannot be a name of a device or user",
            why="names are 1 to 120 letters, digits or any of _ . @ : -, and begin with a letter or digit",
            fix="choose such a name",
        )
