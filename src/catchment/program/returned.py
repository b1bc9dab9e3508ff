"""What a declared Python function may return into an expression, checked once, the same at every site.

A value outside the declaration fails the row, so that a float column never carries a text to a codec far away.

>>> conform(3, FLOAT, nullable=False)
3.0
>>> conform([1, 2], ListType(INT), nullable=False)
(1, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from catchment.errors import ProgramError
from catchment.program.nodes import UserCall
from catchment.program.row_error import FUNCTION_FAILED, FUNCTION_RESULT, RowError
from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    STR,
    DataType,
    ListType,
    RecordType,
    ScalarType,
)

Functions = Mapping[str, Callable[..., Any]]
"""Declared functions by the reference that a `UserCall` holds."""


def guarded(node: UserCall, functions: Functions) -> Callable[..., Any]:
    """The function that the node names, made to fail the row where it raises or returns what it did not declare."""
    function = functions.get(node.function)
    if function is None:
        raise ProgramError(
            "C130",
            f"the function {node.function} is not here",
            why=f"the functions given to this engine are: {', '.join(sorted(functions)) or 'none'}",
            fix="install the package that holds it at this site, in the version that the plan names",
        )
    result, nullable = node.result, node.nullable

    def call(*args: Any) -> Any:
        try:
            value = function(*args)
        except Exception as error:
            raise RowError(FUNCTION_FAILED, repr(error)) from error
        return conform(value, result, nullable)

    return call


def conform(value: Any, kind: DataType, nullable: bool) -> Any:
    """The value as that type, or a failure of the row."""
    if value is None:
        if not nullable:
            raise RowError(FUNCTION_RESULT, f"None, where {kind} was declared")
        return None
    match kind:
        case ScalarType():
            converted = _scalar(value, kind)
            if converted is not None:
                return converted
        case ListType(element):
            if isinstance(value, list | tuple):
                return tuple([conform(item, element, False) for item in value])
        case RecordType(schema):
            if isinstance(value, tuple) and len(value) == len(schema.fields):
                pairs = zip(value, schema.fields, strict=True)
                return tuple([conform(item, column.type, column.nullable) for item, column in pairs])
    raise RowError(FUNCTION_RESULT, f"{value!r}, where {kind} was declared")


def _scalar(value: Any, kind: ScalarType) -> Any:
    """The plain Python value, also of a subclass such as numpy's float; None where it does not fit."""
    if kind == BOOL:
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if kind == FLOAT:
        return float(value) if isinstance(value, float | int) else None
    if kind in (INT, INSTANT, DURATION):
        return int(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None
    if kind == STR:
        return str.__str__(value) if isinstance(value, str) else None
    if kind == BYTES:
        return bytes(value) if isinstance(value, bytes) else None
    return None
