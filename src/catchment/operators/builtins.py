"""Built-in functions as fast Python, for compiled expressions to call: those that are too long to write in line.

Arguments are plain values of the right type and never null; a failure is a `RowError`. What each means is pinned by
`tests/golden`. Nothing heavy is imported before an expression needs it.

>>> CALLS["substring"]("héllo", 1, 3), year(951_782_400_000_000), month(951_782_400_000_000)
('éll', 2000, 2)
"""

from __future__ import annotations

import math
from binascii import crc32 as _crc32
from binascii import unhexlify
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from catchment.program.resolution import per_unit
from catchment.program.row_error import (
    DIVISION_BY_ZERO,
    DOMAIN,
    INVALID_HEX,
    OVERFLOW,
    UNKNOWN_ZONE,
    RowError,
)

DAY_US = 86_400_000_000
_INF = math.inf
_NAN = math.nan
_EARTH_DIAMETER_M = 2 * 6371008.8
_INT64_MIN = -(2**63)
_WHOLE_MAX = 2.0**53


def overflow(value: int) -> int:
    """The slow half of an overflow check: the fast half also stops at the one number that has a bit more."""
    if value == _INT64_MIN:
        return value
    raise RowError(OVERFLOW)


def fail_zero() -> Any:
    """In place of a quotient."""
    raise RowError(DIVISION_BY_ZERO)


def fail_domain() -> Any:
    """In place of a number that does not exist."""
    raise RowError(DOMAIN)


def least(left: Any, right: Any) -> Any:
    """The smaller; NaN is greater than all."""
    return left if left <= right or right != right else right


def greatest(left: Any, right: Any) -> Any:
    """The greater; NaN is greater than all."""
    return left if left >= right or left != left else right


def exp(value: float) -> float:
    """e to that power; infinity where a float cannot hold it."""
    try:
        return math.exp(value)
    except OverflowError:
        return _INF


def power(base: float, exponent: float) -> float:
    """As IEEE 754 has it, but a failure where no real number is the answer."""
    if base == 0.0 and exponent < 0.0:
        raise RowError(DOMAIN)
    try:
        return math.pow(base, exponent)
    except ValueError:
        raise RowError(DOMAIN) from None
    except OverflowError:
        return -_INF if base < 0.0 and exponent % 2.0 == 1.0 else _INF


def sin(value: float) -> float:
    """The sine; NaN of an infinity."""
    return math.sin(value) if -_INF < value < _INF else _NAN


def cos(value: float) -> float:
    """The cosine; NaN of an infinity."""
    return math.cos(value) if -_INF < value < _INF else _NAN


def atan2(y: float, x: float) -> float:
    """The angle of a point; adding 0.0 takes the sign from a zero, with which the angle would turn."""
    return math.atan2(y + 0.0, x + 0.0)


def floor(value: float) -> float:
    """The next whole number below; beyond 2^53 every float is whole."""
    return float(math.floor(value)) if -_WHOLE_MAX < value < _WHOLE_MAX else value


def ceil(value: float) -> float:
    """The next whole number above; beyond 2^53 every float is whole."""
    return float(math.ceil(value)) if -_WHOLE_MAX < value < _WHOLE_MAX else value


def round_half_even(value: float) -> float:
    """The nearest whole number, of two equally near the even one."""
    return float(round(value)) if -_WHOLE_MAX < value < _WHOLE_MAX else value


def stepper(step: float) -> Callable[[float], float]:
    """`round_to` for one step that is known to be positive and finite."""
    inverse = per_unit(step)
    if inverse is None:

        def by_step(value: float) -> float:
            steps = value / step
            return round(steps) * step if -_WHOLE_MAX < steps < _WHOLE_MAX else value

        return by_step

    def by_inverse(value: float) -> float:
        steps = value * inverse
        return round(steps) / inverse if -_WHOLE_MAX < steps < _WHOLE_MAX else value

    return by_inverse


_stepper = lru_cache(maxsize=64)(stepper)


def round_to(value: float, step: float) -> float:
    """The nearest multiple of the step."""
    if not 0.0 < step < _INF:
        raise RowError(DOMAIN)
    return _stepper(step)(value)


