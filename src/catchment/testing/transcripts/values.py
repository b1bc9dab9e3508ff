"""Values in a story: instants and durations in seconds or with a unit, lists for lists, mappings for nested records.

>>> duration("35 s"), duration(0.5), duration("-2 min"), duration("1 h")
(35000000, 500000, -120000000, 3600000000)
>>> agree(1.0, 1.0 + 1e-12), agree(float("nan"), float("nan")), agree(1, True), agree(0.0, -0.0)
(True, True, False, True)
"""

from __future__ import annotations

import math
import re
from typing import Any

from catchment.errors import ProgramError
from catchment.program.clock_units import instant
from catchment.program.types import DURATION, INSTANT, DataType, ListType, RecordType

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_WITH_UNIT = re.compile(r"([+-]?[0-9.]+) ?([a-z]+)")
RELATIVE = 1e-9


def duration(written: Any) -> int:
    """Microseconds of a number of seconds, or of a text such as `35 s`, `200 ms`, `5 min`, `1 h`, `2 d`, `7 us`."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return round(written * 1_000_000)
    match = _WITH_UNIT.fullmatch(written) if isinstance(written, str) else None
    if match is None or match[2] not in _UNITS:
        raise ProgramError(
            "T708",
            f"{written!r} is not a length of time",
            why="times in a story are seconds, or a number and a unit",
            fix=f'write 35, or "35 s"; units are {", ".join(_UNITS)}',
        )
    return round(float(match[1]) * _UNITS[match[2]])


def moment(written: Any) -> int:
    """Microseconds since 1970, of seconds, of a text with a unit, or of ISO 8601."""
    return instant(written) if isinstance(written, str) and "T" in written else duration(written)


def value(written: Any, kind: DataType) -> Any:
    """What the story wrote, as a value of that type on every engine."""
    if written is None:
        return None
    match kind:
        case _ if kind == INSTANT:
            return moment(written)
        case _ if kind == DURATION:
            return duration(written)
        case ListType(element) if isinstance(written, list):
            return tuple(value(each, element) for each in written)
        case RecordType(schema) if isinstance(written, dict):
            return tuple(value(written.get(column.name), column.type) for column in schema.fields)
        case _:
            return written


def shown(held: Any, kind: DataType) -> Any:
    """An engine's value as a story would write it."""
    if held is None:
        return None
    match kind:
        case _ if kind in (INSTANT, DURATION):
            seconds = held / 1_000_000
            return int(seconds) if seconds.is_integer() else seconds
        case ListType(element):
            return [shown(each, element) for each in held]
        case RecordType(schema):
            return {c.name: shown(each, c.type) for c, each in zip(schema.fields, held, strict=True)}
        case _:
            return held


def agree(expected: Any, actual: Any) -> bool:
    """Equal; floats within a relative 1e-9, NaN with NaN; a bool is no number."""
    if isinstance(expected, tuple | list) and isinstance(actual, tuple | list):
        return len(expected) == len(actual) and all(map(agree, expected, actual))
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        if isinstance(expected, int) and isinstance(actual, int):
            return expected == actual
        return math.isclose(expected, actual, rel_tol=RELATIVE, abs_tol=RELATIVE)
    return bool(expected == actual)
