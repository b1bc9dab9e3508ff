"""Accounts: who may look at the page, and what they see: their own report, or as an operator the fleet.

    accounts.db    names, roles and passwords hashed with scrypt; sessions by the hash of their secret

A password is given once and kept by nobody here. An unknown name takes as long to refuse as a wrong password. Knows
SQLite; time and randomness are arguments. The gateway and the command line share the store.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from catchment.errors import PeerError

USER, OPERATOR = "user", "operator"
SESSION_US = 12 * 3_600_000_000
PASSWORD_MIN = 10
_COST = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 64 << 20}
"""16 MB and about 50 ms for each guess."""
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.@:-]{0,119}$")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS account(
    name TEXT PRIMARY KEY, role TEXT NOT NULL, salt BLOB NOT NULL, password BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS session(
    secret BLOB PRIMARY KEY, name TEXT NOT NULL, until_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


class Account(NamedTuple):
    """Who looks, and as what."""

    name: str
    role: str

    @property
    def is_operator(self) -> bool:
        """Whether they see the fleet."""
        return self.role == OPERATOR


class Accounts:
    """The store."""

    def __init__(self, path: Path | str, *, secret: Callable[[], str], salt: Callable[[], bytes]) -> None:
        self._secret, self._salt = secret, salt
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.executescript(_SCHEMA)
        self._nobody = salt()

    def close(self) -> None:
        """Close the store."""
        self._database.close()

    def give(self, name: str, *, operator: bool = False, password: str | None = None) -> str:
        """Make the account, or give it a new password, which ends its sessions. Returns the password."""
        if not _NAME.match(name):
            raise PeerError(
                "G600",
                f"{name!r} cannot be the name of an account",
                why="names are 1 to 120 letters, digits or any of _ . @ : -, and begin with a letter or digit",
                fix="choose such a name; a user's account has the user's name",
            )
        if password is not None and len(password) < PASSWORD_MIN:
            raise PeerError(
                "G601",
                "this password is too short",
                why=f"it has {len(password)} characters, and {PASSWORD_MIN} are the least",
                fix="choose a longer one, or have one made",
            )
        given = password or self._secret()
        salt = self._salt()
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("DELETE FROM session WHERE name=?", (name,))
            self._database.execute(
                "INSERT OR REPLACE INTO account VALUES(?,?,?,?)",
                (name, OPERATOR if operator else USER, salt, _hash(given, salt)),
            )
        return given

    def remove(self, name: str) -> bool:
        """Forget the account and its sessions; whether there was one."""
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("DELETE FROM session WHERE name=?", (name,))
            return self._database.execute("DELETE FROM account WHERE name=?", (name,)).rowcount > 0

    def prove(self, name: str, password: str) -> Account | None:
        """The account, if the password is its own. Takes a while, on purpose: call it in a thread."""
        with self._lock:
            row = self._database.execute("SELECT role, salt, password FROM account WHERE name=?", (name,)).fetchone()
        role, salt, known = row or (USER, self._nobody, b"")
        is_right = hmac.compare_digest(_hash(password, salt), known)
        return Account(name, role) if row is not None and is_right else None

    def begin(self, account: Account, *, now_us: int) -> str:
        """A new session; the secret that proves it."""
        secret = self._secret()
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("DELETE FROM session WHERE until_us < ?", (now_us,))
            self._database.execute(
                "INSERT INTO session VALUES(?,?,?)", (_digest(secret), account.name, now_us + SESSION_US)
            )
        return secret

    def session(self, secret: str, *, now_us: int) -> Account | None:
        """Whose session that is, while it lasts."""
        with self._lock:
            row = self._database.execute(
                "SELECT account.name, role FROM session JOIN account ON account.name = session.name "
                "WHERE secret=? AND until_us >= ?",
                (_digest(secret), now_us),
            ).fetchone()
        return None if row is None else Account(*row)

    def end(self, secret: str) -> None:
        """The session is over."""
        with self._lock:
            self._database.execute("DELETE FROM session WHERE secret=?", (_digest(secret),))

    def names(self) -> list[Account]:
        """Every account, by name."""
        with self._lock:
            return [Account(*row) for row in self._database.execute("SELECT name, role FROM account ORDER BY name")]


def _hash(password: str, salt: bytes) -> bytes:
    # Passwords are chosen or carried by people, so each guess has to cost memory and time.
    return hashlib.scrypt(password.encode(), salt=salt, dklen=32, **_COST)


def _digest(secret: str) -> bytes:
    # A session's secret is 192 random bits or more: it cannot be guessed, and a plain hash is enough.
    return hashlib.sha256(secret.encode()).digest()
