"""Reading the log: from any process, without asking the writer.

A reader sees exactly what is durable: everything before `end`, nothing behind it, and harm is an error that names
file and byte. Offsets are byte positions in the partition's endless file, so finding one is arithmetic, and
asking for the end reads one page. `confirm` says what a named reader no longer needs; retention believes it.
Knows files through `Disk` alone, and no clock. Arrow lives in `arrow`, so that this module costs nothing to import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from catchment.errors import InternalError, PeerError
from catchment.gateway.log.entry import Entry
from catchment.gateway.log.files import block, layout, segment
from catchment.gateway.log.files.disk import Disk, LocalDisk
from catchment.gateway.log.files.segment import PAGE, Found, Link, Segment

_READER_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,120}$")


class LogReader:
    """Reads one log."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.partitions = layout.open_layout(disk).partitions
        """How many there are."""
        self._chains: dict[int, tuple[int, tuple[Link, ...]]] = {}
        self._salts: dict[tuple[int, Segment], int] = {}

    def start(self, partition: int) -> int:
        """The oldest offset that is kept."""
        links = self._chain(partition)
        return links[0].segment.base if links else 0

    def end(self, partition: int) -> int:
        """The offset after the last durable entry."""
        links = self._chain(partition)
        if not links:
            return 0
        last = links[-1].segment
        path = layout.segment_path(partition, last)
        try:
            return last.base + segment.open_header(self._disk, path, last).marked
        except InternalError:
            if self._disk.size(path) <= PAGE:
                # Its writer is just beginning it, or died doing so: nothing is in it.
                return last.base
            raise

    def boundary(self, partition: int, start: int, *, bytes_max: int, end: int | None = None) -> int:
        """The furthest block boundary within that many bytes of `start`, at least one block on; `end` at most.

        This is how a reader cuts what is there into batches: [start, boundary) is never larger than asked, except
        where a single block is.
        """
        limit = self.end(partition) if end is None else end
        if limit - start <= bytes_max:
            return limit
        reached = start
        for found in self._found(partition, start, limit):
            if reached > start and found.header.end - start > bytes_max:
                break
            reached = found.header.end
        return reached

    def read(self, partition: int, start: int, end: int | None = None) -> Iterator[tuple[int, Entry]]:
        """Entries whose offset lies in [start, end), each with its offset; all that is durable by default."""
        limit = self.end(partition) if end is None else end
        for parts in self.blocks(partition, start, limit):
            for offset, entry in block.entries_of(parts):
                if start <= offset < limit:
                    yield offset, entry

    def blocks(self, partition: int, start: int, end: int) -> Iterator[block.Parts]:
        """Blocks with entries in [start, end), taken apart; the first may begin before `start`."""
        for found in self._found(partition, start, end):
            yield block.take_apart(found.data, found.at, found.header)

    def confirm(self, reader: str, partition: int, offset: int) -> None:
        """`reader` needs nothing before that offset of the partition any more. Durable when this returns."""
        if not _READER_NAME.match(reader):
            raise PeerError(
                "G509",
                f"{reader!r} cannot be a reader's name",
                why="it names a file: letters, digits, '.', '_' and '-', at most 120",
                fix="choose such a name",
            )
        self._check_range(partition, offset, offset)
        directory = layout.readers(partition)
        self._disk.make_directory(directory)
        self._disk.replace(f"{directory}/{reader}.json", msgspec.json.encode(layout.Confirmed(offset)))

    def leave(self, reader: str) -> None:
        """`reader` reads no more, and keeps nothing. Durable when this returns; broken off, it is to be done again."""
        for partition in range(self.partitions):
            directory = layout.readers(partition)
            if f"{reader}.json" in self._disk.list(directory):
                self._disk.delete(f"{directory}/{reader}.json")
                self._disk.sync_directory(directory)

    def confirmed(self, partition: int) -> dict[str, int]:
        """What each reader has confirmed."""
        return layout.confirmed(self._disk, partition)

    def _found(self, partition: int, start: int, end: int) -> Iterator[Found]:
        self._check_range(partition, start, end)
        for link in self._chain(partition):
            stop = end if link.end is None else min(end, link.end)
            if link.segment.base >= end:
                return
            if stop <= max(start, link.segment.base):
                continue
            yield from self._in_segment(partition, link.segment, max(start, link.segment.base), stop)

    def _in_segment(self, partition: int, this: Segment, start: int, stop: int) -> Iterator[Found]:
        path = layout.segment_path(partition, this)
        salt = self._salt(partition, this)
        reached = start
        for found in segment.blocks(self._disk, path, this, salt, start, stop):
            reached = found.header.end
            yield found
        if reached == start and start > this.base:
            # `start` may be an entry inside a block: walk there from the segment's first block.
            reached = this.base
            for found in segment.blocks(self._disk, path, this, salt, this.base, stop):
                reached = found.header.end
                if reached > start:
                    yield found
        if reached < stop:
            position = PAGE + reached - this.base
            raise segment.damaged(path, position, f"a block before offset {stop} is not intact")

    def _check_range(self, partition: int, start: int, end: int) -> None:
        if not 0 <= partition < self.partitions:
            raise PeerError(
                "G510",
                f"there is no partition {partition}",
                why=f"this log has partitions 0 to {self.partitions - 1}",
                fix="use one of these",
            )
        oldest, newest = self.start(partition), self.end(partition)
        if start < oldest:
            raise PeerError(
                "G511",
                f"offset {start} of partition {partition} is gone",
                why=f"retention deleted everything before {oldest}, which every reader had confirmed",
                fix=f"begin at {oldest}, or confirm under a name of your own before reading so that it is kept",
            )
        if end > newest:
            raise PeerError(
                "G512",
                f"offset {end} of partition {partition} is not written yet",
                why=f"the log is durable up to {newest}",
                fix=f"read up to {newest}; if you have read further before, this is not the log that you read",
            )

    def _chain(self, partition: int) -> tuple[Link, ...]:
        directory = f"{layout.directory(partition)}/segments"
        changed = self._disk.changed(directory)
        cached = self._chains.get(partition)
        if cached is not None and cached[0] == changed:
            return cached[1]
        links = segment.chain(filter(None, map(Segment.named, self._disk.list(directory))))
        self._chains[partition] = (changed, links)
        return links

    def _salt(self, partition: int, this: Segment) -> int:
        salt = self._salts.get((partition, this))
        if salt is None:
            salt = segment.open_header(self._disk, layout.segment_path(partition, this), this).salt
            self._salts[(partition, this)] = salt
        return salt


def open_log(path: Path | str) -> LogReader:
    """The log in that directory of this machine."""
    return LogReader(LocalDisk(Path(path)))
