"""The one interface of all codecs, and their registry by name.

Promises: a name either gives a codec whose `decode(schema, encode(schema, rows))` is the rows (up to each field's
`step`, where the codec rounds), or is refused with a code. Knows no format; the formats do not know each other.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Protocol

from catchment.errors import PeerError, ProgramError
from catchment.program.types import Row, Schema
from catchment.sync.codecs.compress import COMPRESSIONS, Compression, compression


class Codec(Protocol):
    """Rows to bytes and back. Decoding bytes that it did not write raises a `PeerError`, nothing else."""

    @property
    def name(self) -> str:
        """What a frame calls it."""
        ...

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        """The payload of a frame with these rows."""
        ...

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        """The rows of such a payload."""
        ...


# Where the built-in ones live: imported when first asked for, since a device may lack what one of them needs.
_BUILT_IN: dict[str, tuple[str, str, str]] = {
    "none": ("catchment.sync.codecs.plain", "PlainCodec", ""),
    "msgpack": ("catchment.sync.codecs.packed", "PackedCodec", ""),
    "delta": ("catchment.sync.codecs.delta", "DeltaCodec", ""),
    "arrow": ("catchment.sync.codecs.arrow", "ArrowCodec", "pyarrow"),
}
_registered: dict[str, Codec] = {}
_found: dict[str, Codec] = {}


def register(author: Codec) -> Codec:
    """Make an author's codec known under its name. Both ends have to register it: its name is all a frame carries."""
    if author.name in _BUILT_IN or "/" in author.name or not author.name:
        raise ProgramError(
            "S420",
            f"a codec cannot be called {author.name!r}",
            why="the name is empty, has a slash, or is one of the built-in ones",
            fix=f"give it a name other than {', '.join(_BUILT_IN)}",
        )
    _registered[author.name] = author
    for name in [name for name in _found if name.partition("/")[0] == author.name]:
        del _found[name]
    return author


def available() -> tuple[str, ...]:
    """Names of the codecs that this process can use, without their compressions."""
    return (*(name for name in _BUILT_IN if _importable(name)), *_registered)


def codec(name: str) -> Codec:
    """The codec of that name; after a slash, its compression."""
    known = _found.get(name)
    if known is not None:
        return known
    bare, slash, packing = name.partition("/")
    found = _registered.get(bare)
    if found is None:
        if bare not in _BUILT_IN or not _importable(bare):
            raise PeerError(
                "S421",
                f"codec {bare!r} is not known here",
                why=f"this process has {', '.join(available())}",
                fix="choose one of these, or register the codec at both ends",
            )
        module, attribute, _ = _BUILT_IN[bare]
        found = getattr(importlib.import_module(module), attribute)()
        assert found is not None
    if slash:
        found = _Compressed(found, compression(packing))
    _found[name] = found
    return found


def _importable(name: str) -> bool:
    needs = _BUILT_IN[name][2]
    return not needs or importlib.util.find_spec(needs) is not None


class _Compressed:
    """A codec whose bytes pass through a compression."""

    def __init__(self, inner: Codec, packing: Compression) -> None:
        self.name = f"{inner.name}/{packing.name}"
        self._inner = inner
        self._packing = packing

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        return self._packing.compress(self._inner.encode(schema, rows))

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        return self._inner.decode(schema, self._packing.decompress(data))


__all__ = ["COMPRESSIONS", "Codec", "available", "codec", "register"]
