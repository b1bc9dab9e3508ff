"""Values that JSON has no form for, in a form that their type makes plain; and back.

An integer beyond ±(2^53−1) is its decimal digits, a float that is not finite is "NaN", "Infinity" or "-Infinity",
bytes are hexadecimal digits, a list or nested record is an array. Only the values that an author wrote into a plan
are concerned: constants, defaults of fields, and the first state of a fold.

>>> outgoing(float("-inf"), FLOAT), incoming("-Infinity", FLOAT), incoming([1, 2], ListType(INT))
('-Infinity', -inf, (1, 2))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from catchment.program import steps
from catchment.program.nodes import Literal
from catchment.program.types import BYTES, FLOAT, INT, Column, DataType, ListType, RecordType, Row, Schema

S = TypeVar("S")
INTEGER_MAX = 2**53 - 1
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_Change = Callable[[Any, DataType], Any]


def outgoing(value: Any, kind: DataType) -> Any:
    """The value as JSON can say it."""
    match value:
        case None | bool() | str():
            return value
        case int() if kind != FLOAT:
            return value if -INTEGER_MAX <= value <= INTEGER_MAX else str(value)
        case float() | int():
            value = float(value)
            return value if math.isfinite(value) else next(k for k, v in _FLOATS.items() if repr(v) == repr(value))
        case bytes():
            return value.hex()
        case _:
            return _inside(value, kind, outgoing)


def incoming(value: Any, kind: DataType) -> Any:
    """The value as engines hold it. Raises ValueError or KeyError where it is not of that type."""
    if value is None:
        return None
    if isinstance(kind, ListType | RecordType):
        return _inside(value, kind, incoming)
    if isinstance(value, str):
        if kind == FLOAT:
            return _FLOATS[value]
        if kind == BYTES:
            return bytes.fromhex(value)
        if kind.name in ("int", "instant", "duration"):
            return int(value)
    return float(value) if kind == FLOAT and isinstance(value, int) and not isinstance(value, bool) else value


def _inside(value: Any, kind: DataType, change: _Change) -> Any:
    match kind:
        case ListType(element):
            return tuple([change(item, element) for item in value])
        case RecordType(schema):
            return _row(value, schema, change)
        case _:
            raise ValueError(f"{value!r} is not a {kind}")


def _row(row: Any, schema: Schema, change: _Change) -> Row:
    return tuple([change(value, column.type) for value, column in zip(row, schema.fields, strict=True)])


def departing(tree: S) -> S:
    """Plan data with every such value as JSON can say it."""
    changed: S = _through(tree, outgoing)
    return changed


def arriving(tree: S) -> S:
    """Plan data with every such value as engines hold it."""
    changed: S = _through(tree, incoming)
    return changed


def _through(tree: Any, change: _Change) -> Any:
    match tree:
        case Literal(value, kind):
            new = change(value, kind)
            return tree if new is value else Literal(new, kind)
        case msgspec.Struct():
            fields = {name: getattr(tree, name) for name in tree.__struct_fields__}
            new_fields = {name: _through(value, change) for name, value in fields.items()}
            if isinstance(tree, Column) and tree.has_default:
                new_fields["default"] = change(tree.default, tree.type)
            if isinstance(tree, steps.Fold):
                new_fields["initial"] = _row(tree.initial, tree.record, change)
            same = all(new_fields[name] is value for name, value in fields.items())
            return tree if same else type(tree)(**new_fields)
        case tuple():
            items = [_through(item, change) for item in tree]
            return tree if all(new is old for new, old in zip(items, tree, strict=True)) else tuple(items)
        case list():  # of an author's own options, which JSON gives as lists
            return tuple([_through(item, change) for item in tree])
        case dict():
            return {name: _through(value, change) for name, value in tree.items()}
        case _:
            return tree


__all__ = ["INT", "INTEGER_MAX", "arriving", "departing", "incoming", "outgoing"]
