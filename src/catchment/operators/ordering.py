"""The order of keys and values: null first, texts by code point, false before true, NaN last.

Python's own order knows neither null nor NaN, so values are sorted by what these functions make of them.

>>> from catchment.program.types import FLOAT, STR, ListType
>>> sorted([2.0, None, float("nan"), -1.0], key=sortable(FLOAT))
[None, -1.0, 2.0, nan]
>>> sorted([("b", None), (None,), ("b",)], key=sortable(ListType(STR)))
[(None,), ('b',), ('b', None)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catchment.program.types import FLOAT, DataType, ListType, RecordType, Row, Schema

Sortable = Callable[[Any], Any]


def sortable(kind: DataType) -> Sortable:
    """A function from a value of that type, or null, to what sorts in its place."""
    match kind:
        case ListType(element):
            of_element = sortable(element)
            return lambda value: _NULL if value is None else (1, tuple([of_element(item) for item in value]))
        case RecordType(schema):
            of_fields = [sortable(column.type) for column in schema.fields]
            return lambda value: (
                _NULL if value is None else (1, tuple([of(item) for of, item in zip(of_fields, value, strict=True)]))
            )
        case _ if kind == FLOAT:
            return _float
        case _:
            return _plain


def sortable_key(schema: Schema, keys: tuple[str, ...]) -> Callable[[Row], Any]:
    """The same for a key: the tuple of the values of these fields."""
    of_fields = [sortable(schema.column(key).type) for key in keys]
    if len(of_fields) == 1:
        of_field = of_fields[0]
        return lambda key: of_field(key[0])
    return lambda key: tuple([of(value) for of, value in zip(of_fields, key, strict=True)])


_NULL = (0,)


def _plain(value: Any) -> Any:
    return _NULL if value is None else (1, value)


def _float(value: float | None) -> Any:
    # 2 rather than NaN itself, which Python would neither put first nor last.
    return _NULL if value is None else (1, value) if value == value else (2,)


def null_first(value: Any) -> Any:
    """What sorts in place of a group: a value of a stamped field, which is a text or a number."""
    return _plain(value)
