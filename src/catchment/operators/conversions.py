"""Casts as fast Python, for compiled expressions to call; those that are an operator are written in line.

>>> CONVERSIONS["str", "instant"]("1969-12-31T23:59:59Z"), CONVERSIONS["instant", "str"](-1)
(-1000000, '1969-12-31T23:59:59.999999Z')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from catchment.program.row_error import INVALID_CAST, OVERFLOW, RowError

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_int = re.compile(r"[+-]?[0-9]+").fullmatch
_float = re.compile(r"(?i:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?|nan)").fullmatch
_instant = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3])(?::[0-9]{2}){2}(\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])"
).fullmatch


def truncate(value: float) -> int:
    """The whole part, where 64 bits hold it."""
    if -9223372036854775808.0 <= value < 9223372036854775808.0:
        return int(value)
    raise RowError(OVERFLOW if value == value else INVALID_CAST)


def read_int(text: str) -> int:
    """Decimal digits with a sign or without; nothing around them."""
    if _int(text) is None:
        raise RowError(INVALID_CAST)
    # Python refuses to read thousands of digits, and none of them would fit.
    value = int(text) if len(text) < 100 else int(_without_leading_zeros(text))
    if _INT64_MIN <= value <= _INT64_MAX:
        return value
    raise RowError(OVERFLOW)


def _without_leading_zeros(text: str) -> str:
    sign = text[0] if text[0] in "+-" else ""
    return sign + text[len(sign) :].lstrip("0")[:100].rjust(1, "0")


def read_float(text: str) -> float:
    """A decimal number, `inf`, `infinity` or `nan`; nothing around it."""
    if _float(text) is None:
        raise RowError(INVALID_CAST)
    return float(text)


def read_instant(text: str) -> int:
    """RFC 3339 with a time zone, to the microsecond."""
    match = _instant(text)
    if match is None:
        raise RowError(INVALID_CAST)
    fraction = match[1]
    try:
        # Python reads fractions of three or six digits only, so the fraction is added here.
        moment = datetime.fromisoformat(text if fraction is None else text.replace(fraction, "", 1))
    except ValueError:
        raise RowError(INVALID_CAST) from None
    whole = (moment - _EPOCH) // _MICROSECOND
    return whole if fraction is None else whole + int(fraction[1:].ljust(6, "0"))


def write_instant(at: int) -> str:
    """RFC 3339 in UTC, always with six digits of fraction, so that texts sort as instants do."""
    try:
        moment = _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        raise RowError(OVERFLOW) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


CONVERSIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("float", "int"): truncate,
    ("int", "str"): str,
    ("str", "int"): read_int,
    ("str", "float"): read_float,
    ("instant", "str"): write_instant,
    ("str", "instant"): read_instant,
}
