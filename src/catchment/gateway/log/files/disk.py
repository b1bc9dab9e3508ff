"""What the log asks of a disk, and the real one.

The log's logic touches storage through `Disk` alone, so that the simulator can give it one that tears writes and
forgets what was not synced. The contract is a plain disk's: `write` may be torn or lost until `File.sync` returns; a
new or deleted name may be lost until `sync_directory` returns; `replace` is durable and all-or-nothing on return.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

_SETTLED_NS = 2_000_000_000


class File(Protocol):
    """An open file that is written at explicit positions (never O_APPEND: a stale writer must hit its own bytes)."""

    def write(self, position: int, data: bytes) -> None:
        """Write all of it, or raise `OSError`."""
        ...

    def sync(self) -> None:
        """Return once everything written is on the medium."""
        ...

    def truncate(self, length: int) -> None:
        """Cut the file to that length."""
        ...

    def close(self) -> None:
        """Forget the file; nothing is synced by this."""
        ...


class Disk(Protocol):
    """A directory tree; paths are relative to its root, with forward slashes."""

    def create(self, path: str) -> File:
        """A new file; `FileExistsError` if there is one."""
        ...

    def open(self, path: str) -> File:
        """An existing file, for writing."""
        ...

    def read(self, path: str, position: int, length: int) -> bytes:
        """Up to that many bytes; fewer at the end of the file; `FileNotFoundError` if there is none."""
        ...

    def size(self, path: str) -> int:
        """The file's length; `FileNotFoundError` if there is none."""
        ...

    def list(self, directory: str) -> tuple[str, ...]:
        """Names in a directory, sorted; empty if there is none."""
        ...

    def changed(self, directory: str) -> int:
        """A number that differs after names in the directory changed (equal numbers may be trusted)."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Put a whole file in place, durable and all-or-nothing."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; nothing happens if there is none."""
        ...

    def make_directory(self, path: str) -> None:
        """Make it and its parents, durably."""
        ...

    def sync_directory(self, path: str) -> None:
        """Return once the names in it are on the medium."""
        ...

    def free_bytes(self) -> int:
        """What can still be written."""
        ...

    def locked(self, path: str) -> AbstractContextManager[None]:
        """Exclude every other holder of the same lock file, in any process, for a short critical section."""
        ...


class _LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, position: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, position)
            if written == 0:  # Not seen on Linux, but looping on it for ever would be worse than an error.
                raise OSError(errno.EIO, "a write took no bytes")
            position += written
            view = view[written:]

    def sync(self) -> None:
        _sync_data(self._descriptor)

    def truncate(self, length: int) -> None:
        os.ftruncate(self._descriptor, length)

    def close(self) -> None:
        os.close(self._descriptor)


# macOS has no fdatasync, and there only F_FULLFSYNC reaches the medium.
def _sync_data(descriptor: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(descriptor, full)
    else:
        os.fdatasync(descriptor)


class LocalDisk:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    @property
    def root(self) -> Path:
        """Where it is."""
        return self._root

    def create(self, path: str) -> File:
        return _LocalFile(os.open(self._root / path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o640))

    def open(self, path: str) -> File:
        return _LocalFile(os.open(self._root / path, os.O_RDWR | os.O_CLOEXEC))

    def read(self, path: str, position: int, length: int) -> bytes:
        descriptor = os.open(self._root / path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts: list[bytes] = []
            while length > 0:
                part = os.pread(descriptor, length, position)
                if not part:
                    break
                parts.append(part)
                position += len(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        return (self._root / path).stat().st_size

    def list(self, directory: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(self._root / directory)))  # noqa: PTH208 - names only, and half the cost
        except FileNotFoundError:
            return ()

    def changed(self, directory: str) -> int:
        try:
            changed_ns = (self._root / directory).stat().st_mtime_ns
        except FileNotFoundError:
            return 0
        # A directory's time moves in steps of the kernel's tick: a second change within one step leaves no trace.
        # So a recent change answers with a number that no later answer equals.
        now_ns = time.time_ns()
        return now_ns if abs(now_ns - changed_ns) < _SETTLED_NS else changed_ns

    def replace(self, path: str, data: bytes) -> None:
        target = self._root / path
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o640)
        try:
            file = _LocalFile(descriptor)
            file.write(0, data)
            file.sync()
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        partial.replace(target)
        self._sync_name(target.parent)

    def delete(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)

    def make_directory(self, path: str) -> None:
        target = self._root / path
        if target.is_dir():
            return
        missing = [target, *(parent for parent in target.parents if not parent.is_dir())]
        target.mkdir(parents=True, exist_ok=True)
        for made in missing:
            self._sync_name(made.parent)

    def sync_directory(self, path: str) -> None:
        self._sync_name(self._root / path)

    def free_bytes(self) -> int:
        state = os.statvfs(self._root)
        return state.f_bavail * state.f_frsize

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        descriptor = os.open(self._root / path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)  # Which releases the lock, as death does.

    def _sync_name(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
