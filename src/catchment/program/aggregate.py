"""Aggregates over a window, a state or a pane: as data, with the type of what each gives.

Where the argument has a `step`, sums are of whole steps, so the order of addition does not matter; nulls are
passed over, as in SQL; an aggregate of no values is null, and a count is zero.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from catchment.errors import ProgramError, SourceLine, author_line
from catchment.program.expression import Expr
from catchment.program.function import EVERYWHERE, declare, declared, reference_to, sites
from catchment.program.functions import Typed
from catchment.program.nodes import Node
from catchment.program.plain import plain
from catchment.program.record import data_type
from catchment.program.site import Site
from catchment.program.types import DURATION, FLOAT, INT, NULL, Column, DataType, ListType, ScalarType, Schema
from catchment.program.typing import infer, step_of

T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")
S = TypeVar("S")
R = TypeVar("R")


class AggregateCall(msgspec.Struct, frozen=True):
    """An aggregate as data: which, of what, and with which whole-number parameters (k of topk, bins of dft).

    `step` is the resolution of its argument; `reference` names a user's aggregate, whose `parameters` are its own.
    """

    function: str
    args: tuple[Node, ...] = ()
    k: int = 0
    step: float | None = None
    reference: str | None = None
    parameters: dict[str, Any] | None = None

    def __hash__(self) -> int:
        return hash((self.function, self.args, self.k, self.reference))


class Aggregate(Generic[T_co]):
    """An aggregate as an author names it: `mean(Fix.speed_mps)`, or `mean("speed_mps * 3.6")`."""

    def __init__(self, call: AggregateCall, at: SourceLine, *of: Expr[Any] | str) -> None:
        self._call = call
        self._of = of
        self.at = at

    def over(self, schema: Schema) -> AggregateCall:
        """The call over elements of this schema, which a text of SQL needs to know its fields."""
        from catchment.program.making.draft import expression  # it makes steps, which hold aggregates

        return msgspec.structs.replace(self._call, args=tuple(expression(of, (schema,), self.at) for of in self._of))


class UserAggregate(Generic[V, S, R]):
    """A user's own aggregate, from `merge`, and `remove` where it can be undone (overlapping windows then slide).

    The summary `S` must be plain data: numbers, texts, tuples of these.
    """

    runs_on: ClassVar[tuple[Site, ...]] = EVERYWHERE
    """The sites where this class, and what it imports, is there."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.runs_on = sites(cls.runs_on, cls.__name__)

    def lift(self, value: V) -> S:
        """The summary of one value."""
        return value  # type: ignore[return-value]

    def merge(self, left: S, right: S) -> S:
        """The summary of both; must be associative and commutative."""
        return left  # a class that does not define it is refused before a value comes

    def lower(self, summary: S) -> R:
        """The result of a summary."""
        return summary  # type: ignore[return-value]

    def __call__(self, value: Expr[V] | str) -> Aggregate[R]:
        """This aggregate of an expression."""
        at = author_line()
        name = type(self).__name__
        if type(self).merge is UserAggregate.merge:
            raise ProgramError(
                "C160",
                f"{name} has no merge",
                why="a user's aggregate is made of merge(left, right)",
                fix="define merge, and remove if values can be taken out again",
                at=at,
            )
        reference = reference_to(type(self))
        declare(type(self), reference)
        parameters = {key: plain(given, f"{name}.{key}", at) for key, given in sorted(vars(self).items())}
        return Aggregate(AggregateCall("user", reference=reference, parameters=parameters), at, value)


def _of(function: str, *of: Expr[Any] | str, k: int = 0) -> Aggregate[Any]:
    return Aggregate(AggregateCall(function, k=k), author_line(), *of)


def count_() -> Aggregate[int]:
    """How many elements."""
    return _of("count")


def sum_(value: Expr[V] | str) -> Aggregate[V]:
    """The sum."""
    return _of("sum", value)


def mean(value: Expr[float] | Expr[float | None] | str) -> Aggregate[float]:
    """The arithmetic mean."""
    return _of("mean", value)


def variance(value: Expr[float] | Expr[float | None] | str) -> Aggregate[float]:
    """The population variance."""
    return _of("variance", value)


def min_(value: Expr[V] | str) -> Aggregate[V]:
    """The smallest."""
    return _of("min", value)


def max_(value: Expr[V] | str) -> Aggregate[V]:
    """The largest; not-a-number is larger than all."""
    return _of("max", value)


def first(value: Expr[V] | str) -> Aggregate[V]:
    """The value of the earliest element, null or not."""
    return _of("first", value)


def last(value: Expr[V] | str) -> Aggregate[V]:
    """The value of the latest element, null or not."""
    return _of("last", value)


def count_distinct(value: Expr[Any] | str) -> Aggregate[int]:
    """How many different values."""
    return _of("count_distinct", value)


def collect(value: Expr[V] | str) -> Aggregate[tuple[V, ...]]:
    """All values in order of event time, as a list."""
    return _of("collect", value)


