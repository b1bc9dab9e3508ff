"""The typed surface of an expression: what a field becomes when it is named on its record class.

`Fix.speed_mps * 3.6 > 50` builds nodes; nothing is computed. `and`, `or`, `not` and chained comparisons cannot be
seen by Python libraries, so using them is refused with the operator to write instead.

>>> from catchment.program.types import FLOAT
>>> speed = field_of("Fix", "speed_mps", FLOAT)
>>> (speed * 3.6 > 50).node.function
'gt'
"""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar, overload

from catchment.errors import ProgramError, author_line
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node
from catchment.program.types import (
    BOOL,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    NULL,
    STR,
    DataType,
    Duration,
    Instant,
)

T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

_PYTHON_TYPES: dict[Any, DataType] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STR,
    Instant: INSTANT,
    Duration: DURATION,
}


def literal(value: Any, kind: DataType | None = None) -> Node:
    """A constant as a node; `kind` tells an instant or a duration from an int."""
    match value:
        case None:
            return Literal(None, kind or NULL)
        case bool():
            return Literal(value, BOOL)
        case int():
            return Literal(value, kind or INT)
        case float() if math.isnan(value):
            return Call("nan", ())
        case float() if math.isinf(value):
            return Call("infinity", ()) if value > 0 else Call("neg", (Call("infinity", ()),))
        case float():
            return Literal(value, FLOAT)
        case str():
            return Literal(value, STR)
        case bytes():
            return Call("unhex", (Literal(value.hex(), STR),))
        case _:
            raise ProgramError(
                "C127",
                f"{type(value).__name__} {value!r} is not a value that an expression can hold",
                why="constants are bool, int, float, str, bytes, or made by instant() and seconds()",
                fix="convert it, or compute it in a declared function",
                at=author_line(),
            )


def _beside(value: Any, other: Expr[Any]) -> Node:
    """An operand as a node. A bare int beside an instant or a duration is one too: that is what they are in Python."""
    if isinstance(value, Expr):
        return value.node
    if isinstance(value, int) and not isinstance(value, bool) and other.kind in (INSTANT, DURATION):
        return Literal(value, other.kind)
    return literal(value)


