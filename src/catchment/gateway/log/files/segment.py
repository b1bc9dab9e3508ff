"""Segments: the files that a partition consists of, and which of their bytes count.

A segment is a page of header, then blocks. Its name and header say at which offset it begins and which generation of
writer made it. A writer that was replaced may wake up and write on: into its own segment, behind the point where its
successor began. So what counts is decided by the names alone (`chain`): a segment ends where the next one begins, and
one that a higher generation has overtaken never existed.

The header page also holds the mark: how much of the segment is on the medium. Readers stop there. It lies in a sector
of its own, so that a torn write of the mark harms no data. Knows bytes and names; touches files only through `Disk`.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from catchment.errors import InternalError
from catchment.gateway.log.files import block
from catchment.gateway.log.files.disk import Disk

PAGE = 4096
_HEADER = struct.Struct("<4sIHHIQQq")
_MAGIC = b"CSEG"
_VERSION = 1
_MARK_AT = 512
_MARK = struct.Struct("<QI4x")
_NAME = re.compile(r"^(\d{20})-(\d{10})\.seg$")
_READ_BYTES = 4 << 20


class Segment(NamedTuple):
    """A segment by its name; in the order of names, the partition's order."""

    base: int
    generation: int

    @property
    def name(self) -> str:
        """Its file."""
        return f"{self.base:020d}-{self.generation:010d}.seg"

    @property
    def marks_name(self) -> str:
        """The file of the marks as they were where it begins."""
        return f"{self.base:020d}-{self.generation:010d}.marks"

    @classmethod
    def named(cls, name: str) -> Segment | None:
        """The segment of a file name, or None for other files.

        >>> Segment.named(Segment(4096, 7).name)
        Segment(base=4096, generation=7)
        """
        found = _NAME.match(name)
        return cls(int(found[1]), int(found[2])) if found else None


class Link(NamedTuple):
    """A segment that counts, and the offset where it stops to: the next one's base; None for the last."""

    segment: Segment
    end: int | None


def chain(segments: Iterable[Segment]) -> tuple[Link, ...]:
    """The segments that count, in order.

    Generation 2 took over at 100; what generation 1 wrote from there on is not part of the log:

    >>> [(link.segment.base, link.segment.generation, link.end) for link in chain(
    ...     [Segment(0, 1), Segment(100, 2), Segment(120, 1), Segment(200, 2)])]
    [(0, 1, 100), (100, 2, 200), (200, 2, None)]
    """
    kept: list[Segment] = []
    for segment in sorted(segments):
        if kept and segment.generation < kept[-1].generation:
            continue
        while kept and kept[-1].base == segment.base:
            kept.pop()
        kept.append(segment)
    ends = [*(segment.base for segment in kept[1:]), None]
    return tuple([Link(segment, end) for segment, end in zip(kept, ends, strict=False)])


def header(segment: Segment, *, partition: int, salt: int, created_us: int) -> bytes:
    """The first page of a new segment."""
    fields = _HEADER.pack(_MAGIC, salt, _VERSION, 0, partition, segment.generation, segment.base, created_us)
    page = bytearray(PAGE)
    page[: _HEADER.size] = fields
    struct.pack_into("<I", page, _HEADER.size, zlib.crc32(fields))
    page[_MARK_AT : _MARK_AT + _MARK.size] = mark(0)
    return bytes(page)


def mark(length: int) -> bytes:
    """The mark that says that this many bytes of blocks are on the medium."""
    return _MARK.pack(length, zlib.crc32(struct.pack("<Q", length)))


class Opened(NamedTuple):
    """What a segment's header page says."""

    salt: int
    created_us: int
    marked: int
    """Bytes of blocks that are on the medium."""


MARK_AT = _MARK_AT


def open_header(disk: Disk, path: str, segment: Segment) -> Opened:
    """The header of a segment; `InternalError` naming the file if it is harmed."""
    page = disk.read(path, 0, PAGE)
    if len(page) < PAGE:
        raise damaged(path, len(page), "its header is cut short")
    (crc,) = struct.unpack_from("<I", page, _HEADER.size)
    if crc != zlib.crc32(page[: _HEADER.size]):
        raise damaged(path, 0, "its header's checksum is wrong")
    magic, salt, version, _, _, generation, base, created_us = _HEADER.unpack_from(page)
    if magic != _MAGIC or (base, generation) != (segment.base, segment.generation):
        raise damaged(path, 0, f"its header is of segment {base} of generation {generation}")
    if version != _VERSION:
        raise InternalError(
            "G502",
            f"{path} is a segment of format {version}",
            why=f"this version of Catchment reads format {_VERSION}",
            fix="run the version that wrote the log, or a newer one",
        )
    length, mark_crc = _MARK.unpack_from(page, _MARK_AT)
    if mark_crc != zlib.crc32(struct.pack("<Q", length)):
        raise damaged(path, _MARK_AT, "its mark's checksum is wrong")
    return Opened(salt, created_us, length)


def damaged(path: str, position: int, why: str) -> InternalError:
    """Acknowledged data cannot be read back."""
    return InternalError(
        "G501",
        f"the log is damaged: {path} at byte {position}",
        why=why,
        fix="restore this file from a copy, or move it away with every later file of the partition and "
        "let devices that still hold the data send it again",
    )


class Found(NamedTuple):
    """A block in a segment: where its bytes are, and the bytes (shared with its neighbours)."""

    header: block.Header
    data: bytes
    at: int


def blocks(disk: Disk, path: str, segment: Segment, salt: int, start: int, end: int) -> Iterator[Found]:
    """Intact blocks that begin in [start, end), in order, until the first that is not; offsets are the partition's.

    Whoever must know whether all of the range was there compares the last `header.end` with `end`.
    """
    buffer, at, offset = b"", 0, start
    while offset < end:
        found = block.header_at(buffer, at)
        if found is None or at + found.length > len(buffer):
            position = PAGE + offset - segment.base
            buffer, at = disk.read(path, position, min(_READ_BYTES, max(end - offset, block.HEADER.size))), 0
            found = block.header_at(buffer, 0)
            if found is not None and len(buffer) < found.length <= disk.size(path):
                buffer = disk.read(path, position, found.length)
        if found is None or found.offset != offset or not block.intact(buffer, at, found, salt):
            return
        yield Found(found, buffer, at)
        at += found.length
        offset = found.end


def block_after(disk: Disk, path: str, segment: Segment, salt: int, offset: int) -> int | None:
    """The offset of an intact block from there on. If there is one, what lies before it is harm and not a torn tail."""
    rest = disk.read(path, PAGE + offset - segment.base, disk.size(path))
    at = rest.find(block.MAGIC)
    while at >= 0:
        found = block.header_at(rest, at)
        if found is not None and found.offset == offset + at and block.intact(rest, at, found, salt):
            return offset + at
        at = rest.find(block.MAGIC, at + 1)
    return None
