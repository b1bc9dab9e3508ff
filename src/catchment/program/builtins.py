"""Built-in functions as an author calls them; each builds a node of the function with that name.

Named for reading after `cm.`: `cm.distance_m(...)`, `cm.hour(Fix.at)`. Their meaning is in `functions`.
"""

from __future__ import annotations

from typing import Any

from catchment.program.expression import Expr, literal
from catchment.program.nodes import Call
from catchment.program.types import BOOL, DURATION, FLOAT, INSTANT, INT, STR, DataType, Duration, Instant

Number = Expr[float] | Expr[float | None] | float
Text = Expr[str] | Expr[str | None] | str
Moment = Expr[Instant] | Expr[Instant | None]


def call(function: str, *args: Any, kind: DataType | None = None) -> Expr[Any]:
    """A call of a built-in by name."""
    return Expr(Call(function, tuple(arg.node if isinstance(arg, Expr) else literal(arg) for arg in args)), kind)


def sqrt(value: Number) -> Expr[float]:
    """The square root; of a negative number it fails the row."""
    return call("sqrt", value, kind=FLOAT)


def exp(value: Number) -> Expr[float]:
    """The exponential."""
    return call("exp", value, kind=FLOAT)


def ln(value: Number) -> Expr[float]:
    """The natural logarithm; of a number not above zero it fails the row."""
    return call("ln", value, kind=FLOAT)


def sin(value: Number) -> Expr[float]:
    """The sine of radians."""
    return call("sin", value, kind=FLOAT)


def cos(value: Number) -> Expr[float]:
    """The cosine of radians."""
    return call("cos", value, kind=FLOAT)


def atan2(y: Number, x: Number) -> Expr[float]:
    """The angle of (x, y) in radians."""
    return call("atan2", y, x, kind=FLOAT)


def radians(value: Number) -> Expr[float]:
    """Degrees as radians."""
    return call("radians", value, kind=FLOAT)


def degrees(value: Number) -> Expr[float]:
    """Radians as degrees."""
    return call("degrees", value, kind=FLOAT)


def floor(value: Number) -> Expr[float]:
    """The whole number at or below."""
    return call("floor", value, kind=FLOAT)


def ceil(value: Number) -> Expr[float]:
    """The whole number at or above."""
    return call("ceil", value, kind=FLOAT)


def round_(value: Number) -> Expr[float]:
    """The nearest whole number; ties go to the even one."""
    return call("round", value, kind=FLOAT)


def round_to(value: Number, step: float) -> Expr[float]:
    """The nearest multiple of `step`; ties go to the even one."""
    return call("round_to", value, float(step), kind=FLOAT)


def least(left: Expr[Any], right: Any) -> Expr[Any]:
    """The smaller of two, passing over nulls."""
    return call("least", left, right, kind=left.kind)


def greatest(left: Expr[Any], right: Any) -> Expr[Any]:
    """The larger of two, passing over nulls."""
    return call("greatest", left, right, kind=left.kind)


def null_if(value: Expr[Any], other: Any) -> Expr[Any]:
    """Null where the value equals `other`."""
    return call("null_if", value, other, kind=value.kind)


def is_nan(value: Expr[float] | Expr[float | None]) -> Expr[bool]:
    """Whether the value is not-a-number."""
    return call("is_nan", value, kind=BOOL)


def distance_m(lat_deg: Number, lon_deg: Number, other_lat_deg: Number, other_lon_deg: Number) -> Expr[float]:
    """Great-circle metres between two places (haversine, radius 6,371,008.8 m)."""
    return call("distance_m", lat_deg, lon_deg, other_lat_deg, other_lon_deg, kind=FLOAT)


def concat(*parts: Text) -> Expr[str]:
    """The texts one after the other."""
    return call("concat", *parts, kind=STR)


def length(text: Text) -> Expr[int]:
    """How many code points the text has."""
    return call("length", text, kind=INT)


def upper(text: Text) -> Expr[str]:
    """In upper case."""
    return call("upper", text, kind=STR)


def lower(text: Text) -> Expr[str]:
    """In lower case."""
    return call("lower", text, kind=STR)


def trim(text: Text) -> Expr[str]:
    """Without spaces at both ends."""
    return call("trim", text, kind=STR)


def substring(text: Text, start: Expr[int] | int, size: Expr[int] | int) -> Expr[str]:
    """So many code points from a position counted from 0."""
    return call("substring", text, start, size, kind=STR)


def starts_with(text: Text, prefix: Text) -> Expr[bool]:
    """Whether the text begins so."""
    return call("starts_with", text, prefix, kind=BOOL)


def ends_with(text: Text, suffix: Text) -> Expr[bool]:
    """Whether the text ends so."""
    return call("ends_with", text, suffix, kind=BOOL)


def contains(text: Text, part: Text) -> Expr[bool]:
    """Whether the part stands in the text."""
    return call("contains", text, part, kind=BOOL)


def replace(text: Text, find: Text, put: Text) -> Expr[str]:
    """The text with every `find` replaced."""
    return call("replace", text, find, put, kind=STR)


def crc32(text: Text) -> Expr[int]:
    """A checksum of the text's UTF-8 bytes: the same number on every engine, for sampling and spreading."""
    return call("crc32", text, kind=INT)


def year(at: Moment) -> Expr[int]:
    """The year in UTC."""
    return call("year", at, kind=INT)


def month(at: Moment) -> Expr[int]:
    """The month, 1 to 12, in UTC."""
    return call("month", at, kind=INT)


def day(at: Moment) -> Expr[int]:
    """The day of the month in UTC."""
    return call("day", at, kind=INT)


def hour(at: Moment) -> Expr[int]:
    """The hour in UTC."""
    return call("hour", at, kind=INT)


def minute(at: Moment) -> Expr[int]:
    """The minute in UTC."""
    return call("minute", at, kind=INT)


def second(at: Moment) -> Expr[int]:
    """The second in UTC."""
    return call("second", at, kind=INT)


def weekday(at: Moment) -> Expr[int]:
    """The day of the week in UTC; Monday is 0."""
    return call("weekday", at, kind=INT)


def floor_to(at: Moment, unit: Duration) -> Expr[Instant]:
    """The last multiple of `unit` (since 1970) at or before the instant."""
    return call("floor_to", at, Expr(literal(unit, DURATION), DURATION), kind=INSTANT)


def in_zone(at: Moment, zone: Text) -> Expr[Instant]:
    """The wall clock of a time zone, written as if it were UTC: `hour(in_zone(Fix.at, "Asia/Tokyo"))`."""
    return call("in_zone", at, zone, kind=INSTANT)
