"""What is fuzzed: functions of bytes that raise when something is wrong, and return whatever the bytes are.

Hypothesis runs them in the test suite, and atheris, which is guided by coverage, in `make fuzz`. What counts as wrong:
an exception other than the refusal that is promised, an answer that does not agree with itself, two readers of one
format that disagree.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from catchment.errors import PeerError
from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    STR,
    Column,
    ListType,
    RecordType,
    Schema,
)
from catchment.sync.codecs import codec
from catchment.sync.codecs.delta_numpy import read_frames
from catchment.sync.frame import MAGIC, VERSION, Frame, decode_all, encode_all

_INNER = Schema("Inner", (Column("n", INT), Column("word", STR, nullable=True)))
SCHEMAS = (
    Schema("Fix", (Column("at", INSTANT, step=1000), Column("lat", FLOAT, step=1e-6), Column("n", INT, step=5))),
    Schema("Mixed", (Column("f", FLOAT, nullable=True), Column("s", STR), Column("b", BOOL), Column("d", DURATION))),
    Schema("Nested", (Column("of", RecordType(_INNER)), Column("list", ListType(FLOAT)), Column("raw", BYTES))),
    Schema("Empty", ()),
)
CODECS = ("delta", "msgpack", "none", "delta/zstd", "delta/deflate", "none/deflate")
REFUSED = frozenset({"S423", "S425"})


def frames(data: bytes) -> None:
    """A message as it comes."""
    _understood(data)


def headers(data: bytes) -> None:
    """Frames whose preamble and checksum are right, as only somebody who means it makes them."""
    _understood(sealed(data))


def payloads(data: bytes) -> None:
    """A payload of a known schema, in a known codec."""
    if len(data) < 2:
        return
    schema, name, body = SCHEMAS[data[0] % len(SCHEMAS)], CODECS[data[1] % len(CODECS)], data[2:]
    try:
        rows = codec(name).decode(schema, body)
    except PeerError as error:
        assert error.code in REFUSED, error
        rows = None
    if name.startswith("delta"):
        _same_in_numpy(schema, name, body, rows)
    if rows is not None:
        # What was read can be written: then it is on its steps, for others may write finer than those, and stays so.
        written = codec(name).decode(schema, codec(name).encode(schema, rows))
        assert len(written) == len(rows) and all(_on_steps(schema, *pair) for pair in zip(written, rows, strict=True))
        assert _alike(codec(name).decode(schema, codec(name).encode(schema, written)), written)


def sealed(data: bytes) -> bytes:
    """Frames cut out of bytes: each a kind, the lengths of its header and payload, and these."""
    message: list[bytes] = []
    at = 0
    while at + 4 <= len(data) and len(message) < 8:
        kind, header_bytes, payload_bytes = data[at] % 12, data[at + 1] | data[at + 2] << 8, data[at + 3]
        header = data[at + 4 : at + 4 + header_bytes]
        at += 4 + len(header)
        payload = data[at : at + payload_bytes]
        at += len(payload)
        body = struct.pack("<2sBBHI", MAGIC, VERSION, kind, len(header), len(payload)) + header + payload
        message.append(body + struct.pack("<I", zlib.crc32(body)))
    return b"".join(message)


def unsealed(frame: bytes) -> bytes:
    """What `sealed` makes that frame of: seeds for it."""
    _, _, kind, header_bytes, payload_bytes = struct.unpack_from("<2sBBHI", frame)
    if header_bytes + payload_bytes + 14 != len(frame) or payload_bytes > 255:
        return frame
    return struct.pack("<BHB", kind, header_bytes, payload_bytes) + frame[10:-4]


def _understood(data: bytes) -> None:
    found = list(_until_refused(data))
    assert list(decode_all(encode_all(found))) == found


def _until_refused(data: bytes) -> Iterator[Frame]:
    try:
        yield from decode_all(data)
    except PeerError as error:
        assert error.code.startswith("S40"), error


def _same_in_numpy(schema: Schema, name: str, body: bytes, rows: list[tuple[Any, ...]] | None) -> None:
    try:
        read = read_frames(schema, [(name, body)])
    except PeerError as error:
        assert error.code in REFUSED, error
        assert rows is None, "the vector reader refuses what the plain one reads"
        return
    assert rows is not None, "the vector reader reads what the plain one refuses"
    columns = [column.objects() for column in read.columns]
    assert read.counts.tolist() == [len(rows)]
    if columns:
        assert _alike([list(row) for row in zip(*columns, strict=True)], [list(row) for row in rows])


def _on_steps(schema: Schema, written: tuple[Any, ...], row: tuple[Any, ...]) -> bool:
    for field, one, other in zip(schema.fields, written, row, strict=True):
        is_rounded = field.step is not None and isinstance(one, float) and isinstance(other, float)
        if not (is_rounded and abs(one - other) <= 0.501 * (field.step or 0.0)) and not _alike(one, other):
            return False
    return True


def _alike(one: Any, other: Any) -> bool:
    """Equal, with NaN equal to NaN."""
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return bool(one == other)


TARGETS: dict[str, Callable[[bytes], None]] = {"frames": frames, "headers": headers, "payloads": payloads}
