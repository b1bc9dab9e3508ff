"""Conversions between types, for values that are not null: exact, or a failure of the row.

>>> cast("2024-02-29T12:00:00.5+01:00", "str", "instant"), cast(-2.9, "float", "int"), cast(True, "bool", "str")
(1709204400500000, -2, 'true')
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from catchment.engines.reference.functions import EPOCH, MICROSECOND, whole
from catchment.program.row_error import INVALID_CAST, OVERFLOW, RowError

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
# RFC 3339: the zone is required, because a wall clock without one names no instant.
_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d{1,6})?(Z|([+-])(0\d|1[0-4]):([0-5]\d))", re.ASCII
)
_YEAR_1 = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
_YEAR_9999_END = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - EPOCH) // MICROSECOND


def cast(value: Any, given: str, to: str) -> Any:
    """The value converted; both types are named, and are a pair of `CASTS`."""
    return _CASTS[given, to](value)


def _truncated(value: float) -> int:
    if math.isnan(value):
        raise RowError(INVALID_CAST)
    if math.isinf(value):
        raise RowError(OVERFLOW)
    return whole(math.trunc(value))


def _read_int(text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise RowError(INVALID_CAST)
    digits = text.lstrip("+-").lstrip("0")
    # More digits than 64 bits hold; Python itself refuses to read thousands of them.
    if len(digits) > 19:
        raise RowError(OVERFLOW)
    return whole(int(text[0].strip("+0123456789") + (digits or "0")))


def _read_float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise RowError(INVALID_CAST)
    return float(text)


def _read_instant(text: str) -> int:
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise RowError(INVALID_CAST)
    year, month, day, hour, minute, second, fraction, zone, sign, hours, minutes = match.groups()
    ahead = timedelta(0) if zone == "Z" else timedelta(hours=int(hours), minutes=int(minutes))
    offset = timezone(-ahead if sign == "-" else ahead)
    try:
        there = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=offset)
    except ValueError:
        raise RowError(INVALID_CAST) from None
    return (there - EPOCH) // MICROSECOND + (int(fraction[1:].ljust(6, "0")) if fraction else 0)


def _write_instant(instant: int) -> str:
    if not _YEAR_1 <= instant <= _YEAR_9999_END:
        raise RowError(OVERFLOW)
    at = EPOCH + instant * MICROSECOND
    return f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}.{at.microsecond:06}Z"


def _unchanged(value: int) -> int:
    return value


_CASTS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "float"): float,
    ("float", "int"): _truncated,
    ("int", "str"): str,
    ("str", "int"): _read_int,
    ("str", "float"): _read_float,
    ("bool", "int"): int,
    ("bool", "str"): lambda value: "true" if value else "false",
    ("int", "instant"): _unchanged,
    ("instant", "int"): _unchanged,
    ("int", "duration"): _unchanged,
    ("duration", "int"): _unchanged,
    ("instant", "str"): _write_instant,
    ("str", "instant"): _read_instant,
}
