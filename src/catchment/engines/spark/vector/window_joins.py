"""`join(within=window)` over a batch: of each key and each window that closes, all pairs of its two sides.

Each element is held once, with the end of the first window that it still belongs to, and is laid out over its windows
only when those close. Windows leave by moment, end and key, and the pairs of one in the order of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows
from catchment.engines.spark.vector.keys import column_values
from catchment.engines.spark.vector.pairs import Found, Side, VectorPairs, spans
from catchment.engines.spark.vector.release import Released, device_ranks
from catchment.engines.spark.vector.waiting import LEAST, Followed
from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.ordering import sortable_key
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.types import INT, Row, Schema
from catchment.program.window import TimeWindow


class VectorWindowJoin(VectorPairs):
    """Holds what an open window holds; it carries the end of its first window that is open."""

    carried = (INT,)

    def __init__(self, step: steps.Join, given: tuple[Schema, ...]) -> None:
        assert isinstance(step.window, TimeWindow)
        window = step.window
        super().__init__(step, given, window.closing, (1,) if step.outer else (), reach=window.size)
        self._size, self._every = window.size, window.every
        self._outer = step.outer
        self._sorts_as: Callable[[Any], Any] = sortable_key(given[0], step.keys)
        self._opens: list[Array] = []

    def _end_after(self, at: Array) -> Array:
        """The first end of a window that is later."""
        end: Array = at + self._every - (at - self._size) % self._every
        return end

    def _last_end(self, at: Array) -> Array:
        end: Array = at - at % self._every + self._size
        return end

    def released(self, followed: Followed) -> list[Released]:
        found: list[Released] = []
        self._opens = []
        for heard in followed.inputs:
            rows, closed = heard.rows, heard.closed
            late = rows.take(self._end_after(rows.at) <= closed)
            enters = self._last_end(rows.at) > closed
            new = rows if enters.all() else rows.take(enters)
            numbers = np.arange(self.taken, self.taken + len(new), dtype=np.int64)
            self.taken += len(new)
            self._opens.append(self._end_after(np.maximum(new.at, closed[enters])))
            new = Rows(new.at, new.source, numbers, new.sources, new.columns)
            found.append(Released(new, heard.group[enters], heard.following[enters], late, followed))
        return found

    def carry(self, side: int, released: Released) -> list[Column]:
        return [Column(self._opens[side])]

    def pair(self, sides: Sequence[Side], followed: Followed) -> Found:
        moments = followed.moments
        bound = np.full(len(followed.groups.known), LEAST, np.int64)
        bound[moments.group] = moments.bound
        (left, lefts, ends), (right, rights, right_ends) = (self._closing(side, bound) for side in sides)
        for number, side in enumerate(sides):
            reached = bound[side.group]
            opens = np.maximum(side.rows.columns[-1].values, self._end_after(reached))
            side.rows.columns[-1] = Column(opens)
            self.hold(number, side, self._last_end(side.rows.at) > reached)
        ranks = [_in_order(side.rows) for side in sides]
        values, rank = np.unique(np.concatenate([ends, right_ends]), return_inverse=True)
        width = len(values) + 1
        codes = left.code[lefts] * width + rank[: len(lefts)]
        right_codes = right.code[rights] * width + rank[len(lefts) :]
        order = np.lexsort((ranks[1][rights], right_codes))
        rights, right_codes = rights[order], right_codes[order]
        low = np.searchsorted(right_codes, codes, side="left")
        high = np.where(left.pairs[lefts], np.searchsorted(right_codes, codes, side="right"), low)
        which, within = spans(low, high)
        partner = rights[within]
        if self._outer:
            lonely = np.flatnonzero(high == low)
            which = np.concatenate([which, lonely])
            partner = np.concatenate([partner, np.full(len(lonely), -1, np.int64)])
        of, end = lefts[which], ends[which]
        _, moment = moments.first_beyond(left.group[of], end, reached=True)
        then = np.where(partner >= 0, ranks[1][partner] if len(ranks[1]) else 0, -1)
        return Found.in_order(of, partner, moment, end, self._ranks_of_keys(left, of), ranks[0][of], then)

    def _closing(self, side: Side, bound: Array) -> tuple[Side, Array, Array]:
        """Each element of a side in each of its windows that closes: which element, and the end of the window."""
        reached = bound[side.group]
        opens = side.rows.columns[-1].values
        last = np.minimum(self._last_end(side.rows.at), reached - (reached - self._size) % self._every)
        which, nth = spans(np.zeros(len(opens), np.int64), (last - opens) // self._every + 1)
        return side, which, opens[which] + nth * self._every

    def _ranks_of_keys(self, left: Side, which: Array) -> Array:
        """Where the key of each of these stands among the keys."""
        codes, firsts, inverse = np.unique(left.code[which], return_index=True, return_inverse=True)
        columns = [left.rows.columns[place] for place in self._places[0]]
        keys = list(zip(*[column_values(column, which[firsts]) for column in columns], strict=True))
        ranks = np.zeros(len(codes), np.int64)
        ranks[sorted(range(len(keys)), key=lambda number: self._sorts_as(keys[number]))] = np.arange(len(keys))
        found: Array = ranks[inverse]
        return found

    def due(self, side: int, held: Rows) -> Array | None:
        due: Array = held.columns[-1].values - 1
        return due

    def adopted(self, state: dict[str, Any]) -> list[tuple[int, int, int, Source, Row]]:
        found = []
        for _, opens, *sides in state["held"]:
            for side, elements in enumerate(sides):
                for at, device, arrived, row in elements:
                    first = at + self._every - (at - self._size) % self._every
                    found.append((side, at, arrived, Source(device, None), (*frozen(row), max(first, opens))))
        return found


def _in_order(rows: Rows) -> Array:
    """Where each element stands in the order of time, device and arrival."""
    order = np.lexsort((rows.place, device_ranks(rows), rows.at))
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found
