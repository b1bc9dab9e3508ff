"""Who reads a log: how far each reader has confirmed, what that keeps, and whether a program runs as it.

    log/readers/NAME            which program ran last as that reader: locked while one does

A program says so for as long as it runs, and so does a backfill, from whatever directory; the lock ends with the
process, however that ends. Whoever drops a reader holds the lock meanwhile, so nobody begins to run as it half-way. A
reader that is not a program of Catchment's has no lock: whether it is gone, only its keeper knows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from catchment.cloud.lease import is_locked
from catchment.errors import ProgramError
from catchment.gateway.log.files import layout, retention
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.reader import LogReader


class Owner(msgspec.Struct, frozen=True):
    """The program that runs as a reader, or last did."""

    program: str
    data: str
    process: int


class Reading(msgspec.Struct, frozen=True):
    """How a reader stands; `retention.NOBODY` stands for the partitions that no reader has confirmed."""

    reader: str
    confirmed: dict[int, int]
    """By partition, where it has confirmed anything."""
    held_bytes: int
    """What could be deleted, were it not for this reader and perhaps others."""
    confirmed_s: float | None
    """When it last confirmed, by the machine's clock."""
    owner: Owner | None
    running: bool


@contextmanager
def reading(log: Path, reader: str, owner: Owner) -> Iterator[None]:
    """Run as that reader: until the end of this, it is not dropped."""
    # Shared: two backfills of one program are one reader.
    with _opened(log, reader) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        said = msgspec.json.encode(owner)
        os.pwrite(descriptor, said, 0)
        os.ftruncate(descriptor, len(said))
        yield


def readings(log: Path) -> list[Reading]:
    """Every reader of a log, the one that keeps most first."""
    disk = _disk(log)
    held: Counter[str] = Counter()
    confirmed: dict[str, dict[int, int]] = {}
    for partition in range(layout.open_layout(disk).partitions):
        held.update(retention.held(disk, partition))
        for reader, offset in layout.confirmed(disk, partition).items():
            confirmed.setdefault(reader, {})[partition] = offset
    return [
        Reading(
            reader,
            confirmed.get(reader, {}),
            held_bytes,
            _confirmed_s(log, reader),
            _owner(log, reader),
            is_locked(_path(log, reader)),
        )
        for reader, held_bytes in held.most_common()
        # A partition in which nothing was ever logged is kept by nobody.
        if held_bytes or reader in confirmed
    ]


def drop(log: Path, reader: str) -> Reading:
    """Let go of what a reader keeps, durably; how it stood. Refused while a program runs as it."""
    known = {one.reader: one for one in readings(log) if one.confirmed}
    if reader not in known:
        raise ProgramError(
            "E057",
            f"nobody reads {log} as {reader}",
            why=f"its readers are: {', '.join(sorted(known)) or 'none'}",
            fix="name one of these, as `catchment log readers` shows them",
        )
    with _opened(log, reader) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            by = _owner(log, reader) or Owner("?", "?", 0)
            raise ProgramError(
                "E058",
                f"{reader} is in use",
                why=f"process {by.process} runs {by.program} with it, and would miss what is deleted",
                fix=f"end that first: catchment stop {by.program} --data {by.data}",
            ) from None
        LogReader(_disk(log)).leave(reader)
    return known[reader]


def _disk(log: Path) -> LocalDisk:
    if not (log / "log.json").exists():
        raise ProgramError(
            "E056",
            f"no log is kept at {log}",
            why="it has no log.json",
            fix="name the directory that the gateway runs with: --data DIR",
        )
    return LocalDisk(log)


def _path(log: Path, reader: str) -> Path:
    return log / "readers" / reader


@contextmanager
def _opened(log: Path, reader: str) -> Iterator[int]:
    path = _path(log, reader)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # which lets go of the lock


def _owner(log: Path, reader: str) -> Owner | None:
    # Empty where one that never was a program's was dropped, or torn by a power cut.
    with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(_path(log, reader).read_bytes(), type=Owner)
    return None


def _confirmed_s(log: Path, reader: str) -> float | None:
    return max((path.stat().st_mtime for path in log.glob(f"p*/readers/{reader}.json")), default=None)
