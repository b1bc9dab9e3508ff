"""What each strict function means for arguments that are not null: one definition each, written to be checked by eye.

Where it is not slower than it must be, exact arithmetic (`Fraction`) and the calendar (`datetime`) stand in for clever
formulas, so that this differs in method from the engines that it judges. `tests/golden` pins each of these.

>>> STRICT["mod"](-7, 3), STRICT["round"](2.5), STRICT["substring"]("héllo", 1, 3)
(2, 2.0, 'éll')
"""

from __future__ import annotations

import math
import re
import string
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from catchment.program.resolution import per_unit
from catchment.program.row_error import DIVISION_BY_ZERO, DOMAIN, INVALID_HEX, OVERFLOW, UNKNOWN_ZONE, RowError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
EARTH_RADIUS_M = 6371008.8
# One day inside the years 1 to 9999, so that no time zone leads out of them.
CALENDAR_FIRST = (datetime(1, 1, 2, tzinfo=UTC) - EPOCH) // MICROSECOND
CALENDAR_LAST = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // MICROSECOND - 1
FOUR_CENTURIES = timedelta(days=146_097)


def whole(value: int) -> int:
    """An int of 64 bits, or a failure."""
    if not -(2**63) <= value < 2**63:
        raise RowError(OVERFLOW)
    return value


def _number(value: Any) -> Any:
    return whole(value) if isinstance(value, int) else value


def _nonzero(value: Any) -> Any:
    if value == 0:
        raise RowError(DIVISION_BY_ZERO)
    return value


def same(left: Any, right: Any) -> bool:
    """Equal, or both null, or both NaN: the values cannot be told apart."""
    if left is None or right is None:
        return left is right
    return bool(left == right) or (left != left and right != right)


def _least(left: Any, right: Any) -> Any:
    if left != left:
        return right
    return right if right < left else left


def _greatest(left: Any, right: Any) -> Any:
    if left != left:
        return left
    return right if right > left or right != right else left


def _to_whole(value: float, rounding: Callable[[Fraction], int]) -> float:
    # A whole number has no sign when it is zero: 0.0, never -0.0.
    return float(rounding(Fraction(value))) if math.isfinite(value) else value


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _sqrt(value: float) -> float:
    if value < 0:
        raise RowError(DOMAIN)
    return math.sqrt(value)


def _ln(value: float) -> float:
    if value <= 0:
        raise RowError(DOMAIN)
    return math.log(value)


def _pow(base: float, power: float) -> float:
    if base == 0 and power < 0:
        raise RowError(DOMAIN)
    if math.isfinite(base) and base < 0 and math.isfinite(power) and not power.is_integer():
        raise RowError(DOMAIN)
    if abs(base) == 1 and math.isinf(power):
        return 1.0
    if base == 1:
        return 1.0
    try:
        return math.pow(base, power)
    except OverflowError:
        odd = power % 2 == 1
        return -math.inf if base < 0 and odd else math.inf


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if math.isfinite(value) else math.nan


def _round_to(value: float, step: float) -> float:
    if not (step > 0 and math.isfinite(step)):
        raise RowError(DOMAIN)
    inverse = per_unit(step)
    steps = value * inverse if inverse is not None else value / step
    if not abs(steps) < 2**53:
        # Neighbouring floats are further apart than the steps (or it is NaN): there is nothing to round.
        return value
    nearest = round(Fraction(steps))
    return nearest / inverse if inverse is not None else nearest * step


def _distance_m(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """The haversine formula on a sphere of the Earth's mean radius."""
    if not all(map(math.isfinite, (lat1, lon1, lat2, lon2))):
        return math.nan
    north = math.sin(math.radians(lat2 - lat1) / 2)
    east = math.sin(math.radians(lon2 - lon1) / 2)
    half = north * north + math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * east * east
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, half)))


def _substring(text: str, start: int, length: int) -> str:
    return "".join(character for at, character in enumerate(text) if start <= at < start + length)


def _unhex(text: str) -> bytes:
    if len(text) % 2 or not set(text) <= set(string.hexdigits):
        raise RowError(INVALID_HEX)
    return bytes(int(text[at : at + 2], 16) for at in range(0, len(text), 2))


def calendar(instant: int) -> tuple[datetime, int]:
    """The date and time in UTC, and how many years to add: the calendar repeats every four centuries."""
    cycles, moved = divmod(timedelta(microseconds=1) * instant, FOUR_CENTURIES)
    return EPOCH + moved, 400 * cycles


def _floor_to(instant: int, every: int) -> int:
    if every <= 0:
        raise RowError(DOMAIN)
    return whole(instant // every * every)


_ZONE = re.compile(r"(?!posix/|right/)([A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)+|UTC)")


def _in_zone(instant: int, name: str) -> int:
    if not _ZONE.fullmatch(name):
        raise RowError(UNKNOWN_ZONE)
    try:
        zone = ZoneInfo(name)
    except (KeyError, OSError):
        # OSError: the name of a directory of zones, such as America.
        raise RowError(UNKNOWN_ZONE) from None
    if not CALENDAR_FIRST <= instant <= CALENDAR_LAST:
        raise RowError(OVERFLOW)
    there = (EPOCH + instant * MICROSECOND).astimezone(zone)
    return (there.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


def _item(values: tuple[Any, ...], at: int) -> Any:
    return dict(enumerate(values)).get(at)


STRICT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: _number(a + b),
    "sub": lambda a, b: _number(a - b),
    "mul": lambda a, b: _number(a * b),
    # Not the exact quotient of two ints: both are floats first, as engines compute it.
    "div": lambda a, b: float(a) / _nonzero(float(b)),
    "floordiv": lambda a, b: _number(a // _nonzero(b)),
    "mod": lambda a, b: a % _nonzero(b),
    "neg": lambda a: _number(-a),
    "abs": lambda a: _number(abs(a)),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "not": lambda a: not a,
    "is_nan": math.isnan,
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "sqrt": _sqrt,
    "exp": _exp,
    "ln": _ln,
    "pow": _pow,
    "sin": _of_finite(math.sin),
    "cos": _of_finite(math.cos),
    # A zero has no sign, or the angle would turn with it.
    "atan2": lambda y, x: math.atan2(y + 0.0, x + 0.0),
    "radians": math.radians,
    "degrees": math.degrees,
    "floor": lambda a: _to_whole(a, math.floor),
    "ceil": lambda a: _to_whole(a, math.ceil),
    "round": lambda a: _to_whole(a, round),
    "round_to": _round_to,
    "least": _least,
    "greatest": _greatest,
    "distance_m": _distance_m,
    "concat": lambda *texts: "".join(texts),
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda text: text.strip(" "),
    "substring": _substring,
    "starts_with": lambda text, start: text[: len(start)] == start,
    "ends_with": lambda text, end: text[len(text) - len(end) :] == end if len(end) <= len(text) else False,
    "contains": lambda text, part: part in text,
    "replace": lambda text, find, put: put.join(text.split(find)) if find else text,
    "unhex": _unhex,
    "crc32": lambda text: zlib.crc32(text.encode()),
    "year": lambda at: calendar(at)[0].year + calendar(at)[1],
    "month": lambda at: calendar(at)[0].month,
    "day": lambda at: calendar(at)[0].day,
    "hour": lambda at: calendar(at)[0].hour,
    "minute": lambda at: calendar(at)[0].minute,
    "second": lambda at: calendar(at)[0].second,
    "weekday": lambda at: calendar(at)[0].weekday(),
    "floor_to": _floor_to,
    "in_zone": _in_zone,
    "size": len,
    "item": _item,
}
