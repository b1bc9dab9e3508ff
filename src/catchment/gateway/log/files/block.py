"""Blocks: how entries lie on the disk.

One group commit is one block: written in one piece, synced once, valid as a whole or not at all. Inside, entries are
columns in all but name: fixed rows first, then each distinct string once, then all payloads end to end. So Arrow takes
a block without a step per entry, and a plain reader needs only `struct`. All numbers are little-endian.

    header   64 bytes: magic, crc32, length, offset, generation, entries, strings, string bytes, payload bytes
    rows     entries × 184 bytes (`COLUMNS`)
    strings  (strings + 1) × u32 ends, then UTF-8
    payloads end to end; then zeros up to a multiple of 8

An offset is a byte position in the partition's endless file: a block begins at its `offset`, and its entry i has
the offset `block + i`. Nothing here knows files, clocks or the meaning of an entry.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple

from catchment.gateway.log.entry import Entry, Kind

MAGIC = b"CBLK"
HEADER = struct.Struct("<4sIQQQIIQQ8x")
STRINGS = ("device", "user", "stream", "schema", "codec", "session", "gaps")
NUMBERS = (
    "epoch",
    "epoch_counter",
    "epoch_nonce",
    "first",
    "count",
    "upto",
    "shift_us",
    "clock_segment",
    "clock_offset_us",
    "clock_error_us",
    "wall_us",
    "base_us",
    "span_us",
    "promise_us",
    "lost_refused",
    "lost_dropped",
    "lost_thinned",
    "received_us",
)
COLUMNS: tuple[tuple[str, str], ...] = (
    ("kind", "<u4"),
    *((name, "<u4") for name in STRINGS),
    ("payload_length", "<u4"),
    ("spare", "<u4"),
    *((name, "<i8") for name in NUMBERS),
)
"""A row's fields and their types, in order; strings are indices into the block's table."""
ROW = struct.Struct(f"<10I{len(NUMBERS)}q")
_ENTRY_BYTES = ROW.size + 7 * 4 + 3 * 255 * 4 + 64
"""An entry's row, its strings' ends, and its names at their longest in UTF-8."""
_STRINGS_OF = attrgetter(*STRINGS)
_NUMBERS_OF = attrgetter(*NUMBERS)
_EMPTIED = int(Kind.EMPTIED)
BLOCK_BYTES_MAX = 32 << 20
"""What a writer puts in one block; one entry larger than this has a block of its own."""


class Header(NamedTuple):
    """The fixed start of a block."""

    magic: bytes
    crc: int
    length: int
    offset: int
    generation: int
    entries: int
    strings: int
    string_bytes: int
    payload_bytes: int

    @property
    def end(self) -> int:
        """The offset after this block."""
        return self.offset + self.length


class Parts(NamedTuple):
    """A block taken apart, without a copy of its bytes."""

    header: Header
    rows: memoryview
    strings: tuple[str, ...]
    payloads: memoryview


def size_of(entry: Entry) -> int:
    """About what an entry adds to a block, never less."""
    return _ENTRY_BYTES + len(entry.payload) + len(entry.gaps)


def encode(entries: Sequence[Entry], *, offset: int, generation: int, salt: int) -> bytes:
    """A block with these entries at that offset.

    `salt` starts the checksum: it is random per segment, so that a payload crafted to look like a block never
    is one, and bytes of a recycled file are not mistaken for ours.
    """
    index: dict[str, int] = {}
    # What a device sends in one go has the same strings: there are far fewer of these than entries.
    indices = {
        strings: [index.setdefault(text, len(index)) for text in strings]
        for strings in dict.fromkeys(map(_STRINGS_OF, entries))
    }
    pack, strings, numbers = ROW.pack, _STRINGS_OF, _NUMBERS_OF
    rows = b"".join([pack(e.kind, *indices[strings(e)], len(e.payload), 0, *numbers(e)) for e in entries])
    texts = [text.encode() for text in index]
    text = b"".join(texts)
    ends = struct.pack(f"<{len(texts) + 1}I", 0, *accumulate(map(len, texts)))
    payloads = b"".join([e.payload for e in entries])
    unpadded = HEADER.size + len(rows) + len(ends) + len(text) + len(payloads)
    length = -(-unpadded // 8) * 8
    header = HEADER.pack(MAGIC, 0, length, offset, generation, len(entries), len(texts), len(text), len(payloads))
    pieces = (header[8:], rows, ends, text, payloads, bytes(length - unpadded))
    crc = salt
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    return b"".join([MAGIC, struct.pack("<I", crc), *pieces])


def without(data: bytes, header: Header, salt: int, device: str) -> bytes | None:
    """An intact block with what a device sent taken out, of the same length, so that every offset stays what it was.

    None if the device is not in it. Names that only its entries had become zeros, as their payloads do.
    """
    parts = take_apart(data, 0, header)
    if device not in parts.strings:
        return None
    whose = parts.strings.index(device)
    rows = [list(row) for row in ROW.iter_unpack(parts.rows)]
    gone = [number for number, row in enumerate(rows) if row[1] == whose]
    fields = len(STRINGS)
    used = {index for number, row in enumerate(rows) if number not in set(gone) for index in row[1 : 1 + fields]}
    nameless = parts.strings.index("") if "" in parts.strings else whose
    block = bytearray(data[: header.length])
    ends_at = HEADER.size + header.entries * ROW.size
    text_at = ends_at + (header.strings + 1) * 4
    ends = struct.unpack_from(f"<{header.strings + 1}I", data, ends_at)
    for index, (start, end) in enumerate(pairwise(ends)):
        if index not in used:
            block[text_at + start : text_at + end] = bytes(end - start)
    payloads_at = text_at + header.string_bytes
    starts = [0, *accumulate(row[1 + fields] for row in rows)]
    for number in gone:
        length = rows[number][1 + fields]
        emptied = ROW.pack(_EMPTIED, *[nameless] * fields, length, 0, *[0] * len(NUMBERS))
        block[HEADER.size + number * ROW.size : HEADER.size + (number + 1) * ROW.size] = emptied
        block[payloads_at + starts[number] : payloads_at + starts[number] + length] = bytes(length)
    block[4:8] = struct.pack("<I", zlib.crc32(memoryview(block)[8:], salt))
    return bytes(block)


def header_at(data: bytes | memoryview, position: int) -> Header | None:
    """The header there, if the bytes could be one."""
    if position + HEADER.size > len(data) or bytes(data[position : position + 4]) != MAGIC:
        return None
    header = Header(*HEADER.unpack_from(data, position))
    least = HEADER.size + header.entries * ROW.size + (header.strings + 1) * 4
    return header if header.length >= least + header.string_bytes + header.payload_bytes else None


def intact(data: bytes | memoryview, position: int, header: Header, salt: int) -> bool:
    """Whether the whole block is there, unharmed."""
    end = position + header.length
    return end <= len(data) and zlib.crc32(memoryview(data)[position + 8 : end], salt) == header.crc


def take_apart(data: bytes | memoryview, position: int, header: Header) -> Parts:
    """The columns of an intact block."""
    view = memoryview(data)
    rows_at = position + HEADER.size
    ends_at = rows_at + header.entries * ROW.size
    text_at = ends_at + (header.strings + 1) * 4
    payloads_at = text_at + header.string_bytes
    ends = struct.unpack_from(f"<{header.strings + 1}I", data, ends_at)
    text = bytes(view[text_at:payloads_at])
    strings = tuple([text[start:end].decode() for start, end in pairwise(ends)])
    return Parts(header, view[rows_at:ends_at], strings, view[payloads_at : payloads_at + header.payload_bytes])


def entries_of(parts: Parts) -> Iterator[tuple[int, Entry]]:
    """Each entry with its offset."""
    at = 0
    texts = parts.strings
    for i, row in enumerate(ROW.iter_unpack(parts.rows)):
        kind, device, user, stream, schema, codec, session, gaps, length, _spare, *numbers = row
        yield (
            parts.header.offset + i,
            Entry(
                kind=kind,
                device=texts[device],
                user=texts[user],
                stream=texts[stream],
                schema=texts[schema],
                codec=texts[codec],
                session=texts[session],
                gaps=texts[gaps],
                **dict(zip(NUMBERS, numbers, strict=True)),
                payload=bytes(parts.payloads[at : at + length]),
            ),
        )
        at += length