class Expr(Generic[T_co]):
    """An expression that gives a value of that type for each element."""

    __slots__ = ("kind", "node")
    __hash__ = object.__hash__

    def __init__(self, node: Node, kind: DataType | None = None) -> None:
        self.node = node
        self.kind = kind

    # The overloads of arithmetic overlap at Expr[None] alone, which has none; hence the ignores below.
    def _binary(self, function: str, other: Any, *, swapped: bool = False, kind: DataType | None = None) -> Expr[Any]:
        mine, theirs = self.node, _beside(other, self)
        return Expr(Call(function, (theirs, mine) if swapped else (mine, theirs)), kind)

    @overload
    def __add__(self: Expr[Instant | None], other: Expr[Duration | None] | Duration) -> Expr[Instant]: ...  # type: ignore[overload-overlap]
    @overload
    def __add__(self: Expr[Duration | None], other: Expr[Duration | None] | Duration) -> Expr[Duration]: ...  # type: ignore[overload-overlap]
    @overload
    def __add__(self: Expr[int | None], other: Expr[int | None] | int) -> Expr[int]: ...  # type: ignore[overload-overlap]
    @overload
    def __add__(self: Expr[float | None], other: Expr[float | None] | float) -> Expr[float]: ...
    def __add__(self, other: Any) -> Expr[Any]:
        if self.kind == INSTANT and not isinstance(other, Expr):
            return Expr(Call("add", (self.node, literal(other, DURATION))), INSTANT)
        return self._binary("add", other, kind=self.kind)

    def __radd__(self: Expr[V], other: Any) -> Expr[V]:
        return self._binary("add", other, swapped=True, kind=self.kind)

    @overload
    def __sub__(self: Expr[Instant | None], other: Expr[Duration | None] | Duration) -> Expr[Instant]: ...  # type: ignore[overload-overlap]
    @overload
    def __sub__(self: Expr[Instant | None], other: Expr[Instant | None]) -> Expr[Duration]: ...  # type: ignore[overload-overlap]
    @overload
    def __sub__(self: Expr[Duration | None], other: Expr[Duration | None] | Duration) -> Expr[Duration]: ...  # type: ignore[overload-overlap]
    @overload
    def __sub__(self: Expr[int | None], other: Expr[int | None] | int) -> Expr[int]: ...  # type: ignore[overload-overlap]
    @overload
    def __sub__(self: Expr[float | None], other: Expr[float | None] | float) -> Expr[float]: ...
    def __sub__(self, other: Any) -> Expr[Any]:
        if self.kind == INSTANT and not isinstance(other, Expr):
            return Expr(Call("sub", (self.node, literal(other, DURATION))), INSTANT)
        both = self.kind == INSTANT and isinstance(other, Expr) and other.kind == INSTANT
        return self._binary("sub", other, kind=DURATION if both else self.kind)

    def __rsub__(self: Expr[V], other: Any) -> Expr[V]:
        return self._binary("sub", other, swapped=True, kind=self.kind)

    @overload
    def __mul__(self: Expr[int | None], other: Expr[int | None] | int) -> Expr[int]: ...  # type: ignore[overload-overlap]
    @overload
    def __mul__(self: Expr[float | None], other: Expr[float | None] | float) -> Expr[float]: ...
    def __mul__(self, other: Any) -> Expr[Any]:
        return Expr(Call("mul", (self.node, other.node if isinstance(other, Expr) else literal(other))), self.kind)

    def __rmul__(self: Expr[V], other: Any) -> Expr[V]:
        return Expr(Call("mul", (literal(other), self.node)), self.kind)

    def __truediv__(self, other: Expr[float | None] | float) -> Expr[float]:
        return self._binary("div", other, kind=FLOAT)

    def __rtruediv__(self, other: float) -> Expr[float]:
        return self._binary("div", other, swapped=True, kind=FLOAT)

    def __floordiv__(self: Expr[V], other: Expr[Any] | float) -> Expr[V]:
        return self._binary("floordiv", other)

    def __mod__(self: Expr[V], other: Expr[Any] | float) -> Expr[V]:
        return self._binary("mod", other, kind=self.kind)

    def __pow__(self, other: Expr[float | None] | float) -> Expr[float]:
        return self._binary("pow", other, kind=FLOAT)

    def __neg__(self: Expr[V]) -> Expr[V]:
        return Expr(Call("neg", (self.node,)), self.kind)

    def __abs__(self: Expr[V]) -> Expr[V]:
        return Expr(Call("abs", (self.node,)), self.kind)

    def __eq__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return self._binary("eq", other, kind=BOOL)

    def __ne__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return self._binary("ne", other, kind=BOOL)

    def __lt__(self, other: Any) -> Expr[bool]:
        return self._binary("lt", other, kind=BOOL)

    def __le__(self, other: Any) -> Expr[bool]:
        return self._binary("le", other, kind=BOOL)

    def __gt__(self, other: Any) -> Expr[bool]:
        return self._binary("gt", other, kind=BOOL)

    def __ge__(self, other: Any) -> Expr[bool]:
        return self._binary("ge", other, kind=BOOL)

    def __and__(self, other: Expr[bool] | Expr[bool | None] | bool) -> Expr[bool]:
        return self._binary("and", other, kind=BOOL)

    def __rand__(self, other: bool) -> Expr[bool]:
        return self._binary("and", other, swapped=True, kind=BOOL)

    def __or__(self, other: Expr[bool] | Expr[bool | None] | bool) -> Expr[bool]:
        return self._binary("or", other, kind=BOOL)

    def __ror__(self, other: bool) -> Expr[bool]:
        return self._binary("or", other, swapped=True, kind=BOOL)

    def __invert__(self) -> Expr[bool]:
        return Expr(Call("not", (self.node,)), BOOL)

    def __bool__(self) -> bool:
        raise ProgramError(
            "C101",
            "an expression was used as a truth value",
            why="`and`, `or`, `not`, `if` and a chained comparison ask for one before there is an element",
            fix="write `&`, `|`, `~` with each side in parentheses, and when(...) for a choice",
            at=author_line(),
        )

    def __iter__(self) -> Any:
        raise ProgramError(
            "C102",
            "an expression cannot be iterated",
            why="it stands for one value of each element",
            fix="use .item(position) and .size() for a list",
            at=author_line(),
        )

    def is_null(self) -> Expr[bool]:
        """Whether the value is null."""
        return Expr(Call("is_null", (self.node,)), BOOL)

    def same_as(self, other: Any) -> Expr[bool]:
        """Equality in which null is the same as null; never null itself."""
        return self._binary("same", other, kind=BOOL)

    def is_in(self, *candidates: Any) -> Expr[bool]:
        """Whether the value is one of these."""
        return Expr(Call("in_", (self.node, *(_beside(value, self) for value in candidates))), BOOL)

    def between(self, low: Any, high: Any) -> Expr[bool]:
        """Whether `low <= value <= high`."""
        return self._binary("ge", low)._binary("and", self._binary("le", high), kind=BOOL)

    def or_else(self, *others: Any) -> Expr[Any]:
        """The first that is not null of this value and the others."""
        return Expr(Call("coalesce", (self.node, *(_beside(value, self) for value in others))), self.kind)

    def cast(self, to: type[V]) -> Expr[V]:
        """Convert, e.g. `Fix.floor.cast(float)`; a value that does not fit fails its row."""
        kind = _PYTHON_TYPES.get(to)
        if kind is None:
            raise ProgramError(
                "C128",
                f"cannot cast to {getattr(to, '__name__', repr(to))}",
                why="a cast goes to bool, int, float, str, Instant or Duration",
                fix="name one of these",
                at=author_line(),
            )
        return Expr(Cast(self.node, kind), kind)

    def get(self, name: str) -> Expr[Any]:
        """A field of a nested record."""
        return Expr(GetField(self.node, name))

    def item(self, position: Expr[int] | int) -> Expr[Any]:
        """The element of a list at a position counted from 0, or null."""
        return self._binary("item", position)

    def size(self) -> Expr[int]:
        """How many elements a list has."""
        return Expr(Call("size", (self.node,)), INT)

    def __repr__(self) -> str:
        return f"Expr({self.node!r})"


