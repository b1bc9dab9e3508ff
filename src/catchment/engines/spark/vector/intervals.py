"""`join(within=(before, after))` over a batch: of each key, runs of one side that lie near an element of the other.

Both sides are sorted by key and time, so the partners of an element are a span of the other side, found by search. Of
what was held and what is new all pairs are looked for but those of two held ones, which were given before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows
from catchment.engines.spark.vector.pairs import NOBODY, Found, Side, VectorPairs, spans
from catchment.engines.spark.vector.release import Released
from catchment.engines.spark.vector.waiting import Followed
from catchment.operators.aggregates.aggregate import frozen
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import BOOL, Row, Schema


class VectorIntervalJoin(VectorPairs):
    """Holds what may still have partners; it carries whether it had one."""

    carried = (BOOL,)

    def __init__(self, step: steps.Join, given: tuple[Schema, ...]) -> None:
        reach = max(step.before, step.after)
        super().__init__(step, given, step.closing, (1,) if step.outer else (), reach=reach)
        self._reaches = (step.after, step.before)
        self._outer = step.outer

    def carry(self, side: int, released: Released) -> list[Column]:
        return [Column(np.zeros(len(released.rows), np.bool_))]

    def pair(self, sides: Sequence[Side], followed: Followed) -> Found:
        left, right = sides
        lefts, rights = self._near(left, right)
        moment = np.maximum(left.moment[lefts], right.moment[rights])
        one, other = left.rows.place[lefts], right.rows.place[rights]
        found = [
            (lefts, rights, moment, np.zeros(len(lefts), np.int64), np.maximum(one, other), np.minimum(one, other))
        ]
        had = left.rows.columns[-1].values.copy()
        had[lefts] = True
        left.rows.columns[-1] = Column(had)
        for number, (side, reach) in enumerate(zip(sides, self._reaches, strict=True)):
            passed, when = followed.moments.first_beyond(side.group, side.rows.at + reach)
            keeps = side.pairs if number or not self._outer else np.ones(len(side.rows), np.bool_)
            self.hold(number, side, keeps & ~passed)
            if number == 0 and self._outer:
                lonely = np.flatnonzero(passed & ~had)
                none = np.full(len(lonely), -1, np.int64)
                place = side.rows.place[lonely]
                found.append((lonely, none, when[lonely], np.ones(len(lonely), np.int64), place, place))
        return Found.in_order(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _near(self, left: Side, right: Side) -> tuple[Array, Array]:
        """Pairs that lie near each other and are not both held."""
        after, before = self._reaches
        new_left = _Sorted(left, np.arange(left.held, len(left.rows)))
        new_right = _Sorted(right, np.arange(right.held, len(right.rows)))
        found = []
        for one, other in (
            (new_left, _Sorted(right, np.arange(len(right.rows)))),
            (_Sorted(left, np.arange(left.held)), new_right),
        ):
            which, within = spans(*other.between(one, before, after))
            found.append((one.which[which], other.which[within]))
        lefts, rights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return lefts, rights

    def due(self, side: int, held: Rows) -> Array | None:
        due: Array = held.at + self._reaches[side]
        if side == 0 and self._outer:
            # One that has no partner is given once there can be none; the others go when all of them may.
            return np.where(held.columns[-1].values, due.max(), due)
        return np.full(len(due), due.max())

    def adopted(self, state: dict[str, Any]) -> list[tuple[int, int, int, Source, Row]]:
        return [
            (side, at, number, NOBODY, (*frozen(row), paired)) for side, at, number, _, row, paired in state["held"]
        ]


class _Sorted:
    """Elements of a side that may pair, by key and time."""

    def __init__(self, side: Side, which: Array) -> None:
        which = which[side.pairs[which]]
        at = side.rows.at
        self.which = which[np.lexsort((at[which], side.code[which]))]
        self.code, self.at = side.code[self.which], at[self.which]

    def between(self, other: _Sorted, before: int, after: int) -> tuple[Array, Array]:
        """Of each of the other's elements, the span of these that lies from `before` earlier to `after` later."""
        values, rank = np.unique(self.at, return_inverse=True)
        width = len(values) + 1
        codes = self.code * width + rank
        low = other.code * width + np.searchsorted(values, other.at - before, side="left")
        high = other.code * width + np.searchsorted(values, other.at + after, side="right")
        return np.searchsorted(codes, low, side="left"), np.searchsorted(codes, high, side="left")
