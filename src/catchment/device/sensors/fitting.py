"""Rows of what a sensor gives: each field from the value of its name, read as its type; who it is of by enrolment.

Promises: a row that comes out is of the schema, down to 64 bits; a reading that does not fit is refused with the
field and the reason, and nothing is guessed. What the gateway stamps is filled with what it will say.

>>> from catchment.program.types import Column
>>> fix = Schema("Fix", (Column("user", STR, stamp="user"), Column("at", INSTANT, event_time=True), Column("v", FLOAT)))
>>> fit = Fitting(fix, device="phone", user="ada", columns={"v": "speed"})
>>> fit.row({"speed": "2.5"}, 7), fit.moment({"at": "1970-01-01T00:00:01Z"})
(('ada', 7, 2.5), 1000000)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from catchment.device.sensors.sensor import Values
from catchment.operators.conversions import read_float, read_instant, read_int
from catchment.program.returned import conform
from catchment.program.row_error import RowError
from catchment.program.types import BOOL, BYTES, DURATION, FLOAT, INSTANT, INT, STR, Column, Row, Schema

UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""What a number without a date counts in."""
_ALSO = {
    "lat_deg": ("lat", "latitude"),
    "lon_deg": ("lon", "lng", "longitude"),
    "elevation_m": ("ele", "elevation"),
    "altitude_m": ("ele", "elevation", "altitude"),
}
_MOMENT = ("at", "time", "timestamp", "datetime")
_TRUE, _FALSE = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})
_MISSING: Any = object()


class Unfit(Exception):  # noqa: N818  it is about a reading, and nothing has gone wrong here
    """This reading cannot be a row."""


class Fitting:
    """From readings to rows of one schema. `columns` says under which name a sensor gives a field."""

    def __init__(
        self,
        schema: Schema,
        *,
        device: str,
        user: str,
        columns: Mapping[str, str] | None = None,
        unit: str = "us",
    ) -> None:
        self.schema = schema
        self._unit_us = UNITS_US[unit]
        columns = columns or {}
        for name in columns:
            schema.position(name)
        self._fields = [(_names(column, columns), column, self._reader(column)) for column in schema.fields]
        self._stamps = {"device": device, "user": user}
        self._moment = next((field for field in self._fields if field[1].event_time), None)

    def moment(self, values: Values) -> int | None:
        """When the reading says that it was taken, if it does."""
        if self._moment is None:
            return None
        names, column, read = self._moment
        value = _first(values, names)
        return None if value is _MISSING or value in (None, "") else self._value(column, read, value)

    def row(self, values: Values, at_us: int) -> Row:
        """The row of a reading that was taken at that moment."""
        row: list[Any] = []
        for names, column, read in self._fields:
            if column.event_time:
                row.append(at_us)
            elif column.stamp is not None:
                row.append(self._stamps[column.stamp])
            else:
                row.append(self._field(values, names, column, read))
        return tuple(row)

    def _field(self, values: Values, names: tuple[str, ...], column: Column, read: Callable[[Any], Any]) -> Any:
        value = _first(values, names)
        # An empty cell of a table is no value, unless it is a text.
        if value is _MISSING or (value == "" and column.type != STR):
            value = None
            if column.has_default:
                return column.default
        if value is None:
            if column.nullable:
                return None
            raise Unfit(f"it has no {column.name}")
        return self._value(column, read, value)

    def _value(self, column: Column, read: Callable[[Any], Any], value: Any) -> Any:
        try:
            return conform(read(value), column.type, column.nullable)
        except (RowError, ValueError, TypeError, OverflowError) as error:
            raise Unfit(f"{column.name} is {value!r}, which is no {column.type} ({error})") from None

    def _reader(self, column: Column) -> Callable[[Any], Any]:
        """What makes a value of that type of a text, or of a number in other units."""
        if column.type == FLOAT:
            return lambda value: read_float(value.strip()) if isinstance(value, str) else value
        if column.type == INT:
            return lambda value: read_int(value.strip()) if isinstance(value, str) else _whole(value)
        if column.type == BOOL:
            return lambda value: _truth(value) if isinstance(value, str) else value
        if column.type == INSTANT:
            return self._instant
        if column.type == DURATION:
            return self._count
        if column.type == BYTES:
            return lambda value: bytes.fromhex(value) if isinstance(value, str) else value
        return _nested

    def _instant(self, value: Any) -> int:
        if isinstance(value, str) and value[4:5] == "-":
            text = value.strip()
            if len(text) > 10 and not (text[-1] in "Zz" or text[-6:-5] in ("+", "-")):
                text += "Z"  # a time without a zone is taken for UTC, as GPS receivers write it
            return read_instant(_to_the_microsecond(text.replace("z", "Z")))
        return self._count(value)

    def _count(self, value: Any) -> int:
        number: int | float = value
        if isinstance(value, str):
            text = value.strip()
            number = read_int(text) if text.lstrip("+-").isdigit() else read_float(text)
        if isinstance(number, bool):
            raise TypeError("a truth is no number")
        return round(number * self._unit_us)


def _names(column: Column, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Under which names a field may be given, the likeliest first."""
    if column.name in columns:
        return (columns[column.name],)
    also = _ALSO.get(column.name, ())
    return (column.name, *also, *(_MOMENT if column.event_time else ()))


def _first(values: Values, names: tuple[str, ...]) -> Any:
    for name in names:
        if name in values:
            return values[name]
    return _MISSING


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _truth(text: str) -> Any:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else text


def _nested(value: Any) -> Any:
    return tuple([_nested(item) for item in value]) if isinstance(value, list) else value


def _to_the_microsecond(text: str) -> str:
    """Receivers write more digits than anyone has; what is beyond a microsecond is cut off."""
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"
