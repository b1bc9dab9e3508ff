"""Results as the text that COPY takes, a column at a time; rows that PostgreSQL cannot hold are told apart.

Its texts hold no zero character, and its timestamps no year before 4713 BC; we stay within the years 1 to 9999, which
every driver reads. Arrow writes the text, without a step per row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from catchment.program.types import BYTES, DURATION, INSTANT, STR, DataType, ScalarType, Schema

if TYPE_CHECKING:
    import pyarrow as pa

YEAR_1_US, YEAR_10000_US = -62_135_596_800_000_000, 253_402_300_800_000_000
ZERO = "a text holds a zero character, which PostgreSQL cannot"
TOO_FAR = "an instant lies outside the years 1 to 9999"


def copied(rows: pa.Table, schema: Schema) -> tuple[pa.Table, list[tuple[int, str]]]:
    """Rows as columns that Arrow writes as CSV, and those left out: their numbers, and why."""
    import pyarrow as pa
    import pyarrow.compute as pc

    refused: dict[int, str] = {}
    for column in schema.fields:
        for number, why in _refused(rows.column(column.name), column.type):
            refused.setdefault(number, why)
    if refused:
        kept = pa.array([number not in refused for number in range(rows.num_rows)])
        rows = rows.filter(kept)
    columns = [_text(rows.column(column.name), column.type) for column in schema.fields]
    columns = [pc.cast(column, pa.string()) if pa.types.is_null(column.type) else column for column in columns]
    names = [column.name for column in schema.fields]
    return pa.table(columns, names=names), sorted(refused.items())


def _refused(column: pa.ChunkedArray, kind: DataType) -> list[tuple[int, str]]:
    import numpy as np
    import pyarrow.compute as pc

    if kind == INSTANT:
        values = column.fill_null(0).to_numpy()
        outside = np.flatnonzero((values < YEAR_1_US) | (values >= YEAR_10000_US))
        return [(number, TOO_FAR) for number in outside.tolist()]
    if kind == STR:
        zero = pc.call_function("match_substring", [column], pc.MatchSubstringOptions("\0"))
        with_zero = zero.fill_null(False).to_numpy(zero_copy_only=False)
        return [(number, ZERO) for number in np.flatnonzero(with_zero).tolist()]
    if not isinstance(kind, ScalarType):
        return [(number, ZERO) for number, value in enumerate(column.to_pylist()) if "\0" in _texts(value)]
    return []


def _texts(value: Any) -> str:
    match value:
        case str():
            return value
        case dict():
            return "".join(map(_texts, value.values()))
        case list():
            return "".join(map(_texts, value))
        case _:
            return ""


def _text(column: pa.ChunkedArray, kind: DataType) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == INSTANT:
        return column.cast(pa.timestamp("us", "UTC"))
    if kind == DURATION:
        texts = [column.cast(pa.string()), pa.scalar("us"), pa.scalar(" ")]
        return pc.call_function("binary_join_element_wise", texts)
    if kind == BYTES:
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
    if isinstance(kind, ScalarType):
        return column
    return pa.array([None if value is None else _json(value) for value in column.to_pylist()], pa.string())


def _json(value: Any) -> str:
    return msgspec.json.encode(_said(value)).decode()


def _said(value: Any) -> Any:
    """What JSON can say: of numbers that it has no word for, the name; of bytes, their digits."""
    match value:
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {name: _said(one) for name, one in value.items()}
        case list():
            return [_said(one) for one in value]
        case _:
            return value
