"""A machine's disk below the gateway's log, as hard as the contract of `Disk` allows.

Promises: what was synced survives a power cut; of everything else any part may, sector by sector, in any order. A name
that was made or deleted may be forgotten until its directory is synced. A sync that failed loses what it was to write,
and the next one does not know: that is what kernels do. A killed process takes nothing with it but what it had not yet
written. A write may stop half-way: when killed, when the disk is full, or when it fails.

Shared by all processes of a machine; each has its own view of it, see `disk`. Knows no log: files are bytes.
"""

from __future__ import annotations

import errno
import os
import random
from typing import NamedTuple

SECTOR = 512
"""The medium takes a sector whole or not at all."""
PAGE = 4096
"""The page cache takes what lies in a page whole or not at all."""
_CAPACITY_BYTES = 1 << 40


class _Write(NamedTuple):
    position: int
    data: bytes


class Inode:
    """A file: as programs see it, as it certainly is on the medium, and what lies between the two."""

    __slots__ = ("data", "pending", "safe")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.safe = bytearray(data)
        self.pending: list[_Write | int] = []
        """Writes and truncations (a length) that were not synced, in order."""


class _Name(NamedTuple):
    """A change of a directory that is not yet on the medium."""

    directory: str
    path: str
    inode: Inode | None


class Rot(NamedTuple):
    """A bit that turned."""

    path: str
    position: int