def top(k: int, value: Expr[V] | str) -> Aggregate[tuple[V, ...]]:
    """The k most frequent values, most frequent first; ties by the smaller value."""
    if k < 1:
        raise ProgramError(
            "C161",
            f"top({k}, ...) asks for nothing",
            why="k is how many values",
            fix="give k=1 or more",
            at=author_line(),
        )
    return _of("top", value, k=k)


def dft(value: Expr[float] | str, bins: int) -> Aggregate[tuple[float, ...]]:
    """Magnitudes of the first `bins` coefficients of the discrete Fourier transform, in order of event time."""
    if bins < 1:
        raise ProgramError(
            "C162",
            f"dft(bins={bins}) asks for nothing",
            why="bins counts coefficients",
            fix="give 1 or more",
            at=author_line(),
        )
    return _of("dft", value, k=bins)


_NUMERIC = (INT, FLOAT, DURATION)


def result(aggregate: Aggregate[Any], schema: Schema) -> tuple[AggregateCall, Typed]:
    """The call with its argument's step filled in, and the type that it gives over elements of this schema."""
    call = aggregate.over(schema)
    args = tuple(infer(node, (schema,), aggregate.at) for node in call.args)
    if call.function == "user":
        return call, _user_result(call, args[0], aggregate.at)
    if call.function == "count":
        return call, Typed(INT)
    given = args[0]
    kind: DataType | None
    match call.function:
        case "sum":
            kind = given.type if given.type in _NUMERIC else None
        case "mean" | "variance":
            kind = FLOAT if given.type in _NUMERIC else None
        case "dft":
            kind = ListType(FLOAT) if given.type in (INT, FLOAT) else None
        case "count_distinct":
            kind = INT if isinstance(given.type, ScalarType) else None
        case "top":
            kind = ListType(given.type) if isinstance(given.type, ScalarType) else None
        case "collect":
            kind = ListType(given.type)
        case "min" | "max":
            kind = given.type if isinstance(given.type, ScalarType) and given.type != NULL else None
        case _:
            kind = given.type
    if kind is None:
        raise ProgramError(
            "C163",
            f"{call.function} does not take {given.type}",
            why="sum, mean, variance and dft take numbers; min, max, top and count_distinct take single values",
            fix="give it a field of a fitting type, or convert one with .cast(float)",
            at=aggregate.at,
        )
    nullable = given.nullable if call.function in ("sum", "mean", "variance", "min", "max", "first", "last") else False
    step = step_of(call.args[0], schema) if call.function in ("sum", "mean", "variance") else None
    return msgspec.structs.replace(call, step=step), Typed(kind, nullable)


def _user_result(call: AggregateCall, given: Typed, at: SourceLine) -> Typed:
    cls = declared(call.reference or "")
    for base in getattr(cls, "__orig_bases__", ()):
        args: tuple[Any, ...] = getattr(base, "__args__", ())
        if len(args) != 3 or any(isinstance(arg, TypeVar) for arg in args):
            continue
        takes, _ = data_type(args[0], f"the value of {cls.__name__}")
        if given.type not in (takes, NULL) and (given.type, takes) != (INT, FLOAT):
            raise ProgramError(
                "C166",
                f"{cls.__name__} takes {takes} and is given {given.type}",
                why="its lift and merge were written for values of the type that it declares",
                fix=f"convert the value with .cast(...), or declare {cls.__name__} for {given.type}",
                at=at,
            )
        kind, nullable = data_type(args[2], f"the result of {cls.__name__}")
        return Typed(kind, nullable or given.nullable)
    raise ProgramError(
        "C164",
        f"{cls.__name__} does not say what it takes and gives",
        why="its result becomes a field, which has a type",
        fix=f"write class {cls.__name__}(cm.UserAggregate[Value, Summary, Result])",
        at=at,
    )


class NamedAggregate(msgspec.Struct, frozen=True):
    """An aggregate and the field that it becomes."""

    name: str
    call: AggregateCall
    type: DataType
    nullable: bool = False


def named(schema: Schema, columns: dict[str, Aggregate[Any]], at: SourceLine) -> tuple[NamedAggregate, ...]:
    """The aggregates of `agg(name=...)`, typed."""
    found = []
    for name, aggregate in columns.items():
        if not isinstance(aggregate, Aggregate):
            given = "an expression" if isinstance(aggregate, Expr) else repr(aggregate)
            raise ProgramError(
                "C165",
                f"{name} is given {given}, not an aggregate",
                why="a window gives one value of many elements",
                fix=f"say which, e.g. {name}=cm.last(...) or cm.mean(...)",
                at=at,
            )
        call, typed = result(aggregate, schema)
        found.append(NamedAggregate(name, call, typed.type, typed.nullable))
    return tuple(found)


def columns_of(aggregates: tuple[NamedAggregate, ...]) -> tuple[Column, ...]:
    """The fields that aggregates become; a sum keeps the resolution of what it sums."""
    return tuple(
        Column(a.name, a.type, nullable=a.nullable, step=a.call.step if a.call.function == "sum" else None)
        for a in aggregates
    )
