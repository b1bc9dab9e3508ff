"""The built-in functions: names, types and null behaviour. Closed: an engine implements all of them.

Meaning is pinned by golden vectors, one file per function in `tests/golden`, that run on every engine; a function
without vectors does not pass. One semantics everywhere:

- null in, null out (SQL), except where `strict` is false: `and`, `or`, `coalesce`, `if_`, `is_null`, `same`, ...
- ints have 64 bits and overflow is an error of the row, as is division by zero; `/` gives a float;
  `//` and `%` round toward minus infinity, as in Python
- floats compare by IEEE 754: NaN equals nothing; min, max and order put NaN last, and -0.0 equals 0.0
- instants are microseconds in UTC, text is measured in code points

An error fails the row, which is quarantined with its reason; the query goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    NULL,
    STR,
    DataType,
    ListType,
    ScalarType,
)


@dataclass(frozen=True, slots=True)
class Typed:
    """The type of an expression, and whether it may be null."""

    type: DataType
    nullable: bool = False


Rule = Callable[[tuple[DataType, ...]], DataType | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in: `rule` gives the result's type, or None where the arguments do not fit `takes`."""

    name: str
    rule: Rule
    takes: str
    strict: bool = True
    may_fail: bool = False


_NUMBERS = (INT, FLOAT)


def _fits(given: DataType, wanted: DataType) -> bool:
    return given in (wanted, NULL) or (given == INT and wanted == FLOAT)


def _exactly(*params: DataType, gives: DataType) -> Rule:
    def rule(args: tuple[DataType, ...]) -> DataType | None:
        fits = len(args) == len(params) and all(map(_fits, args, params))
        return gives if fits else None

    return rule


def common(args: tuple[DataType, ...]) -> DataType | None:
    """The one type that all of them are, where an int may serve as a float and null as anything."""
    known = [arg for arg in args if arg != NULL]
    if not known:
        return NULL
    if all(kind == known[0] for kind in known):
        return known[0]
    return FLOAT if all(kind in _NUMBERS for kind in known) else None


def _comparable(args: tuple[DataType, ...]) -> DataType | None:
    if len(args) != 2:
        return None
    kind = common(args)
    return BOOL if isinstance(kind, ScalarType) else None


def _ordered(args: tuple[DataType, ...]) -> DataType | None:
    return _comparable(args) if common(args) != BOOL else None


def _numeric(args: tuple[DataType, ...]) -> DataType | None:
    kind = common(args)
    return kind if kind in (*_NUMBERS, DURATION, NULL) else None


def _add(args: tuple[DataType, ...]) -> DataType | None:
    match args:
        case (left, right) if {left, right} == {ScalarType("instant"), ScalarType("duration")}:
            return INSTANT
        case (_, _):
            return _numeric(args)
        case _:
            return None


def _subtract(args: tuple[DataType, ...]) -> DataType | None:
    match args:
        case (ScalarType("instant"), ScalarType("instant")):
            return DURATION
        case (ScalarType("instant"), ScalarType("duration")):
            return INSTANT
        case (_, _):
            return _numeric(args)
        case _:
            return None


def _multiply(args: tuple[DataType, ...]) -> DataType | None:
    if len(args) != 2:
        return None
    if DURATION in args:
        other = args[1] if args[0] == DURATION else args[0]
        return DURATION if other == INT else None
    kind = common(args)
    return kind if kind in (*_NUMBERS, NULL) else None


def _divide(args: tuple[DataType, ...]) -> DataType | None:
    kind = common(args) if len(args) == 2 else None
    return FLOAT if kind in (*_NUMBERS, DURATION, NULL) else None


def _floor_divide(args: tuple[DataType, ...]) -> DataType | None:
    match args:
        case (ScalarType("duration"), ScalarType("int")):
            return DURATION
        case (ScalarType("duration"), ScalarType("duration")):
            return INT
        case (_, _):
            kind = common(args)
            return kind if kind in (*_NUMBERS, NULL) else None
        case _:
            return None


def _unary_number(args: tuple[DataType, ...]) -> DataType | None:
    return _numeric(args) if len(args) == 1 else None


def _all_bool(args: tuple[DataType, ...]) -> DataType | None:
    return BOOL if len(args) == 2 and all(arg in (BOOL, NULL) for arg in args) else None


def _same_kind(args: tuple[DataType, ...]) -> DataType | None:
    return common(args) if args else None


def _if(args: tuple[DataType, ...]) -> DataType | None:
    return common(args[1:]) if len(args) == 3 and args[0] in (BOOL, NULL) else None


def _in(args: tuple[DataType, ...]) -> DataType | None:
    return BOOL if len(args) >= 2 and isinstance(common(args), ScalarType) else None


def _concat(args: tuple[DataType, ...]) -> DataType | None:
    return STR if args and all(arg in (STR, NULL) for arg in args) else None


def _any_one(gives: DataType) -> Rule:
    return lambda args: gives if len(args) == 1 else None


def _null_if(args: tuple[DataType, ...]) -> DataType | None:
    return args[0] if _comparable(args) is not None else None


def _size(args: tuple[DataType, ...]) -> DataType | None:
    return INT if len(args) == 1 and isinstance(args[0], ListType) else None


def _item(args: tuple[DataType, ...]) -> DataType | None:
    match args:
        case (ListType(element), ScalarType("int")):
            return element
        case _:
            return None


def _floats(count: int) -> Rule:
    return _exactly(*([FLOAT] * count), gives=FLOAT)


