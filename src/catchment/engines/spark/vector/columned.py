"""An author's `on_elements`: states, timers and elements of many keys as arrays, the call, and what it left, checked.

Nothing is changed before all that a call gave and left was found to be what the class declares. Knows numpy and the
author's class; not when a call is due.
"""

from __future__ import annotations

import typing
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows, column_of
from catchment.operators.process import EVENT, Known
from catchment.program.elements import NOT_SET, Elements
from catchment.program.process import Process, State
from catchment.program.returned import conform
from catchment.program.row_error import FUNCTION_RESULT, RowError
from catchment.program.types import BOOL, DURATION, FLOAT, INSTANT, INT, DataType, Schema

_WHOLE = (INT, INSTANT, DURATION)


@dataclass(slots=True)
class Given:
    """What a call gave: which element caused each result, when the timer was due that did (or None), and the fields."""

    cause: Array
    timer_at: Array | None
    columns: list[Column]


@dataclass(slots=True)
class Answer:
    """What a call gave and left. `keep` puts states where they belong."""

    given: list[Given]
    keep: Callable[[], None]
    timers: dict[int, list[tuple[str, int | None]]]
    """Of keys whose timers changed, by number: name, and moment or nothing."""
    forgotten: Array


class Columned:
    """The call, for a class whose elements and results have these schemas."""

    def __init__(
        self, process: Process[Any, Any, Any], given: Schema, record: Schema, copy: Callable[[Any], Any]
    ) -> None:
        self._process = process
        self._given = given
        self._record = record
        self._copy = copy
        kind: type[State] = process.state_type
        hints = typing.get_type_hints(kind)
        self._fields = {name: _dtype(hints[name]) for name in kind.__struct_fields__}

    def call(self, known: Sequence[Known], starts: Array, rows: Rows) -> Answer:
        """The elements of keys, one key behind the other. Raises what the author's code does, or `RowError`."""
        count = len(known)
        states = [self._copy(one.state) for one in known]
        columns = {name: _column([getattr(state, name) for state in states], of) for name, of in self._fields.items()}
        timers = self._timers(known)
        before = {name: moments.copy() for name, moments in timers.items()}
        elements = Elements(
            [one.key for one in known],
            starts,
            rows.at,
            _Fields(self._given, rows),
            columns,
            timers,
            np.zeros(count, np.bool_),
        )
        self._process.on_elements(elements)
        left = {name: _left(elements.state[name], count, of) for name, of in self._fields.items()}
        changed: dict[int, list[tuple[str, int | None]]] = {}
        for name, moments in sorted(elements.timers.items()):
            now = _left(moments, count, np.dtype(np.int64))
            was = before.get(name)
            different = now != (NOT_SET if was is None else was)
            for number in np.flatnonzero(different).tolist():
                moment = int(now[number])
                changed.setdefault(number, []).append((name, None if moment == NOT_SET else moment))
        given = [self._checked(*each) for each in elements.given]
        forgotten = _left(elements.forgotten, count, np.dtype(np.bool_))

        def keep() -> None:
            for name, values in left.items():
                for state, value in zip(states, values.tolist(), strict=True):
                    setattr(state, name, value)
            for one, state in zip(known, states, strict=True):
                one.state = state

        return Answer(given, keep, changed, forgotten)

    def _timers(self, known: Sequence[Known]) -> defaultdict[str, Array]:
        timers: defaultdict[str, Array] = defaultdict(lambda: np.full(len(known), NOT_SET, np.int64))
        for number, one in enumerate(known):
            for name, timer in one.timers.items():
                if timer.kind == EVENT:
                    timers[name][number] = timer.moment
        return timers

    def _checked(self, cause: Any, due: Any, fields: Mapping[str, Any]) -> Given:
        causes = np.asarray(cause, np.int64).reshape(-1)
        moments = None if due is None else np.broadcast_to(np.asarray(due, np.int64), causes.shape)
        unknown = fields.keys() - set(self._record.names)
        if unknown:
            raise RowError(FUNCTION_RESULT, f"{sorted(unknown)[0]}, which {self._record.name} does not have")
        columns = []
        for field in self._record.fields:
            if field.name in fields:
                columns.append(_checked(fields[field.name], len(causes), field.type, field.nullable))
            elif field.has_default:
                columns.append(column_of([field.default] * len(causes), field.type))
            else:
                raise RowError(FUNCTION_RESULT, f"{self._record.name} without {field.name}")
        return Given(causes, moments, columns)


class _Fields(dict[str, Any]):
    """Fields of elements as arrays, made when they are asked for."""

    def __init__(self, schema: Schema, rows: Rows) -> None:
        super().__init__()
        self._schema = schema
        self._rows = rows

    def __missing__(self, name: str) -> Any:
        field = self._schema.column(name)
        column = self._rows.columns[self._schema.position(name)]
        if column.words is None:
            made: Any = column.values
            if field.nullable:
                made = np.ma.masked_array(made, np.False_ if column.valid is None else ~column.valid)
        else:
            made = np.empty(len(self._rows), np.object_)
            made[:] = column.objects() or None
        self[name] = made
        return made


def _dtype(hint: Any) -> np.dtype[Any]:
    hint = getattr(hint, "__supertype__", hint)  # Instant and Duration are ints
    found = {int: np.int64, float: np.float64, bool: np.bool_}.get(hint)
    return np.dtype(np.object_ if found is None else found)


def _column(values: list[Any], of: np.dtype[Any]) -> Array:
    if of != np.object_:
        return np.array(values, of)
    made = np.empty(len(values), np.object_)
    for number, value in enumerate(values):  # a list of lists would become a table
        made[number] = value
    return made


def _left(values: Any, count: int, of: np.dtype[Any]) -> Array:
    found: Array = np.asarray(values)
    if found.shape != (count,):
        raise RowError(FUNCTION_RESULT, f"an array of shape {found.shape}, where there are {count} keys")
    return found if of == np.object_ else found.astype(of, casting="safe", copy=False)


def _checked(values: Any, count: int, kind: DataType, nullable: bool) -> Column:
    """Values of a field, if they are what it is declared to be."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, np.object_)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,):
        raise RowError(FUNCTION_RESULT, f"an array of shape {array.shape}, where {count} results are given")
    mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    fits = {"b": kind == BOOL, "i": kind in (*_WHOLE, FLOAT), "f": kind == FLOAT}.get(array.dtype.kind, False)
    if fits and (mask is None or nullable):
        bare = np.ma.getdata(array)
        wanted = np.float64 if kind == FLOAT else np.bool_ if kind == BOOL else np.int64
        valid = None if mask is None or not mask.any() else ~mask
        return Column(np.ascontiguousarray(bare, wanted), valid)
    return column_of([conform(value, kind, nullable) for value in array.tolist()], kind)
