"""Two views of a medium: as one life of a process has it, dead when it is; and as a power cut would leave it.

Both keep the log's contract of `Disk`. Every call that changes something is an action, at which the process may end.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from catchment.gateway.log.files.disk import File
from catchment.sim.clock import Killed
from catchment.sim.medium import Inode, Medium
from catchment.sim.process import Process


class _MountedFile:
    def __init__(self, medium: Medium, process: Process, inode: Inode) -> None:
        self._medium = medium
        self._process = process
        self._inode = inode

    def write(self, position: int, data: bytes) -> None:
        try:
            self._process.act()
        except Killed:
            # It ended in the middle of the call: the page cache has some of it.
            self._medium.put_some(self._inode, position, data)
            raise
        self._medium.write(self._inode, position, data)

    def sync(self) -> None:
        self._process.act()
        self._medium.sync(self._inode)

    def truncate(self, length: int) -> None:
        self._process.act()
        self._medium.truncate(self._inode, length)

    def close(self) -> None:
        """Nothing: what was written is the medium's."""


class MountedDisk:
    """The disk as one life of a process has it; see `Disk`."""

    def __init__(self, medium: Medium, process: Process) -> None:
        self._medium = medium
        self._process = process

    def create(self, path: str) -> File:
        self._process.act()
        if path in self._medium.names_in("") or self._exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._medium.check_replace(0)
        inode = Inode()
        self._medium.name(path, inode)
        return _MountedFile(self._medium, self._process, inode)

    def open(self, path: str) -> File:
        self._process.act()
        return _MountedFile(self._medium, self._process, self._medium.find(path))

    def read(self, path: str, position: int, length: int) -> bytes:
        self._alive()
        return bytes(self._medium.find(path).data[position : position + length])

    def size(self, path: str) -> int:
        self._alive()
        return len(self._medium.find(path).data)

    def list(self, directory: str) -> tuple[str, ...]:
        self._alive()
        return self._medium.names_in(directory)

    def changed(self, directory: str) -> int:
        self._alive()
        return self._medium.changes(directory)

    def replace(self, path: str, data: bytes) -> None:
        self._process.act()
        self._medium.check_replace(len(data))
        self._medium.name(path, Inode(data), durable=True)
        # A second action, so that a process may end between the change and hearing of it.
        self._process.act()

    def delete(self, path: str) -> None:
        self._process.act()
        if self._exists(path):
            self._medium.name(path, None)

    def make_directory(self, path: str) -> None:
        self._process.act()
        self._medium.make_directory(path)

    def sync_directory(self, path: str) -> None:
        self._process.act()
        self._medium.sync_directory(path)

    def free_bytes(self) -> int:
        self._alive()
        return max(0, self._medium.capacity_bytes - self._medium.used_bytes())

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        self._process.act()
        # One process is inside at a time, because nobody else runs while it is: it cannot be stalled there.
        with self._process.exclusive():
            yield

    def _exists(self, path: str) -> bool:
        try:
            self._medium.find(path)
        except FileNotFoundError:
            return False
        return True

    def _alive(self) -> None:
        if not self._process.alive:
            raise Killed(self._process.name)


class SafeDisk:
    """What is certainly on the medium: for checking what was promised. Read only; see `Disk`."""

    def __init__(self, medium: Medium) -> None:
        self._medium = medium

    def read(self, path: str, position: int, length: int) -> bytes:
        return bytes(self._find(path).safe[position : position + length])

    def size(self, path: str) -> int:
        return len(self._find(path).safe)

    def list(self, directory: str) -> tuple[str, ...]:
        return self._medium.names_in(directory, safe=True)

    def _find(self, path: str) -> Inode:
        inode = self._medium.safe_files().get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode
