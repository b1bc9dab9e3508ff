"""`combine` and `join_latest` over a batch: of each key the latest element of a side, as it was at each element.

Elements of both sides stand in one table by key and number, in which the place of the latest one is carried on.
"""

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


class VectorCombine(VectorPairs):
    """Holds the latest element of each side, of each key."""

    def __init__(self, step: steps.Combine, given: tuple[Schema, ...]) -> None:
        super().__init__(step, given, step.closing, (0, 1))

    def pair(self, sides: Sequence[Side], followed: Followed) -> Found:
        table = _Table(sides, [np.ones(len(side.rows), np.bool_) for side in sides])
        for number, side in enumerate(sides):
            self.hold(number, side, table.last[number])
        new = np.concatenate([np.arange(len(side.rows)) >= side.held for side in sides])[table.order]
        lefts, rights = (latest[new] for latest in table.latest)
        return Found.in_order(lefts, rights, table.moment[new], table.number[new])

    def adopted(self, state: dict[str, Any]) -> list[tuple[int, int, int, Source, Row]]:
        latest = [(number, side) for _, *both in state["latest"] for number, side in enumerate(both)]
        return numbered([(number, *side) for number, side in latest if side is not None])


class VectorLatestJoin(VectorPairs):
    """Holds the latest right element of each key."""

    def __init__(self, step: steps.Join, given: tuple[Schema, ...]) -> None:
        super().__init__(step, given, step.closing, (1,) if step.outer else (), right_first=True)
        self._outer = step.outer

    def pair(self, sides: Sequence[Side], followed: Followed) -> Found:
        left, right = sides
        table = _Table(sides, [np.ones(len(left.rows), np.bool_), right.pairs])
        self.hold(0, left, np.zeros(0, np.int64))
        self.hold(1, right, table.last[1])
        given = table.of == 0
        if not self._outer:
            given &= table.latest[1] >= 0
        lefts, rights = (latest[given] for latest in table.latest)
        return Found.in_order(lefts, rights, table.moment[given], table.number[given])

    def adopted(self, state: dict[str, Any]) -> list[tuple[int, int, int, Source, Row]]:
        return numbered([(1, at, row) for _, at, row in state["latest"]])


class _Table:
    """All elements in order of key and number; of each side those count that may.

    `latest` says for each element and each side where in that side the latest one stands, or -1; `last` where those do
    after which none of their key comes.
    """

    def __init__(self, sides: Sequence[Side], count: Sequence[Array]) -> None:
        code = np.concatenate([side.code for side in sides])
        number = np.concatenate([side.rows.place for side in sides])
        self.order = np.lexsort((number, code))
        self.number = number[self.order]
        self.moment = np.concatenate([side.moment for side in sides])[self.order]
        of = np.repeat(np.arange(len(sides)), [len(side.rows) for side in sides])
        self.of = of[self.order]
        place = np.concatenate([np.arange(len(side.rows)) for side in sides])[self.order]
        counts = np.concatenate(count)[self.order]
        starts, lengths = runs(code[self.order])
        since = np.repeat(starts, lengths)
        ends = starts + lengths - 1
        self.latest: list[Array] = []
        self.last: list[Array] = []
        for side in range(len(sides)):
            here = np.where((self.of == side) & counts, np.arange(len(code)), -1)
            carried = np.maximum.accumulate(here) if len(here) else here
            latest = np.where(carried >= since, place[np.maximum(carried, 0)] if len(place) else carried, -1)
            self.latest.append(latest)
            last = latest[ends]
            self.last.append(last[last >= 0])
