"""`msgpack`: rows as MessagePack arrays. Lossless, self-delimiting, and needs no escape for any value.

Integers are int64, floats float64, bytes bin, lists and nested records arrays, null nil. It is what the outbox keeps
each row as, and the codec to name where a schema has little that `delta` could use.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from catchment.errors import PeerError, ProgramError
from catchment.program.types import Row, Schema
from catchment.sync.codecs.shapes import SCALARS, row_type, rows_type

_ENCODER = msgspec.msgpack.Encoder()


class PackedCodec:
    """Rows as MessagePack arrays."""

    name = "msgpack"

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        """The rows as a MessagePack array of arrays."""
        try:
            return _ENCODER.encode(rows)
        except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
            raise _unwritable(schema, error) from None

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        """The rows of a MessagePack array of arrays."""
        try:
            return _rows_decoder(schema).decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _unreadable(schema, error) from None


def pack_row(schema: Schema, row: Row) -> bytes:
    """One row on its own."""
    try:
        return _ENCODER.encode(row)
    except (UnicodeEncodeError, OverflowError, TypeError, ValueError) as error:
        raise _unwritable(schema, error) from None


def unpack_row(schema: Schema, data: bytes) -> Row:
    """The row of such bytes."""
    try:
        return _row_decoder(schema).decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _unreadable(schema, error) from None


@lru_cache(maxsize=256)
def _rows_decoder(schema: Schema) -> msgspec.msgpack.Decoder[list[Row]]:
    return msgspec.msgpack.Decoder(rows_type(schema, SCALARS))


@lru_cache(maxsize=256)
def _row_decoder(schema: Schema) -> msgspec.msgpack.Decoder[Row]:
    return msgspec.msgpack.Decoder(row_type(schema, SCALARS))


def _unwritable(schema: Schema, error: Exception) -> ProgramError:
    return ProgramError(
        "S424",
        f"a row of {schema.name} cannot be encoded",
        why=str(error),
        fix="give each field a value of its declared type: text without lone surrogates, integers of 64 bits",
    )


def _unreadable(schema: Schema, error: Exception) -> PeerError:
    return PeerError(
        "S425",
        f"a payload is not rows of {schema.name}",
        why=f"{type(error).__name__}: {error}",
        fix=f"encode with the schema of fingerprint {schema.fingerprint}",
    )
