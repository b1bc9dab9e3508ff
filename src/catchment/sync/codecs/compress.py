"""Compressions of a payload: deflate, which every peer has, and zstd, which is negotiated.

Promises: `decompress` never makes more than `PAYLOAD_BYTES_MAX`, whatever the bytes claim. Deflate is the raw form of
RFC 1951 (a frame has its own checksum, and a browser reads it as "deflate-raw"); zstd is RFC 8878, one frame.
"""

from __future__ import annotations

import importlib.util
import zlib
from typing import Protocol

from catchment.errors import PeerError

PAYLOAD_BYTES_MAX = 16 * 1024 * 1024
"""A payload grows to at most so many bytes when it is decompressed."""


class Compression(Protocol):
    """Bytes to fewer bytes and back."""

    @property
    def name(self) -> str:
        """What stands after the slash of a codec's name."""
        ...

    def compress(self, data: bytes) -> bytes:
        """Fewer bytes, usually."""
        ...

    def decompress(self, data: bytes) -> bytes:
        """The bytes that were compressed."""
        ...


class Deflate:
    """RFC 1951, without a container."""

    name = "deflate"

    def compress(self, data: bytes) -> bytes:
        """Level 9: payloads are small, radios are dear."""
        packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
        return packer.compress(data) + packer.flush()

    def decompress(self, data: bytes) -> bytes:
        """The bytes; refuses what is cut short, trailed by more, or too large."""
        unpacker = zlib.decompressobj(-15)
        try:
            whole = unpacker.decompress(data, PAYLOAD_BYTES_MAX)
        except zlib.error as error:
            raise _bad("deflate", str(error)) from None
        if not unpacker.eof or unpacker.unused_data:
            raise _bad("deflate", "it is cut short, trailed by other bytes, or too large")
        return whole


_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Zstd:
    """RFC 8878, where the `zstandard` package is. A payload is one frame, without the magic number it begins with."""

    name = "zstd"

    def __init__(self) -> None:
        import zstandard

        self._library = zstandard
        # The frame has the checksum and the length is small: six bytes less per payload.
        self._packer = zstandard.ZstdCompressor(level=12, write_checksum=False, write_content_size=True)
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=2**27)

    def compress(self, data: bytes) -> bytes:
        """One frame with its content size; nothing stays nothing, since the library does not check an empty frame."""
        return self._packer.compress(data)[len(_ZSTD_MAGIC) :] if data else b""

    def decompress(self, data: bytes) -> bytes:
        """The bytes; refuses what is cut short, trailed by more, or claims to be too large."""
        if not data:
            return b""
        data = _ZSTD_MAGIC + data
        try:
            # A claimed size is allocated before a byte is read, so the claim is looked at first.
            claimed = self._library.frame_content_size(data)
            if claimed == 0 or claimed > PAYLOAD_BYTES_MAX:
                raise _bad("zstd", f"it claims {claimed} bytes, and 1 to {PAYLOAD_BYTES_MAX} are taken")
            return self._unpacker.decompress(data, max_output_size=PAYLOAD_BYTES_MAX, allow_extra_data=False)
        except self._library.ZstdError as error:
            raise _bad("zstd", str(error)) from None


_found: dict[str, Compression] = {}


def compression(name: str) -> Compression:
    """The compression of that name."""
    found = _found.get(name)
    if found is None:
        if name not in COMPRESSIONS:
            raise PeerError(
                "S422",
                f"compression {name!r} is not known here",
                why=f"this process has {', '.join(COMPRESSIONS)}",
                fix="choose one of these: deflate always works, zstd is offered in hello",
            )
        found = _found[name] = Deflate() if name == "deflate" else Zstd()
    return found


COMPRESSIONS: tuple[str, ...] = ("zstd", "deflate") if importlib.util.find_spec("zstandard") else ("deflate",)
"""What this process can use, the best first."""


def _bad(name: str, why: str) -> PeerError:
    return PeerError("S423", f"a {name} payload cannot be decompressed", why=why, fix="send it again, or without it")