def _all() -> tuple[Function, ...]:
    number = "numbers, or durations"
    return (
        Function("add", _add, f"two {number}, or an instant and a duration", may_fail=True),
        Function("sub", _subtract, f"two {number}, two instants, or an instant and a duration", may_fail=True),
        Function("mul", _multiply, "two numbers, or a duration and an int", may_fail=True),
        Function("div", _divide, "two numbers or two durations", may_fail=True),
        Function("floordiv", _floor_divide, "two numbers, two durations, or a duration and an int", may_fail=True),
        Function("mod", lambda a: _numeric(a) if len(a) == 2 else None, f"two {number}", may_fail=True),
        Function("neg", _unary_number, "a number or a duration", may_fail=True),
        Function("abs", _unary_number, "a number or a duration", may_fail=True),
        Function("eq", _comparable, "two values of one type"),
        Function("ne", _comparable, "two values of one type"),
        Function("lt", _ordered, "two values of one ordered type"),
        Function("le", _ordered, "two values of one ordered type"),
        Function("gt", _ordered, "two values of one ordered type"),
        Function("ge", _ordered, "two values of one ordered type"),
        Function("same", _comparable, "two values of one type (null is the same as null)", strict=False),
        Function("in_", _in, "a value and candidates of its type", strict=False),
        Function("and", _all_bool, "two booleans", strict=False),
        Function("or", _all_bool, "two booleans", strict=False),
        Function("not", lambda a: BOOL if len(a) == 1 and a[0] in (BOOL, NULL) else None, "a boolean"),
        Function("is_null", _any_one(BOOL), "any value", strict=False),
        Function("is_nan", _exactly(FLOAT, gives=BOOL), "a float"),
        Function("coalesce", _same_kind, "values of one type", strict=False),
        Function("null_if", _null_if, "two values of one type", strict=False),
        Function("if_", _if, "a boolean and two values of one type", strict=False),
        Function("nan", lambda a: FLOAT if not a else None, "nothing"),
        Function("infinity", lambda a: FLOAT if not a else None, "nothing"),
        Function("sqrt", _floats(1), "a float", may_fail=True),
        Function("exp", _floats(1), "a float"),
        Function("ln", _floats(1), "a float", may_fail=True),
        Function("pow", _floats(2), "two floats", may_fail=True),
        Function("sin", _floats(1), "radians"),
        Function("cos", _floats(1), "radians"),
        Function("atan2", _floats(2), "two floats"),
        Function("radians", _floats(1), "degrees"),
        Function("degrees", _floats(1), "radians"),
        Function("floor", _exactly(FLOAT, gives=FLOAT), "a float"),
        Function("ceil", _exactly(FLOAT, gives=FLOAT), "a float"),
        Function("round", _exactly(FLOAT, gives=FLOAT), "a float; ties go to the even number"),
        Function("round_to", _exactly(FLOAT, FLOAT, gives=FLOAT), "a float and a step", may_fail=True),
        Function("least", lambda a: common(a) if _ordered(a) else None, "two values of one ordered type", strict=False),
        Function(
            "greatest", lambda a: common(a) if _ordered(a) else None, "two values of one ordered type", strict=False
        ),
        Function("distance_m", _floats(4), "latitude and longitude of two places, in degrees"),
        Function("concat", _concat, "texts"),
        Function("length", _exactly(STR, gives=INT), "a text"),
        Function("upper", _exactly(STR, gives=STR), "a text"),
        Function("lower", _exactly(STR, gives=STR), "a text"),
        Function("trim", _exactly(STR, gives=STR), "a text"),
        Function("substring", _exactly(STR, INT, INT, gives=STR), "a text, a start counted from 0, and a length"),
        Function("starts_with", _exactly(STR, STR, gives=BOOL), "two texts"),
        Function("ends_with", _exactly(STR, STR, gives=BOOL), "two texts"),
        Function("contains", _exactly(STR, STR, gives=BOOL), "two texts"),
        Function("replace", _exactly(STR, STR, STR, gives=STR), "a text, what to find and what to put there"),
        Function("unhex", _exactly(STR, gives=BYTES), "hexadecimal digits", may_fail=True),
        Function("crc32", _exactly(STR, gives=INT), "a text"),
        Function("year", _exactly(INSTANT, gives=INT), "an instant"),
        Function("month", _exactly(INSTANT, gives=INT), "an instant"),
        Function("day", _exactly(INSTANT, gives=INT), "an instant"),
        Function("hour", _exactly(INSTANT, gives=INT), "an instant"),
        Function("minute", _exactly(INSTANT, gives=INT), "an instant"),
        Function("second", _exactly(INSTANT, gives=INT), "an instant"),
        Function("weekday", _exactly(INSTANT, gives=INT), "an instant; Monday is 0"),
        Function("floor_to", _exactly(INSTANT, DURATION, gives=INSTANT), "an instant and a duration", may_fail=True),
        Function("in_zone", _exactly(INSTANT, STR, gives=INSTANT), "an instant and a time zone's name", may_fail=True),
        Function("size", _size, "a list"),
        Function("item", _item, "a list and a position counted from 0; null where there is none", strict=True),
    )


FUNCTIONS: dict[str, Function] = {function.name: function for function in _all()}

CASTS: frozenset[tuple[str, str]] = frozenset(
    {
        ("int", "float"),
        ("float", "int"),
        ("int", "str"),
        ("str", "int"),
        ("str", "float"),
        ("bool", "int"),
        ("bool", "str"),
        ("int", "instant"),
        ("instant", "int"),
        ("int", "duration"),
        ("duration", "int"),
        ("instant", "str"),
        ("str", "instant"),
    }
)
"""Conversions that mean the same everywhere. A float to text is not among them: engines print floats differently."""

YIELDS_NULL: frozenset[str] = frozenset({"null_if", "item"})
"""Functions that may give null though no argument is."""
