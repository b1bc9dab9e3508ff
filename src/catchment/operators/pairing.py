"""Pairs: what `join`, `zip` and `combine` make of a left and a right element of one key.

The time of a pair is its record's event time, or the later of the two where that is absent or null. Where an
expression fails, both rows go to quarantine, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from catchment.operators.keys import Key
from catchment.operators.projection import compile_projection, time_position
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.columns import outer_side
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


class Side(NamedTuple):
    """An element of one side."""

    at: int
    row: Row


class Pairing:
    """Makes the rows of pairs. `optional` are the sides that may be absent: all their fields are null then."""

    def __init__(
        self, step: steps.Join | steps.Zip | steps.Combine, given: tuple[Schema, ...], optional: tuple[int, ...]
    ) -> None:
        sides = tuple(outer_side(schema, side in optional) for side, schema in enumerate(given))
        self._row = compile_projection(step.columns, sides, step.record)
        self._time = time_position(step.record)
        self._absent = tuple((None,) * len(schema.fields) for schema in given)

    def giving(
        self, give: Callable[[int, Source, Row], None], quarantine: Callable[[RowError, Row], None]
    ) -> Callable[[Source, Side | None, Side | None], None]:
        """A function that gives the pair of two sides, of which one may be absent."""
        absent_left, absent_right = self._absent
        row_of, time = self._row, self._time

        def pair(source: Source, left: Side | None, right: Side | None) -> None:
            left_at, left_row = left or (None, absent_left)
            right_at, right_row = right or (None, absent_right)
            try:
                row = row_of(left_row, right_row)
            except RowError as error:
                quarantine(error, (*left_row, *right_row))
                return
            at = None if time is None else row[time]
            if at is None:
                at = right_at if left_at is None or (right_at is not None and right_at > left_at) else left_at
            give(at, source, row)  # type: ignore[arg-type]  # one of the sides is there

        return pair


def pairs(key: Key) -> bool:
    """Whether the key can equal another: null equals nothing in a join."""
    return None not in key


def saved(side: Side | None) -> Any:
    """A side as plain data."""
    return None if side is None else list(side)
