"""Expressions, evaluated the slow and obvious way: the meaning that every other engine is held to.

Evaluation walks the tree for each row. Every argument is evaluated, left to right, and the first failure wins; then
null in is null out. Only `and`, `or`, `if_` and `coalesce` look at an argument when they need it, which is what lets
`(x != 0) & (y / x > 2)` protect itself. It knows nothing of `operators/`: where both are right, they agree.

>>> from catchment.program.nodes import Call, Literal
>>> from catchment.program.types import INT
>>> evaluate(Call("floordiv", (Literal(-7, INT), Literal(2, INT))), (), ())
-4
"""

from __future__ import annotations

from typing import Any

from catchment.engines.reference.casts import cast
from catchment.engines.reference.functions import STRICT, same
from catchment.program.functions import common
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall
from catchment.program.returned import Functions, guarded
from catchment.program.types import FLOAT, INT, NULL, DataType, RecordType, Row, Schema
from catchment.program.typing import infer


def evaluate(node: Node, rows: tuple[Row, ...], schemas: tuple[Schema, ...], functions: Functions | None = None) -> Any:
    """The value of an expression over one row of each schema; raises `RowError` where the row fails."""
    return _Evaluation(rows, schemas, {} if functions is None else functions).value(node)


class _Evaluation:
    def __init__(self, rows: tuple[Row, ...], schemas: tuple[Schema, ...], functions: Functions) -> None:
        self.rows = rows
        self.schemas = schemas
        self.functions = functions

    def type(self, node: Node) -> DataType:
        return infer(node, self.schemas).type

    def value(self, node: Node) -> Any:
        match node:
            case Literal(value):
                return value
            case FieldRef(name=name, side=side):
                return self.rows[side][self.schemas[side].position(name)]
            case GetField(of, name):
                record = self.value(of)
                kind = self.type(of)
                assert isinstance(kind, RecordType), "typing has refused anything else"
                return None if record is None else record[kind.schema.position(name)]
            case Cast(of, to):
                value = self.value(of)
                given = self.type(of)
                return value if value is None or given in (to, NULL) else cast(value, str(given), str(to))
            case UserCall():
                return guarded(node, self.functions)(*[self.value(arg) for arg in node.args])
            case Call():
                return self.call(node)

    def call(self, node: Call) -> Any:
        result = self.type(node)
        match node.function, node.args:
            case "and", (left, right):
                return self.three_valued(left, right, decisive=False)
            case "or", (left, right):
                return self.three_valued(left, right, decisive=True)
            case "if_", (condition, then, otherwise):
                return self.promoted(then if self.value(condition) is True else otherwise, result)
            case "coalesce", choices:
                for choice in choices:
                    value = self.promoted(choice, result)
                    if value is not None:
                        return value
                return None
            case name, args:
                return self.eager(name, args, result)

    def eager(self, name: str, args: tuple[Node, ...], result: DataType) -> Any:
        types = tuple(self.type(arg) for arg in args)
        # An int that meets a float, or that stands where a function wants one, is a float first.
        wanted = FLOAT if FLOAT in types and common(types) == FLOAT else None
        if name in _OF_FLOATS:
            wanted = FLOAT
        values = [self.promoted(arg, wanted) for arg in args]
        match name, values:
            case "is_null", [value]:
                return value is None
            case "same", [left, right]:
                return same(left, right)
            case "null_if", [left, right]:
                equal = left is not None and right is not None and STRICT["eq"](left, right)
                return None if equal else self.value(args[0])
            case "in_", [value, *candidates]:
                return _among(value, candidates)
            case "least" | "greatest", _:
                known = [value for value in values if value is not None]
                return STRICT[name](*known) if len(known) == 2 else (known or [None])[0]
            case _:
                return None if any(value is None for value in values) else STRICT[name](*values)

    def promoted(self, node: Node, to: DataType | None) -> Any:
        value = self.value(node)
        return float(value) if to == FLOAT and value is not None and self.type(node) == INT else value

    def three_valued(self, left: Node, right: Node, decisive: bool) -> Any:
        first = self.value(left)
        if first is decisive:
            return decisive
        second = self.value(right)
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive


_OF_FLOATS = frozenset(
    [
        *["div", "is_nan", "sqrt", "exp", "ln", "pow", "sin", "cos", "atan2", "radians", "degrees"],
        *["floor", "ceil", "round", "round_to", "distance_m"],
    ]
)


def _among(value: Any, candidates: list[Any]) -> bool | None:
    if value is None:
        return None
    if any(candidate is not None and STRICT["eq"](value, candidate) for candidate in candidates):
        return True
    return None if None in candidates else False