class Medium:
    """A disk. Its switches stay as they are set until they are set again."""

    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self._files: dict[str, Inode] = {}
        self._safe_files: dict[str, Inode] = {}
        self._names: list[_Name] = []
        self._directories = {""}
        self._changes: dict[str, int] = {}
        self._rots: list[tuple[Inode, int, int]] = []
        self.capacity_bytes = _CAPACITY_BYTES
        self.write_errno: int | None = None
        """What every write to a file fails with."""
        self.sync_errno: int | None = None
        self.truncate_errno: int | None = None
        self.replace_errno: int | None = None

    def power_cut(self) -> None:
        """Lose what luck has it of everything that was not synced."""
        for name in self._names:
            if self._luck.random() < 0.5:
                _rename(self._safe_files, name)
        self._names.clear()
        for inode in {id(one): one for one in self._safe_files.values()}.values():
            how = self._luck.random()
            for change in inode.pending:
                self._settle(inode, change, how)
            inode.pending.clear()
            inode.data = bytearray(inode.safe)
        self._files = dict(self._safe_files)
        for directory in self._directories:
            self._changes[directory] = self._changes.get(directory, 0) + 1

    def rot(self, ending: str) -> Rot | None:
        """Turn a bit of a file whose name ends like that, in what was synced; None where there is nothing to turn."""
        candidates = [p for p, i in self._files.items() if p.endswith(ending) and i.safe and not i.pending]
        if not candidates:
            return None
        path = self._luck.choice(sorted(candidates))
        inode = self._files[path]
        position, bit = self._luck.randrange(len(inode.safe)), 1 << self._luck.randrange(8)
        _turn(inode, position, bit)
        self._rots.append((inode, position, bit))
        return Rot(path, position)

    def restore_rotten(self) -> None:
        """Put every bit back that turned, unless it was written over since: from a copy that somebody had."""
        for inode, position, bit in self._rots:
            if position < min(len(inode.safe), len(inode.data)):
                _turn(inode, position, bit)
        self._rots.clear()

    def contents(self) -> list[tuple[str, bytes]]:
        """Every file as it certainly is, by its name."""
        return sorted((path, bytes(inode.safe)) for path, inode in self._safe_files.items())

    def used_bytes(self) -> int:
        """What the files take."""
        return sum([len(inode.data) for inode in self._files.values()])

    # -- what a mounted disk does ------------------------------------------------------------------------------------

    def find(self, path: str) -> Inode:
        inode = self._files.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def safe_files(self) -> dict[str, Inode]:
        return self._safe_files

    def names_in(self, directory: str, *, safe: bool = False) -> tuple[str, ...]:
        start = f"{directory}/" if directory else ""
        files = self._safe_files if safe else self._files
        paths = [path[len(start) :] for path in files if path.startswith(start)]
        return tuple(sorted([path for path in paths if "/" not in path]))

    def changes(self, directory: str) -> int:
        return self._changes.get(directory, 0)

    def make_directory(self, path: str) -> None:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            self._directories.add("/".join(parts[:end]))

    def name(self, path: str, inode: Inode | None, *, durable: bool = False) -> None:
        directory = path.rpartition("/")[0]
        if directory not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
        change = _Name(directory, path, inode)
        _rename(self._files, change)
        if durable:
            self._names = [name for name in self._names if name.path != path]
            _rename(self._safe_files, change)
        else:
            self._names.append(change)
        self._changes[directory] = self._changes.get(directory, 0) + 1

    def sync_directory(self, path: str) -> None:
        for name in self._names:
            if name.directory == path:
                _rename(self._safe_files, name)
        self._names = [name for name in self._names if name.directory != path]

    def write(self, inode: Inode, position: int, data: bytes) -> None:
        room = self.capacity_bytes - self.used_bytes()
        growth = max(0, position + len(data) - len(inode.data))
        code = self.write_errno
        if code is None and growth > room:
            code = errno.ENOSPC
        if code is not None:
            # As the kernel does: some bytes may arrive before the error, as many as there is room for.
            fits = len(data) if code != errno.ENOSPC else max(0, len(data) - growth + max(0, room))
            self.put(inode, position, data[: self._until_a_page(position, fits)])
            raise OSError(code, os.strerror(code))
        self.put(inode, position, data)

    def put_some(self, inode: Inode, position: int, data: bytes) -> None:
        self.put(inode, position, data[: self._until_a_page(position, len(data))])

    def put(self, inode: Inode, position: int, data: bytes) -> None:
        if data:
            if self._rots:
                end = position + len(data)
                self._rots = [rot for rot in self._rots if rot[0] is not inode or not position <= rot[1] < end]
            _apply(inode.data, position, data)
            inode.pending.append(_Write(position, bytes(data)))

    def sync(self, inode: Inode) -> None:
        if self.sync_errno is not None:
            # The pages are marked clean all the same: what did not reach the medium now never will.
            how = self._luck.random()
            for change in inode.pending:
                self._settle(inode, change, how)
            inode.pending.clear()
            raise OSError(self.sync_errno, os.strerror(self.sync_errno))
        for change in inode.pending:
            if isinstance(change, _Write):
                _apply(inode.safe, change.position, change.data)
            else:
                _truncate(inode.safe, change)
        inode.pending.clear()

    def truncate(self, inode: Inode, length: int) -> None:
        if self.truncate_errno is not None:
            raise OSError(self.truncate_errno, os.strerror(self.truncate_errno))
        _truncate(inode.data, length)
        inode.pending.append(length)

    def check_replace(self, size: int) -> None:
        code = self.replace_errno if self.write_errno is None else self.write_errno
        if code is None and self.used_bytes() + size > self.capacity_bytes:
            code = errno.ENOSPC
        if code is not None:
            raise OSError(code, os.strerror(code))

    def _until_a_page(self, position: int, length: int) -> int:
        """How much of a write arrives that stops half-way: nothing, all of it, or up to where a page ends."""
        ends: tuple[int, ...] = (0, length, *range(PAGE - position % PAGE, length, PAGE))
        return self._luck.choice(ends)

    def _settle(self, inode: Inode, change: _Write | int, how: float) -> None:
        """Bring a change to the medium as far as luck has it: all, nothing, the beginning, or any of its sectors."""
        luck = self._luck
        if not isinstance(change, _Write):
            if luck.random() < 0.5:
                _truncate(inode.safe, change)
            return
        if how < 0.25:
            return
        if how < 0.5:
            _apply(inode.safe, change.position, change.data)
            return
        until = luck.randint(0, len(change.data)) if how < 0.75 else len(change.data)
        at = 0
        while at < until:
            # Cut where sectors end on the medium, not where the write began.
            end = min(at + SECTOR - (change.position + at) % SECTOR, len(change.data))
            if end <= until and (how < 0.75 or luck.random() < 0.5):
                _apply(inode.safe, change.position + at, change.data[at:end])
            at = end


def _turn(inode: Inode, position: int, bit: int) -> None:
    inode.safe[position] ^= bit
    inode.data[position] ^= bit


def _rename(files: dict[str, Inode], name: _Name) -> None:
    if name.inode is None:
        files.pop(name.path, None)
    else:
        files[name.path] = name.inode


def _apply(data: bytearray, position: int, new: bytes) -> None:
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(new)] = new


def _truncate(data: bytearray, length: int) -> None:
    if length <= len(data):
        del data[length:]
    else:
        data.extend(bytes(length - len(data)))
