"""One active supervisor per program: a lock that dies with its holder, and a generation that only grows.

The lock is the operating system's, on a file beside the checkpoints: a killed supervisor lets go at once and the next
one takes over. Each holder has a higher generation than all before; sinks and the log refuse lower ones.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from catchment.errors import ProgramError


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
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "lease"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 100, 0).decode("ascii", "replace").split()
        os.close(descriptor)
        raise ProgramError(
            "E030",
            f"{program} is run by another process",
            why=f"process {holder[1] if len(holder) > 1 else '?'} holds {path}",
            fix="stop that one with `catchment stop`, or let it be: this one may take over once it ends",
        ) from error
    written = os.pread(descriptor, 100, 0).split()
    generation = int(written[0]) + 1 if written else 1
    os.pwrite(descriptor, f"{generation} {os.getpid()}\n".encode().ljust(40), 0)
    os.fsync(descriptor)
    return Lease(descriptor, generation)


def held(directory: Path) -> int | None:
    """The process that runs the program now, if one does."""
    try:
        descriptor = os.open(directory / "lease", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(descriptor, 100, 0).split()[1])
    finally:
        os.close(descriptor)
    return None
