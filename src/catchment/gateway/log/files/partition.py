"""A partition's writer: entries in, durable offsets out.

`append` returns only once the entries are on the medium, under a generation that is still ours; marks change with them.
At its start it repairs what a crash may leave (one torn block at the very end) and refuses what a crash cannot
leave (harm anywhere before). It always begins a segment of its own, so that a replaced writer that wakes up
can only write where nobody looks. One thread at a time uses it; time and the salt are arguments.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catchment.errors import InternalError, PeerError
from catchment.gateway.log.entry import Entry
from catchment.gateway.log.files import block, layout, lease, segment
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.lease import Lease
from catchment.gateway.log.files.segment import PAGE, Segment
from catchment.gateway.log.marks import Marks

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a segment is rolled, and how much of the disk is never written."""

    segment_bytes: int = 128 << 20
    segment_us: int = 3_600_000_000
    reserve_bytes: int = 256 << 20
    """Uploads are refused when less than this would stay free: what follows a full disk is worse than a late upload."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a start found at the end of the log and cut off."""

    path: str
    position: int
    bytes: int


class Partition:
    """The one writer of a partition directory."""

    def __init__(
        self,
        disk: Disk,
        number: int,
        *,
        holder: str,
        address: str,
        now_us: int,
        salt: Callable[[], int],
        limits: Limits | None = None,
    ) -> None:
        self.number = number
        self.directory = layout.directory(number)
        self.marks = Marks()
        self.on_source: Callable[[Entry], None] = lambda entry: None
        """Told, after it is durable, of each entry that made a device a source, or present or absent."""
        self.repaired: Repaired | None = None
        self._disk = disk
        self._salt = salt
        self._limits = limits or Limits()
        disk.make_directory(f"{self.directory}/segments")
        names = self._segments()
        self.lease: Lease = lease.take(
            disk,
            self.directory,
            holder=holder,
            address=address,
            now_us=now_us,
            least=max((found.generation for found in names), default=0),
        )
        self.end = self._recover()
        """The offset after the last durable entry: where the next one goes."""
        self._begin(now_us)

    def append(self, entries: Sequence[Entry], *, now_us: int) -> list[int]:
        """Make the entries durable; their offsets, in order.

        Entries of one call share a block, as far as it holds them, so they are logged together or not at all.
        """
        portions = _portions(entries)
        if len(portions) == 1:
            return self._append_block(entries, now_us)
        return [offset for portion in portions for offset in self._append_block(portion, now_us)]

    def renew(self, *, now_us: int) -> None:
        """Keep the lease."""
        self.lease = lease.renew(self._disk, self.directory, self.lease, now_us=now_us)

    def restart(self, *, now_us: int) -> None:
        """Go on after `G507`: a new generation, in a new segment that begins where the last durable entry ended.

        Nothing is read back: after a failed sync, what the page cache shows may not be on the medium.
        """
        held = self.lease
        self.lease = lease.take(
            self._disk, self.directory, holder=held.holder, address=held.address, now_us=now_us, after=held
        )
        old = self._file
        self._begin(now_us)
        old.close()

    def roll(self, *, now_us: int) -> None:
        """Begin another segment: what is written so far will not be written again."""
        # A replaced writer must not leave a segment where its successor's have been trimmed away.
        lease.check(self._disk, self.directory, self.lease)
        full = self._file
        self._begin(now_us)
        full.close()

    def close(self) -> None:
        """Let the next writer in."""
        self._file.close()
        lease.release(self._disk, self.directory, self.lease)

    def abandon(self) -> None:
        """Close the file and leave the lease as it is, after a failure or when replaced."""
        self._file.close()

    def _append_block(self, entries: Sequence[Entry], now_us: int) -> list[int]:
        segment_bytes = self.end - self._segment.base
        old = segment_bytes and now_us - self._created_us >= self._limits.segment_us
        # A restart that failed half-way, as on a full disk, has taken a generation and has no segment of it: what went
        # to the old one from here on would be hidden by the new one as soon as that appears.
        unfinished = self._segment.generation != self.lease.generation
        if unfinished or old or segment_bytes >= self._limits.segment_bytes:
            self.roll(now_us=now_us)
        data = block.encode(entries, offset=self.end, generation=self.lease.generation, salt=self._salt_now)
        if self._disk.free_bytes() - len(data) < self._limits.reserve_bytes:
            raise self._full(f"less than the reserve of {self._limits.reserve_bytes} bytes would stay free")
        at = self.end - self._segment.base
        self._write(PAGE + at, data)
        try:
            self._file.sync()
        except OSError as error:
            # After a failed sync the kernel forgets that these pages are dirty: asking again would lie. The block stays
            # unacknowledged behind our end: cut off if that still works, and hidden by the next generation's segment.
            with contextlib.suppress(OSError):
                self._file.truncate(PAGE + at)
            raise self._failed(self._segment, "synced", error) from error
        lease.check(self._disk, self.directory, self.lease)
        offsets = list(range(self.end, self.end + len(entries)))
        self.end += len(data)
        # The block counts from here on, whatever becomes of the mark: one that could not be moved is an older one, as
        # after a power cut, and a device that was told that this failed would have the same logged once more.
        with contextlib.suppress(OSError):
            self._file.write(segment.MARK_AT, segment.mark(at + len(data)))
        apply, changed = self.marks.apply, self.on_source
        for entry in entries:
            if apply(entry):
                changed(entry)
        return offsets

    def _write(self, position: int, data: bytes) -> None:
        try:
            self._file.write(position, data)
        except OSError as error:
            try:
                self._file.truncate(position)
            except OSError:
                raise self._failed(self._segment, "written", error) from error
            if error.errno in _NO_SPACE:
                raise self._full(str(error)) from error
            raise self._failed(self._segment, "written", error) from error

    def _full(self, why: str) -> PeerError:
        return PeerError(
            "G506",
            f"the log's disk is nearly full: {self._disk.free_bytes()} bytes are free for {self.directory}",
            why=why,
            fix="free space; `catchment log readers` says who keeps the log, and `catchment log drop` lets go of a "
            "reader that is no more; devices keep their data and try again",
        )

    def _failed(self, of: Segment, done: str, error: OSError) -> InternalError:
        return InternalError(
            "G507",
            f"{self._path(of)} could not be {done}",
            why=str(error),
            fix="check the disk; the partition starts anew under a new generation, and devices send again what was "
            "not acknowledged",
        )

    def _begin(self, now_us: int) -> None:
        """Create the next segment and write there from now on; if that fails, nothing has changed.

        The marks come first, so that a segment that exists has them.
        """
        new, salt = Segment(self.end, self.lease.generation), self._salt()
        here = f"{self.directory}/segments"
        page = segment.header(new, partition=self.number, salt=salt, created_us=now_us)
        try:
            self._disk.replace(f"{here}/{new.marks_name}", self.marks.to_bytes())
            # Left by an attempt that failed half-way, such as on a full disk: nothing in it was acknowledged.
            self._disk.delete(f"{here}/{new.name}")
            file = self._disk.create(f"{here}/{new.name}")
            file.write(0, page)
            file.sync()
            self._disk.sync_directory(here)
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise self._full(str(error)) from error
            raise self._failed(new, "begun", error) from error
        self._segment, self._file, self._salt_now, self._created_us = new, file, salt, now_us

    def _segments(self) -> list[Segment]:
        names = self._disk.list(f"{self.directory}/segments")
        return [found for found in map(Segment.named, names) if found is not None]

    def _path(self, of: Segment) -> str:
        return layout.segment_path(self.number, of)

    def _recover(self) -> int:
        """Fold the log into marks; the offset where it ends."""
        links = segment.chain(self._segments())
        if not links:
            return 0
        first = self._load_marks(links)
        end = 0
        for link in links[first:]:
            end = self._fold(link)
        return end

    def _load_marks(self, links: tuple[segment.Link, ...]) -> int:
        """Take the newest good snapshot; which link it stands before."""
        for index in range(len(links) - 1, -1, -1):
            path = f"{self.directory}/segments/{links[index].segment.marks_name}"
            try:
                data = self._disk.read(path, 0, self._disk.size(path))
                self.marks = Marks.from_bytes(data)
                return index
            except (FileNotFoundError, ValueError):
                continue
        if links[0].segment.base == 0:
            return 0
        raise InternalError(
            "G508",
            f"{self.directory} has lost its marks",
            why="no .marks file beside its segments can be read, and earlier segments were deleted by retention",
            fix="restore one .marks file of this partition from a copy",
        )

    def _fold(self, link: segment.Link) -> int:
        """Apply a segment's entries; the offset where it ends."""
        this = link.segment
        path = self._path(this)
        size = self._disk.size(path)
        try:
            opened = segment.open_header(self._disk, path, this)
        except InternalError as error:
            if link.end is None and size <= PAGE and error.code == "G501":
                # A torn header without a block: its writer had not returned from beginning this segment.
                return this.base
            raise
        limit = this.base + max(0, size - PAGE) if link.end is None else link.end
        end = this.base
        for found in segment.blocks(self._disk, path, this, opened.salt, this.base, limit):
            for _, entry in block.entries_of(block.take_apart(found.data, found.at, found.header)):
                self.marks.apply(entry)
            end = found.header.end
        if link.end is None:
            self._repair(path, this, opened, end, size)
        elif end != link.end:
            raise segment.damaged(path, PAGE + end - this.base, f"a block before offset {link.end} is not intact")
        return end

    def _repair(self, path: str, this: Segment, opened: segment.Opened, end: int, size: int) -> None:
        """Cut off a torn tail; refuse anything that a crash cannot have left."""
        position = PAGE + end - this.base
        if end < this.base + opened.marked:
            raise segment.damaged(
                path, position, f"{opened.marked} bytes were acknowledged and a block before is not intact"
            )
        torn = size - position
        if torn > 0:
            later = segment.block_after(self._disk, path, this, opened.salt, end)
            if later is not None:
                raise segment.damaged(path, position, f"the block here is not intact, and one at offset {later} is")
        file = self._disk.open(path)
        try:
            if torn > 0:
                file.truncate(position)
                self.repaired = Repaired(path, position, torn)
            # The last blocks may be in the page cache only, and our segment starts where they end: they must stay. If
            # a sync of theirs failed, the kernel takes their pages for clean; written again, they are dirty.
            behind = PAGE + opened.marked
            if position > behind:
                file.write(behind, self._disk.read(path, behind, position - behind))
            file.sync()
            file.write(segment.MARK_AT, segment.mark(end - this.base))
        finally:
            file.close()


def _portions(entries: Sequence[Entry]) -> list[Sequence[Entry]]:
    """Entries by the block that they go to."""
    sizes = [block.size_of(entry) for entry in entries]
    if sum(sizes) <= block.BLOCK_BYTES_MAX:
        return [entries] if entries else []
    portions: list[Sequence[Entry]] = []
    start = filled = 0
    for index, size in enumerate(sizes):
        if filled and filled + size > block.BLOCK_BYTES_MAX:
            portions.append(entries[start:index])
            start, filled = index, 0
        filled += size
    portions.append(entries[start:])
    return portions
