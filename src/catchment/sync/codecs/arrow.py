"""`arrow`: rows as one record batch of an Arrow IPC stream, for what already has pyarrow.

Lossless. Instants and durations are int64, lists are lists, nested records structs. Imports pyarrow when it is asked
for by name, so a device without it is none the worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from catchment.errors import PeerError, ProgramError
from catchment.program.types import NULL, DataType, ListType, RecordType, Row, ScalarType, Schema
from catchment.program.types import Column as Field
from catchment.sync.codecs.delta_numpy import Column
from catchment.sync.frame import ROWS_MAX

_SCALARS: dict[str, Any] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "instant": pa.int64(),
    "duration": pa.int64(),
    "null": pa.null(),
}


class ArrowCodec:
    """Rows as an Arrow record batch."""

    name = "arrow"

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        """The rows as an IPC stream."""
        shape = arrow_schema(schema)
        if not schema.fields:
            raise _unwritable(schema, "an Arrow batch without columns does not know how many rows it has")
        try:
            columns = [
                pa.array([_to_arrow(field.type, row[place]) for row in rows], shape.field(place).type)
                for place, field in enumerate(schema.fields)
            ]
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, shape) as writer:
                writer.write_batch(pa.record_batch(columns, schema=shape))
            return bytes(sink.getvalue())
        except (pa.ArrowException, TypeError, ValueError, OverflowError, IndexError) as error:
            raise _unwritable(schema, str(error)) from None

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        """The rows of an IPC stream."""
        try:
            with pa.ipc.open_stream(data) as reader:
                if not reader.schema.equals(arrow_schema(schema)):
                    raise ValueError(f"its schema is {reader.schema}")
                batches = list(reader)
            if len(batches) != 1 or batches[0].num_rows > ROWS_MAX:
                raise ValueError("it is not one batch of rows")
            batches[0].validate(full=True)
            columns = [batches[0].column(place).to_pylist() for place in range(len(schema.fields))]
            for field, column in zip(schema.fields, columns, strict=True):
                if not field.nullable and None in column and field.type != NULL:
                    raise ValueError(f"{field.name} is null")
            kinds = [field.type for field in schema.fields]
            return [
                tuple([_from_arrow(kind, value) for kind, value in zip(kinds, row, strict=True)])
                for row in zip(*columns, strict=True)
            ]
        except (pa.ArrowException, ValueError, TypeError, OSError, KeyError) as error:
            raise PeerError(
                "S425",
                f"a payload is not rows of {schema.name}",
                why=f"{type(error).__name__}: {error}",
                fix=f"encode with the schema of fingerprint {schema.fingerprint}",
            ) from None


@lru_cache(maxsize=256)
def arrow_schema(schema: Schema) -> Any:
    """The shape of such a batch."""
    return pa.schema([_field(field) for field in schema.fields])


def arrow_array(kind: DataType, column: Column) -> Any:
    """A numpy column as an Arrow array of the type that `arrow_schema` gives it."""
    mask = None if column.valid is None else ~column.valid
    if column.words is None:
        return pa.array(column.values, _type(kind), mask=mask)
    if not column.words:
        return pa.nulls(len(column.values), _type(kind))
    words = pa.array([_to_arrow(kind, word) for word in column.words], _type(kind))
    return words.take(pa.array(column.values, pa.int64(), mask=mask))


def _field(field: Field) -> Any:
    # Arrow calls a field of nothing but nulls nullable.
    return pa.field(field.name, _type(field.type), field.nullable or field.type == NULL)


def _type(kind: DataType) -> Any:
    match kind:
        case ScalarType(name):
            return _SCALARS[name]
        case ListType(element):
            return pa.list_(_type(element))
        case RecordType(schema):
            return pa.struct([_field(field) for field in schema.fields])


def _to_arrow(kind: DataType, value: Any) -> Any:
    match kind:
        case ListType(element) if value is not None:
            return [_to_arrow(element, each) for each in value]
        case RecordType(schema) if value is not None:
            return {field.name: _to_arrow(field.type, each) for field, each in zip(schema.fields, value, strict=True)}
        case _:
            return value


def _from_arrow(kind: DataType, value: Any) -> Any:
    match kind:
        case ListType(element) if value is not None:
            return tuple([_from_arrow(element, each) for each in value])
        case RecordType(schema) if value is not None:
            return tuple([_from_arrow(field.type, value[field.name]) for field in schema.fields])
        case _:
            return value


def _unwritable(schema: Schema, why: str) -> ProgramError:
    return ProgramError(
        "S424",
        f"a row of {schema.name} cannot be encoded",
        why=why,
        fix="give each field a value of its declared type: text without lone surrogates, integers of 64 bits",
    )
