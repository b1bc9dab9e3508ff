"""Schemas and rows of every kind, as codecs have to carry them."""

import math
from typing import Any

from hypothesis import strategies as st

from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    NULL,
    STR,
    Column,
    DataType,
    ListType,
    RecordType,
    Row,
    ScalarType,
    Schema,
)

int64s = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES: dict[ScalarType, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT: int64s | st.integers(-100, 100),
    FLOAT: st.floats(),
    STR: texts,
    BYTES: st.binary(max_size=20),
    INSTANT: int64s,
    DURATION: st.integers(0, 10**9),
    NULL: st.none(),
}
scalar_types = st.sampled_from(list(VALUES))


def schemas(types: st.SearchStrategy[DataType], name: str) -> st.SearchStrategy[Schema]:
    columns = st.lists(st.tuples(types, st.booleans()), max_size=5)
    return columns.map(
        lambda kinds: Schema(
            name, tuple(Column(f"c{i}", kind, nullable=nullable) for i, (kind, nullable) in enumerate(kinds))
        )
    )


inner_types = scalar_types | scalar_types.map(ListType)
data_types: st.SearchStrategy[DataType] = inner_types | schemas(inner_types, "Inner").map(RecordType)


def values(kind: DataType) -> st.SearchStrategy[Any]:
    match kind:
        case ScalarType():
            return VALUES[kind]
        case ListType(element):
            return st.lists(values(element), max_size=4).map(tuple)
        case RecordType(schema):
            return rows_of(schema)


def rows_of(schema: Schema) -> st.SearchStrategy[Row]:
    return st.tuples(
        *(st.none() | values(column.type) if column.nullable else values(column.type) for column in schema.fields)
    )


@st.composite
def schema_and_rows(draw: st.DrawFn) -> tuple[Schema, list[Row]]:
    schema = draw(schemas(data_types, "Outer"))
    return schema, draw(st.lists(rows_of(schema), max_size=8))


def same(left: Any, right: Any) -> bool:
    """Equal, with NaN equal to NaN, −0 not to 0, and 1 not to True or 1.0."""
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        if math.isnan(left):
            return isinstance(right, float) and math.isnan(right)
        return type(right) is float and left == right and math.copysign(1, left) == math.copysign(1, right)
    return type(left) is type(right) and left == right
