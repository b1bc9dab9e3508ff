"""A real disk that fails on cue: for tests and soaks that must see what a full or broken disk does.

Every switch is off until somebody sets it; from then on operations of that kind fail as a kernel would make them fail.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from catchment.gateway.log.files.disk import File, LocalDisk
from catchment.gateway.log.files.segment import PAGE


class FailingFile:
    """A real file whose writes and syncs fail when the disk says so."""

    def __init__(self, file: File, disk: FailingDisk) -> None:
        self._file = file
        self._disk = disk

    def write(self, position: int, data: bytes) -> None:
        if self._disk.write_error is not None and position >= PAGE:
            # As the kernel does: some bytes arrive before the error.
            self._file.write(position, data[: len(data) // 2])
            raise OSError(self._disk.write_error, "injected")
        if self._disk.header_error is not None and position < PAGE:
            raise OSError(self._disk.header_error, "injected")
        self._file.write(position, data)

    def sync(self) -> None:
        if self._disk.sync_error is not None:
            raise OSError(self._disk.sync_error, "injected")
        if self._disk.on_sync is not None:
            on_sync, self._disk.on_sync = self._disk.on_sync, None
            on_sync()
        self._file.sync()

    def truncate(self, length: int) -> None:
        if self._disk.truncate_fails:
            raise OSError(errno.EIO, "injected")
        self._file.truncate(length)

    def close(self) -> None:
        self._file.close()


class FailingDisk(LocalDisk):
    """A real disk with switches."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write_error: int | None = None
        self.header_error: int | None = None
        """What a write to the first page of a file fails with, where a segment's mark is."""
        self.sync_error: int | None = None
        self.truncate_fails = False
        self.free: int | None = None
        self.on_sync: Callable[[], None] | None = None

    def create(self, path: str) -> File:
        return FailingFile(super().create(path), self)

    def open(self, path: str) -> File:
        return FailingFile(super().open(path), self)

    def free_bytes(self) -> int:
        return super().free_bytes() if self.free is None else self.free
