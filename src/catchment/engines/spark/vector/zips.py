"""`zip` over a batch: the n-th left element of a key with its n-th right one, as they stand among those of the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array
from catchment.engines.spark.vector.pairs import Found, Side, VectorPairs, numbered, runs
from catchment.engines.spark.vector.waiting import Followed
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import Row, Schema


class VectorZip(VectorPairs):
    """Holds the elements of the side that is ahead, of each key."""

    def __init__(self, step: steps.Zip, given: tuple[Schema, ...]) -> None:
        super().__init__(step, given, step.closing, ())

    def pair(self, sides: Sequence[Side], followed: Followed) -> Found:
        left, right = sides
        count = max((len(side.rows) for side in sides), default=0) + 1
        nth = [side.code * count + _nth(side.code) for side in sides]
        _, lefts, rights = np.intersect1d(nth[0], nth[1], assume_unique=True, return_indices=True)
        for number, (side, paired) in enumerate(zip(sides, (lefts, rights), strict=True)):
            alone = np.ones(len(side.rows), np.bool_)
            alone[paired] = False
            self.hold(number, side, alone)
        later = np.maximum(left.rows.place[lefts], right.rows.place[rights])
        return Found.in_order(lefts, rights, np.maximum(left.moment[lefts], right.moment[rights]), later)

    def adopted(self, state: dict[str, Any]) -> list[tuple[int, int, int, Source, Row]]:
        return numbered([(side, at, row) for _, side, waiting in state["ahead"] for at, row in waiting])


def _nth(codes: Array) -> Array:
    """Of each element, how many of its key come before it."""
    order = np.argsort(codes, kind="stable")
    starts, lengths = runs(codes[order])
    found = np.empty(len(codes), np.int64)
    found[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return found