def distance_m(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Metres between two places, by the haversine formula."""
    try:
        north = math.sin(math.radians(lat2 - lat1) * 0.5)
        east = math.sin(math.radians(lon2 - lon1) * 0.5)
        half = north * north + math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * east * east
    except ValueError:
        # The sine of an infinity.
        return _NAN
    return _EARTH_DIAMETER_M * math.asin(math.sqrt(half if not half > 1.0 else 1.0))


def substring(text: str, start: int, length: int) -> str:
    """The characters at `start` up to `start + length`, as far as there are any."""
    end = start + length
    return text[start if start > 0 else 0 : end if end > 0 else 0]


def replace(text: str, find: str, put: str) -> str:
    """Every `find` replaced; nothing is found where `find` is empty."""
    return text.replace(find, put) if find else text


def unhex(text: str) -> bytes:
    """Bytes of pairs of hexadecimal digits."""
    try:
        return unhexlify(text)
    except ValueError:
        raise RowError(INVALID_HEX) from None


def crc32(text: str) -> int:
    """The checksum of the text's UTF-8 bytes."""
    return _crc32(text.encode())


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970, for any year: cycles of 400 years that begin on 1 March."""
    cycle, day_of_cycle = divmod(days + 719_468, 146_097)
    year = (day_of_cycle - day_of_cycle // 1460 + day_of_cycle // 36_524 - day_of_cycle // 146_096) // 365
    day_of_year = day_of_cycle - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return cycle * 400 + year + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def year(at: int) -> int:
    """The year in UTC."""
    return _date(at // DAY_US)[0]


def month(at: int) -> int:
    """The month in UTC, from 1."""
    return _date(at // DAY_US)[1]


def day(at: int) -> int:
    """The day of the month in UTC, from 1."""
    return _date(at // DAY_US)[2]


def floor_to(at: int, every: int) -> int:
    """The last multiple of `every` since 1970 that is not after the instant."""
    if every <= 0:
        raise RowError(DOMAIN)
    floored = at - at % every
    return floored if floored >= _INT64_MIN else overflow(floored)


def in_zone(at: int, name: str) -> int:
    """What a clock in that time zone shows, as if it were UTC."""
    zone, epoch, microsecond, first, last = _zone(name)
    if not first <= at <= last:
        raise RowError(OVERFLOW)
    moment = epoch + at * microsecond
    offset = moment.astimezone(zone).utcoffset()
    return at + int(offset / microsecond)


@lru_cache(maxsize=64)
def _zone(name: str) -> tuple[Any, Any, Any, int, int]:
    import re
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    # Only names that mean the same in every zone database: no abbreviations, no offsets, no private directories.
    if not re.fullmatch(r"(?!posix/|right/)([A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)+|UTC)", name):
        raise RowError(UNKNOWN_ZONE)
    try:
        zone = ZoneInfo(name)
    except (KeyError, OSError):
        raise RowError(UNKNOWN_ZONE) from None
    # A day inside the years 1 to 9999, so that no zone leads out of them.
    return (
        zone,
        datetime(1970, 1, 1, tzinfo=UTC),
        timedelta(microseconds=1),
        -62_135_510_400_000_000,
        253_402_214_399_999_999,
    )


def item(values: tuple[Any, ...], at: int) -> Any:
    """The value at that position; null where there is none."""
    return values[at] if 0 <= at < len(values) else None


CALLS: dict[str, Callable[..., Any]] = {
    "least": least,
    "greatest": greatest,
    "exp": exp,
    "pow": power,
    "sin": sin,
    "cos": cos,
    "atan2": atan2,
    "radians": math.radians,
    "degrees": math.degrees,
    "floor": floor,
    "ceil": ceil,
    "round": round_half_even,
    "round_to": round_to,
    "distance_m": distance_m,
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
    "substring": substring,
    "replace": replace,
    "unhex": unhex,
    "crc32": crc32,
    "year": year,
    "month": month,
    "day": day,
    "floor_to": floor_to,
    "in_zone": in_zone,
    "size": len,
    "item": item,
}
"""What a compiled expression calls, by the function's name; the others are written in line."""
