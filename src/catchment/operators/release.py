"""Steps that take elements in order: each waits until nothing that sorts before it is still to come.

An element is released once `at < W - grace`, in the order of (at, port, device, arrival), all groups together. One
that comes when that has passed is late. With `order="arrival"` each is taken as it comes.
"""

from __future__ import annotations

from abc import abstractmethod
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Grouping, Key, key_of
from catchment.operators.members import Group
from catchment.operators.waiting import Take, Waiting
from catchment.plan.history import Source
from catchment.program.steps import Order, Scope
from catchment.program.types import Row, Schema
from catchment.program.window import Closing


class Taken(NamedTuple):
    """An element of a group that waits or is released."""

    at: int
    rank: int  # of its port, among elements of one time
    device: str
    arrived: int
    owner: str | None
    row: Row


Buffer: TypeAlias = list[Taken]


class Releasing(Waiting):
    """The base. `keys` and `schemas` are those of each input port."""

    def __init__(
        self,
        schemas: tuple[Schema, ...],
        keys: tuple[tuple[str, ...], ...],
        closing: Closing,
        scope: Scope,
        *,
        order: Order = "event_time",
        reach: int = 0,
        right_first: bool = False,
    ) -> None:
        super().__init__(Grouping.of(schemas[0], keys[0], scope), closing, scope, ports=len(schemas), reach=reach)
        self.keys_of = [key_of(schema, names) for schema, names in zip(schemas, keys, strict=True)]
        self._order = order
        # At one time, elements of port 0 come first, or those of the last port.
        self.ranks = list(range(len(schemas)))[:: -1 if right_first else 1]
        self._buffers: dict[Group, Buffer] = {}
        self._arrived = 0

    @abstractmethod
    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        """Take an element, all before it being taken."""

    def after(self, groups: list[Group]) -> None:
        """Give what else is due, once all that could be were released."""

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        key_of, group_of = self.keys_of[port], self.grouping.of_key
        heard, mark_of, grace = self.tracker.heard, self.mark, self.grace
        release, rank, buffers = self.release, self.ranks[port], self._buffers

        def in_order(at: int, source: Source, row: Row) -> None:
            group = group_of(key_of(row))
            heard(port, source)
            if at < mark_of(group) - grace:
                late.element(at, source, row)
                return
            self._arrived = arrived = self._arrived + 1
            buffer = buffers.get(group)
            if buffer is None:
                buffer = buffers[group] = []
            heappush(buffer, Taken(at, rank, source[0], arrived, source[1], row))

        def as_it_comes(at: int, source: Source, row: Row) -> None:
            key = key_of(row)
            heard(port, source)
            mark_of(group_of(key))
            release(at, port, key, row)

        return in_order if self._order == "event_time" else as_it_comes

    def due(self, groups: list[Group]) -> None:
        released: list[Taken] = []
        for group in groups:
            buffer = self._buffers.get(group)
            if buffer is not None:
                bound = self.tracker.marks[group] - self.grace
                while buffer and buffer[0].at < bound:
                    released.append(heappop(buffer))
                if not buffer:
                    del self._buffers[group]
        if len(groups) > 1:
            released.sort()
        for at, rank, _, _, _, row in released:
            port = self.ranks[rank]
            self.release(at, port, self.keys_of[port](row), row)
        self.after(groups)

    def state(self) -> Snapshot:
        waiting = [taken for buffer in self._buffers.values() for taken in buffer]
        return {"arrived": self._arrived, "waiting": [list(taken) for taken in waiting]}

    def set_state(self, state: Snapshot) -> None:
        self._arrived = state["arrived"]
        self._buffers.clear()
        for saved in state["waiting"]:
            taken = Taken._make(frozen(saved))
            group = self.grouping.of_key(self.keys_of[self.ranks[taken.rank]](taken.row))
            heappush(self._buffers.setdefault(group, []), taken)