def field_of(record: str, name: str, kind: DataType) -> Expr[Any]:
    """A field of a record class, as an expression."""
    return Expr(FieldRef(name, record), kind)


def col(name: str) -> Expr[Any]:
    """A field by name, for streams whose record was not declared as a class."""
    return Expr(FieldRef(name))


def right(expression: Expr[V]) -> Expr[V]:
    """The same expression over a join's right element, where both sides are of one record class."""
    from catchment.program.nodes import replace

    def move(node: Node) -> Node | None:
        return FieldRef(node.name, node.record, 1) if isinstance(node, FieldRef) else None

    return Expr(replace(expression.node, move), expression.kind)


class _Case:
    """The `when(...)` under construction: end it with `.otherwise(value)`."""

    def __init__(self, branches: tuple[tuple[Node, Any], ...]) -> None:
        self._branches = branches

    def when(self, condition: Expr[bool] | str, value: Any) -> _Case:
        """A further choice, taken where the ones before were not."""
        return _Case((*self._branches, (_condition(condition), value)))

    def otherwise(self, value: Any) -> Expr[Any]:
        """The value where no condition is true."""
        typed = next((v for _, v in self._branches if isinstance(v, Expr)), value)
        beside = typed if isinstance(typed, Expr) else Expr[Any](literal(typed))
        node = _beside(value, beside)
        for condition, branch in reversed(self._branches):
            node = Call("if_", (condition, _beside(branch, beside), node))
        return Expr(node, beside.kind)


def when(condition: Expr[bool] | str, value: Any) -> _Case:
    """A choice: `when(Fix.speed < 2, "walk").when(Fix.speed < 8, "bike").otherwise("motor")`.

    A condition may be a text of SQL. A value that is a text is that text.
    """
    return _Case(((_condition(condition), value),))


def _condition(condition: Expr[bool] | str) -> Node:
    if isinstance(condition, str):
        from catchment.program.sql.unplaced import parse_unplaced  # sqlglot is loaded only where SQL is written

        return parse_unplaced(condition, author_line())
    return condition.node
