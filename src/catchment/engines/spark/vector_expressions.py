"""Expressions over columns: numpy for numbers, comparisons and logic, a loop over rows for everything else.

What numpy computes here has the meaning of the golden vectors, row by row: null, overflow, division by zero, and which
of several failures is the reason. An expression that has a part without a vectorised form is computed by the function
that devices run, so every expression can be asked for. Knows columns; nothing of steps.

>>> from catchment.engines.spark.rows import Rows
>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import FLOAT, Column as Field
>>> point = Schema("Point", (Field("x", FLOAT, nullable=True),))
>>> half = VectorExpressions(point, (Call("div", (Literal(1.0, FLOAT), FieldRef("x"))),))
>>> rows = Rows.of([(0, ("d", None), (2.0,)), (0, ("d", None), (0.0,)), (0, ("d", None), (None,))], (FLOAT,))
>>> computed = half(rows)
>>> computed.columns[0].objects()[::2], computed.reasons()
([0.5, None], {1: 'division by zero'})
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows, column_of
from catchment.operators.expressions import compile_expression
from catchment.operators.projection import functions_of
from catchment.program.facts import Analysis
from catchment.program.functions import common
from catchment.program.nodes import Call, Cast, FieldRef, Literal, Node
from catchment.program.row_error import DIVISION_BY_ZERO, DOMAIN, OVERFLOW, REASONS, RowError
from catchment.program.types import BOOL, DURATION, FLOAT, INSTANT, INT, NULL, STR, DataType, Row, Schema

_REASONS = ("", *sorted(REASONS))
_CODES = {reason: code for code, reason in enumerate(_REASONS)}
_WHOLE = (INT, INSTANT, DURATION)
_NUMBERS = (*_WHOLE, FLOAT)
_PLAIN = (*_NUMBERS, BOOL)


@dataclass(frozen=True, slots=True)
class Computed:
    """Columns of expressions. `failed` holds a code for each row that fails in one of them, or is None."""

    columns: list[Column]
    failed: Array | None

    def reasons(self) -> dict[int, str]:
        """Why rows fail, by number."""
        if self.failed is None:
            return {}
        return {int(row): _REASONS[self.failed[row]] for row in np.nonzero(self.failed)[0]}


class VectorExpressions:
    """Expressions over elements of a schema; `types` says what each is to be where that is not its own type."""

    def __init__(self, schema: Schema, nodes: Sequence[Node], types: Sequence[DataType] | None = None) -> None:
        self._analysis = Analysis((schema,))
        self._schema = schema
        self._nodes = nodes
        self._types = list(types) if types is not None else [self._analysis[node].type for node in nodes]
        functions = functions_of(nodes)
        self._loops: dict[int, Callable[[Row], Any]] = {
            number: compile_expression(node, (schema,), functions)
            for number, node in enumerate(nodes)
            if not self._is_native(node)
        }

    def __call__(self, rows: Rows) -> Computed:
        """The expressions of these rows."""
        columns, failed = [], None
        over = _Over(rows, self._schema, self._analysis)
        listed = rows.objects() if self._loops else []
        for number, (node, kind) in enumerate(zip(self._nodes, self._types, strict=True)):
            loop = self._loops.get(number)
            if isinstance(node, FieldRef):
                column, reason = rows.columns[self._schema.position(node.name)], None
                if kind == FLOAT and column.words is None and column.values.dtype != np.float64:
                    column = Column(column.values.astype(np.float64), column.valid)
            elif loop is None:
                found = over.computed(node, kind)
                column, reason = found.column(len(rows)), found.failed
            else:
                column, reason = _looped(loop, listed, kind)
            columns.append(column)
            failed = _first(failed, reason)
        return Computed(columns, failed)

    def _is_native(self, node: Node) -> bool:
        return isinstance(node, FieldRef) or (self._analysis[node].type in _PLAIN and self._part_is_native(node))

    def _part_is_native(self, node: Node) -> bool:
        facts = self._analysis[node]
        match node:
            case Literal(value):
                return facts.type in _PLAIN and value is not None
            case FieldRef():
                return facts.type in _PLAIN
            case Call("eq" | "ne", (FieldRef() as left, Literal(value, kind))) if kind == STR and value is not None:
                return self._analysis[left].type == STR
            case Call("is_null", (FieldRef(),)):
                return True
            case Call(name, args) if name in _CALLS:
                if name in _WHOLE_ONLY and (facts.type not in _WHOLE or facts.fails_here):
                    return False
                if name in _UNCHECKED and facts.whole and facts.fails_here:
                    return False
                if any(self._analysis[arg].type == NULL for arg in args):
                    return False
                return all(map(self._part_is_native, args))
            case Cast(of, to):
                return (self._analysis[of].type, to) == (INT, FLOAT) and self._part_is_native(of)
            case _:
                return False


def _looped(loop: Callable[[Row], Any], rows: list[Row], kind: DataType) -> tuple[Column, Array | None]:
    values: list[Any] = []
    failed: Array | None = None
    for number, row in enumerate(rows):
        try:
            values.append(loop(row))
        except RowError as error:
            values.append(None)
            failed = np.zeros(len(rows), np.int16) if failed is None else failed
            failed[number] = _CODES[error.reason]
    return column_of(values, kind), failed


@dataclass(frozen=True, slots=True)
class _Vector:
    """Values (or one value for all rows), which are not null, and which fail."""

    values: Any
    valid: Array | None = None
    failed: Array | None = None

    def column(self, count: int) -> Column:
        values = np.broadcast_to(self.values, count) if np.ndim(self.values) == 0 else self.values
        return Column(values, self.valid)

    @property
    def true(self) -> Any:
        """Where it is true, and not null."""
        return self.values if self.valid is None else self.values & self.valid


def _first(one: Array | None, other: Array | None) -> Array | None:
    """The first reason of two."""
    if one is None or other is None:
        return other if one is None else one
    return np.where(one != 0, one, other)


def _both(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


class _Over:
    """Expressions over some rows, each computed once."""

    def __init__(self, rows: Rows, schema: Schema, analysis: Analysis) -> None:
        self._rows = rows
        self._schema = schema
        self._analysis = analysis
        self._known: dict[Node, _Vector] = {}

    def computed(self, node: Node, to: DataType | None = None) -> _Vector:
        found = self._known.get(node)
        if found is None:
            with np.errstate(all="ignore"):
                found = self._known[node] = self._compute(node)
        if to == FLOAT and self._analysis[node].type in _WHOLE:
            return _Vector(np.asarray(found.values).astype(np.float64), found.valid, found.failed)
        return found

    def _compute(self, node: Node) -> _Vector:
        match node:
            case Literal(value):
                return _Vector(np.asarray(value))
            case FieldRef(name):
                column = self._rows.columns[self._schema.position(name)]
                return _Vector(column.values, column.valid)
            case Cast(of, to):
                return self.computed(of, to)
            case Call("eq" | "ne" as name, (FieldRef(field), Literal(str(value)))):
                column = self._rows.columns[self._schema.position(field)]
                words = np.array([(word == value) is (name == "eq") for word in column.words or ()], np.bool_)
                same = words[column.values] if len(words) else np.zeros(len(column.values), np.bool_)
                return _Vector(same, column.valid)
            case Call("is_null", (FieldRef(field),)):
                valid = self._rows.columns[self._schema.position(field)].valid
                return _Vector(np.zeros(len(self._rows), np.bool_) if valid is None else ~valid)
            case Call(name, args):
                return _CALLS[name](self, node, args)
        raise AssertionError(f"{node} was said to be native")

    def strict(self, node: Node, args: tuple[Node, ...], to: DataType | None, body: Callable[..., Any]) -> _Vector:
        """Null in, null out; what the body says fails does so only where no argument is null."""
        given = [self.computed(arg, to) for arg in args]
        valid = failed = None
        for one in given:
            valid, failed = _both(valid, one.valid), _first(failed, one.failed)
        found = body(self._analysis[node].fails_here, *(one.values for one in given))
        values, own = found if isinstance(found, tuple) else (found, None)
        if own is not None:
            own = own if valid is None else np.where(valid, own, 0)
            failed = _first(failed, own)
        return _Vector(values, valid, failed)

    def common(self, args: tuple[Node, ...]) -> DataType | None:
        kind = common(tuple(self._analysis[arg].type for arg in args))
        return FLOAT if kind == FLOAT else None

    def result(self, node: Node) -> DataType | None:
        return FLOAT if self._analysis[node].type == FLOAT else None


_Write = Callable[[_Over, Node, tuple[Node, ...]], _Vector]


def _ordinary(body: Callable[..., Any], to: DataType | None = None) -> _Write:
    def write(over: _Over, node: Node, args: tuple[Node, ...]) -> _Vector:
        return over.strict(node, args, to or over.common(args), body)

    return write


def _code(where: Any, reason: str) -> Array | None:
    if not np.any(where):
        return None
    return np.where(where, np.int16(_CODES[reason]), np.int16(0))


def _add(checks: bool, left: Any, right: Any) -> Any:
    total = left + right
    return (total, _code(((left ^ total) & (right ^ total)) < 0, OVERFLOW)) if checks else total


def _sub(checks: bool, left: Any, right: Any) -> Any:
    total = left - right
    return (total, _code(((left ^ right) & (left ^ total)) < 0, OVERFLOW)) if checks else total


def _mul(checks: bool, left: Any, right: Any) -> Any:
    product = left * right
    if not checks:
        return product
    about = np.abs(np.asarray(left).astype(np.float64) * right)
    beyond = np.atleast_1d(about >= 2.0**62)
    if not beyond.any():
        return product
    exact = np.asarray(left).astype(object) * right
    outside = np.array([not -(2**63) <= each < 2**63 for each in np.atleast_1d(exact)])
    return product, _code(outside if np.ndim(about) else outside[0], OVERFLOW)


def _div(checks: bool, left: Any, right: Any) -> Any:
    return np.divide(left, right), _code(right == 0, DIVISION_BY_ZERO) if checks else None


def _sqrt(checks: bool, value: Any) -> Any:
    return np.sqrt(value), _code(value < 0, DOMAIN) if checks else None


def _and(over: _Over, node: Node, args: tuple[Node, ...]) -> _Vector:
    return _three_valued(over, args, decisive=False)


def _or(over: _Over, node: Node, args: tuple[Node, ...]) -> _Vector:
    return _three_valued(over, args, decisive=True)


def _three_valued(over: _Over, args: tuple[Node, ...], *, decisive: bool) -> _Vector:
    left, right = (over.computed(arg) for arg in args)
    values = (left.values | right.values) if decisive else (left.values & right.values)
    decided = _is(left, decisive)
    failed = left.failed
    if right.failed is not None:
        failed = _first(failed, np.where(decided, 0, right.failed))
    if left.valid is None and right.valid is None:
        return _Vector(values, None, failed)
    sure = decided | _is(right, decisive)
    known = _both(left.valid, right.valid)
    # Where neither decides and one is null, so is the answer.
    return _Vector(np.where(sure, decisive, values), sure | known, failed)


def _is(vector: _Vector, truth: bool) -> Any:
    matches = vector.values if truth else ~np.asarray(vector.values)
    return matches if vector.valid is None else matches & vector.valid


def _if(over: _Over, node: Node, args: tuple[Node, ...]) -> _Vector:
    kind = over.result(node)
    condition, then, otherwise = over.computed(args[0]), over.computed(args[1], kind), over.computed(args[2], kind)
    test = condition.true
    chosen = _choose(test, then.failed, otherwise.failed, 0)
    valid = _choose(test, then.valid, otherwise.valid, True)
    return _Vector(np.where(test, then.values, otherwise.values), valid, _first(condition.failed, chosen))


def _choose(test: Any, one: Array | None, other: Array | None, absent: Any) -> Array | None:
    if one is None and other is None:
        return None
    return np.where(test, absent if one is None else one, absent if other is None else other)


def _coalesce(over: _Over, node: Node, args: tuple[Node, ...]) -> _Vector:
    kind = over.result(node)
    found = over.computed(args[-1], kind)
    for arg in reversed(args[:-1]):
        one = over.computed(arg, kind)
        if one.valid is None:
            found = one
            continue
        failed = None if found.failed is None else np.where(one.valid, 0, found.failed)
        valid = None if found.valid is None else one.valid | found.valid
        found = _Vector(np.where(one.valid, one.values, found.values), valid, _first(one.failed, failed))
    return found


_CALLS: dict[str, _Write] = {
    "add": _ordinary(_add),
    "sub": _ordinary(_sub),
    "mul": _ordinary(_mul),
    "div": _ordinary(_div, FLOAT),
    "neg": _ordinary(lambda checks, value: -value),
    "abs": _ordinary(lambda checks, value: np.abs(value)),
    "floordiv": _ordinary(lambda checks, left, right: left // right),
    "mod": _ordinary(lambda checks, left, right: left % right),
    "floor_to": _ordinary(lambda checks, left, right: left - left % right),
    "sqrt": _ordinary(_sqrt, FLOAT),
    "is_nan": _ordinary(lambda checks, value: np.isnan(value), FLOAT),
    "eq": _ordinary(lambda checks, left, right: left == right),
    "ne": _ordinary(lambda checks, left, right: left != right),
    "lt": _ordinary(lambda checks, left, right: left < right),
    "le": _ordinary(lambda checks, left, right: left <= right),
    "gt": _ordinary(lambda checks, left, right: left > right),
    "ge": _ordinary(lambda checks, left, right: left >= right),
    "not": _ordinary(lambda checks, value: ~np.asarray(value)),
    "and": _and,
    "or": _or,
    "if_": _if,
    "coalesce": _coalesce,
}
_WHOLE_ONLY = frozenset({"floordiv", "mod", "floor_to"})
"""Vectorised for whole numbers that cannot fail."""
_UNCHECKED = frozenset({"neg", "abs"})
"""Vectorised where the result cannot overflow."""
