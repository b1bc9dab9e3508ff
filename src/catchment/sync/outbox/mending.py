"""A damaged outbox is replaced by what could be salvaged of it, or stays where it is.

Promises: until the new file is whole and on the disk, the damaged one lies where it was; a crash or a full disk in
between costs another attempt and nothing else. The damaged files are put aside, never deleted. Knows files and their
names; what is carried over is `salvage`'s business.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

_PARTS = ("-shm", "-wal", "")
"""Of a database. The log goes first: one without its log is older than it should be, but never the other way round."""


class Damaged(NamedTuple):
    """A damaged outbox, opened where it lies, and the name that it will have."""

    name: str
    source: sqlite3.Connection


class Mending(Protocol):
    """How a damaged database is replaced; the simulator has its own, over memory."""

    def damaged(self) -> Damaged:
        """What is there."""
        ...

    def beside(self) -> sqlite3.Connection:
        """An empty one beside it."""
        ...

    def swap(self) -> None:
        """The one beside is whole, closed and on the disk: it takes the place of the damaged one."""
        ...


class FileMending:
    """The outbox at a path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def damaged(self) -> Damaged:
        return Damaged(self._aside().name, sqlite3.connect(self._path, isolation_level=None))

    def beside(self) -> sqlite3.Connection:
        beside = _named(self._path, "mending")
        for part in _PARTS:
            _named(beside, part).unlink(missing_ok=True)
        return sqlite3.connect(beside, isolation_level=None, timeout=0, check_same_thread=False)

    def swap(self) -> None:
        # Under this name it is known to be whole, should the rest have to be done at the next start.
        _named(self._path, "mending").replace(_named(self._path, "mended"))
        finish(self._path)

    def _aside(self) -> Path:
        return next(aside for aside in _asides(self._path) if not aside.exists())


def finish(path: Path) -> None:
    """Put a mended outbox in its place, if a start was interrupted while it did."""
    mended = _named(path, "mended")
    if not mended.exists():
        return
    if path.exists():
        aside = next(aside for aside in _asides(path) if not aside.exists())
        for part in _PARTS:
            with contextlib.suppress(FileNotFoundError):
                _named(path, part).rename(_named(aside, part))
    mended.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """A file's name is durable only once its directory is."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _asides(path: Path) -> Iterator[Path]:
    number = 1
    while True:
        yield _named(path, f"damaged-{number}")
        number += 1


def _named(path: Path, word: str) -> Path:
    return path.with_name(path.name + (word if word.startswith("-") or not word else f".{word}"))
