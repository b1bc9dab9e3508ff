"""What SQL calls things, and what we call them: operators, functions, types, units of time."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sqlglot import exp

from catchment.program.functions import FUNCTIONS
from catchment.program.types import BOOL, FLOAT, INSTANT, INT, STR, DataType

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.IntDiv: "floordiv",
    exp.Mod: "mod",
    exp.Pow: "pow",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "same",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "concat",
    exp.Nullif: "null_if",
    exp.Atan2: "atan2",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
}
"""Trees of two operands."""

SIMPLE: dict[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Abs: "abs",
    exp.Sqrt: "sqrt",
    exp.Exp: "exp",
    exp.Ln: "ln",
    exp.Sin: "sin",
    exp.Cos: "cos",
    exp.Radians: "radians",
    exp.Degrees: "degrees",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.IsNan: "is_nan",
    exp.Coalesce: "coalesce",
    exp.Concat: "concat",
    exp.Length: "length",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Replace: "replace",
    exp.Unhex: "unhex",
    exp.ArraySize: "size",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.AtTimeZone: "in_zone",
}
"""Trees whose parts, in order, are the arguments."""

UNREPEATABLE = (
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentDatetime,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
)
"""Trees that would give another value each time."""
UNREPEATABLE_NAMES = frozenset({"now", "today", "sysdate", "getdate", "unix_timestamp", "gen_random_uuid", "setseed"})

EXTRACTS: dict[str, str] = {name: name for name in ("year", "month", "day", "hour", "minute", "second")}

UNITS_US: dict[str, int] = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}

CASTS_TO: dict[str, DataType] = {
    **dict.fromkeys(("INT", "BIGINT"), INT),
    **dict.fromkeys(("DOUBLE", "FLOAT"), FLOAT),
    **dict.fromkeys(("TEXT", "VARCHAR"), STR),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), INSTANT),
    "BOOLEAN": BOOL,
}

FUNCTION_NAMES: dict[str, str] = {
    **{name: name for name in FUNCTIONS},
    **{name.rstrip("_"): name for name in FUNCTIONS},
    "iff": "if_",
    "array_length": "size",
}
"""Functions by the names that SQLGlot does not know: ours."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)), None)
