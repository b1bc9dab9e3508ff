"""One active supervisor per program: a lock that dies with its holder, and a generation that only grows.

The lock is the operating system's, on a file beside the checkpoints: a killed supervisor lets go at once. A standby
waits for it and takes over; from a holder that lives and says nothing any more, stopped or hung, it takes the lock by
ending it. Each holder has a higher generation than all before; sinks and the log refuse lower ones, so what is left of
an old holder, such as a task on an executor, can publish nothing. Knows files and processes; nothing of programs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from catchment.errors import ProgramError
from catchment.gateway.journal import say

SILENT_S = 60.0
"""A holder says something several times a second, and has up to this long for its slowest step: to start Spark."""
_LOOK_S = 0.1


@dataclass(frozen=True)
class Holder:
    """Who runs a program: a process of a machine, under a generation."""

    generation: int
    process: int
    machine: str


class Lease:
    """Held from `take` until `release`, or until the process ends."""

    def __init__(self, descriptor: int, generation: int) -> None:
        self._descriptor = descriptor
        self.generation = generation

    def release(self) -> None:
        """Let the next one take over."""
        os.close(self._descriptor)


def take(directory: Path, program: str) -> Lease:
    """The lease of a program, or an error that says who holds it."""
    lease = _try(directory)
    if lease is not None:
        return lease
    by = _read(directory / "lease")
    raise ProgramError(
        "E030",
        f"{program} is run by another process",
        why=f"process {by.process if by else '?'} holds {directory / 'lease'}",
        fix="stop that one with `catchment stop`, or start this one with --standby: it takes over once that one ends",
    )


def wait(directory: Path, stopping: Callable[[], bool], *, silent_s: float = SILENT_S) -> Lease | None:
    """The lease, once its holder has ended or has been silent for so long; nothing if told to stop before that."""
    suspect: Holder | None = None
    with _standing_by(directory):
        while not stopping():
            lease = _try(directory)
            if lease is not None:
                return lease
            by, silence_s = _read(directory / "lease"), silence(directory)
            # Only a process of this machine can be ended: another machine's lets go when its files do. And only at the
            # second look, for whoever took the lock a moment ago has yet to write its name.
            is_silent = by is not None and by.machine == _machine() and silence_s > silent_s
            if is_silent and by is not None and by == suspect:
                say("holder_is_silent", process=by.process, silent_s=round(silence_s, 1))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(by.process, signal.SIGKILL)
            suspect = by if is_silent else None
            time.sleep(_LOOK_S)
    return None


def held(directory: Path) -> int | None:
    """The process that runs the program now, if one does."""
    path = directory / "lease"
    by = _read(path) if is_locked(path) else None
    return None if by is None else by.process


def standbys(directory: Path) -> list[int]:
    """The processes that wait to take over."""
    return sorted(int(path.name) for path in (directory / "standby").glob("[0-9]*") if is_locked(path))


def silence(directory: Path) -> float:
    """For how many seconds the holder has said nothing."""
    said = [path.stat().st_mtime for name in ("lease", "status.json") if (path := directory / name).exists()]
    return max(0.0, time.time() - max(said, default=0.0))


def _try(directory: Path) -> Lease | None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "lease"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(descriptor):
        os.close(descriptor)
        return None
    before = _read(path)
    generation = before.generation + 1 if before is not None else 1
    os.pwrite(descriptor, f"{generation} {os.getpid()} {_machine()}\n".encode().ljust(120), 0)
    os.fsync(descriptor)
    return Lease(descriptor, generation)


@contextmanager
def _standing_by(directory: Path) -> Iterator[None]:
    path = directory / "standby" / str(os.getpid())
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _read(path: Path) -> Holder | None:
    try:
        words = path.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None
    return Holder(int(words[0]), int(words[1]), words[2] if len(words) > 2 else _machine()) if words else None


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of that file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Whether the lock is now ours; it goes when the descriptor does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _machine() -> str:
    return os.uname().nodename or "here"
