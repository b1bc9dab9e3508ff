"""Parquet files: written whole, in folders named by fields as Hive, Spark, DuckDB and Polars read them.

An instant is a timestamp in UTC; a duration is its microseconds, as few readers know more. A folder by an instant is
of its day. The fields are in the files too, so that a file says all by itself.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from catchment.cloud.sinks.parquet.listing import Held
from catchment.program.types import DURATION, INSTANT, ListType, RecordType, Schema

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP = 1 << 17
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_FOLDER_LENGTH_MAX = 200
_DAY_US = 86_400_000_000


def presented(rows: pa.Table, schema: Schema) -> pa.Table:
    """Results as readers of tables expect them: the record's fields, instants as timestamps."""
    import pyarrow as pa

    columns = {column.name: rows.column(column.name) for column in schema.fields}
    for column in schema.fields:
        columns[column.name] = columns[column.name].cast(shape(column.type))
    return pa.Table.from_arrays(list(columns.values()), schema=_presented(schema))


def empty(schema: Schema) -> pa.Table:
    """No results of that schema."""
    shown: pa.Table = _presented(schema).empty_table()
    return shown


def _presented(schema: Schema) -> Any:
    import pyarrow as pa

    fields = []
    for column in schema.fields:
        about = {"unit": "us"} if column.type == DURATION else {"unit": column.unit} if column.unit else None
        fields.append(pa.field(column.name, shape(column.type), column.nullable, metadata=about))
    return pa.schema(fields)


def shape(kind: Any) -> Any:
    """Arrow's type for readers."""
    import pyarrow as pa

    from catchment.sync.codecs.arrow import arrow_schema

    match kind:
        case ListType(element):
            return pa.list_(shape(element))
        case RecordType(schema):
            return pa.struct([pa.field(c.name, shape(c.type), c.nullable) for c in schema.fields])
        case _ if kind == INSTANT:
            return pa.timestamp("us", "UTC")
        case _:
            from catchment.program.types import Column as Field

            return arrow_schema(Schema("", (Field("x", kind),))).field(0).type


def write(root: Path, rows: pa.Table, by: Sequence[str], name: str) -> list[Held]:
    """Rows in a file for each folder that they belong to."""
    if not by:
        return [write_one(root, "", name, rows)]
    made = []
    for values, some in _divided(rows, by):
        folder = "/".join(_folder(rows, field, value) for field, value in zip(by, values, strict=True))
        file = write_one(root, folder, name, some)
        made.append(Held(file.name, file.rows, file.bytes, values))
    return made


def write_one(root: Path, folder: str, name: str, rows: pa.Table) -> Held:
    """One file, on the medium under its name when this returns; the name itself may be lost until its folder is."""
    import pyarrow.parquet as pq

    (root / folder).mkdir(parents=True, exist_ok=True)
    path = root / folder / f"{name}.parquet"
    partial = path.with_suffix(f".parquet.{os.getpid()}.partial")
    pq.write_table(rows, partial, compression="zstd", row_group_size=ROWS_PER_GROUP)
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    partial.replace(path)
    return Held(path.relative_to(root).as_posix(), rows.num_rows, size)


def load(root: Path, names: Sequence[str]) -> pa.Table:
    """The rows of these files, one after the other; a field that an older file lacks is null there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.ParquetFile(root / name).read() for name in names]
    return pa.concat_tables(tables, promote_options="default")


def sync_directory(folder: Path) -> None:
    """Return once the names in it are on the medium."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _divided(rows: pa.Table, by: Sequence[str]) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """Rows by the values that their folder is named by, each group in the order of the rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = np.zeros(rows.num_rows, np.int64)
    spoken = []
    for field in by:
        column = rows.column(field)
        if pa.types.is_timestamp(column.type):
            # Not Arrow's own format of dates, which knows no year beyond 32767.
            days = np.floor_divide(column.cast(pa.int64()).fill_null(0).to_numpy(), _DAY_US)
            words = pa.array(days.astype("datetime64[D]").astype(str))
            column = pc.call_function("if_else", [column.is_valid(), words, pa.scalar(None, pa.string())])
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        coded = pc.call_function("dictionary_encode", [whole], pc.DictionaryEncodeOptions("encode"))
        spoken.append(coded.dictionary.to_pylist())
        codes = codes * (len(coded.dictionary) or 1) + coded.indices.to_numpy(zero_copy_only=False)
    found = []
    for code in np.unique(codes).tolist():
        values, rest = [], code
        for words in reversed(spoken):
            rest, place = divmod(rest, len(words) or 1)
            values.append(words[place])
        found.append((tuple(reversed(values)), rows.take(np.flatnonzero(codes == code))))
    return found


def _folder(rows: pa.Table, field: str, value: Any) -> str:
    import pyarrow as pa

    name = f"{field}_day" if pa.types.is_timestamp(rows.schema.field(field).type) else field
    said = _NO_VALUE if value is None else quote(str(value).lower() if isinstance(value, bool) else str(value), safe="")
    if len(said) > _FOLDER_LENGTH_MAX:
        said = f"{said[:_FOLDER_LENGTH_MAX]}~{zlib.crc32(said.encode()):08x}"
    return f"{name}={said}"
