"""Elements in order of time: those that wait for progress, and those that a batch releases, with the place of each.

An element is released at the first moment at which the bound of its group lies beyond it; at one moment by time,
device and arrival. One that comes behind its group's bound is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows
from catchment.engines.spark.state.pieces import Pieces, ShardOf, by_shard, shards_of_rows
from catchment.engines.spark.vector.flow import Flow
from catchment.engines.spark.vector.waiting import Followed, Groups, VectorWaiting, WaitingPieces
from catchment.program.steps import Order


@dataclass(slots=True)
class Released:
    """`rows` in the order in which they are taken, each at the place where it is; the group of each by number.

    `moment` is the control that released each, by number; of what is taken as it comes, the one that follows.
    """

    rows: Rows
    group: Array
    moment: Array
    late: Rows
    followed: Followed


class VectorRelease:
    """What waits to be released. `position` is where in a row its group is named, None where all are one."""

    def __init__(self, waiting: VectorWaiting, position: int | None, order: Order, kinds: Any) -> None:
        self.waiting = waiting
        self._position = position
        self._in_order = order == "event_time"
        self._kinds = kinds
        self._pending = Rows.none(kinds)
        self._arrived = 0

    def take(self, flow: Flow) -> Released:
        """Take a batch; give what it releases."""
        field = None if self._position is None else flow.rows.columns[self._position]
        followed = self.waiting.follow(flow, field)
        rows = flow.rows
        if not self._in_order:
            following = np.searchsorted(followed.moments.places, rows.place)
            return Released(rows, followed.group, following, rows.take(np.zeros(0, np.int64)), followed)
        behind = rows.at < followed.closed
        late = rows.take(np.zeros(0, np.int64))
        group = followed.group
        if behind.any():
            late, rows, group = rows.take(behind), rows.take(~behind), group[~behind]
        numbers = np.arange(self._arrived, self._arrived + len(rows), dtype=np.int64)
        self._arrived += len(rows)
        rows = Rows(rows.at, rows.source, numbers, rows.sources, rows.columns)
        if len(self._pending):
            held = None if self._position is None else self._pending.columns[self._position]
            group = np.concatenate([followed.groups.of(held, len(self._pending)), group])
            rows = Rows.concat([self._pending, rows])
        out, moment = followed.moments.first_beyond(group, rows.at)
        if out.all():
            self._pending = rows.take(np.zeros(0, np.int64))
        else:
            self._pending = rows.take(~out)
            rows, group, moment = rows.take(out), group[out], moment[out]
        order = np.lexsort((rows.place, _device_ranks(rows), rows.at, moment))
        rows, group, moment = rows.take(order), group[order], moment[order]
        rows.place = followed.moments.places[moment]
        return Released(rows, group, moment, late, followed)

    def split(self, shard_of: ShardOf, places: Sequence[int]) -> tuple[Pieces, WaitingPieces]:
        """What waits, by shard; `places` are those of the fields that decide it."""
        rows = self._pending
        waiting = self.waiting.split(shard_of)
        pieces = Pieces([waiting.shared, self._arrived])
        for shard, part in waiting.parts.items():
            pieces.parts[shard] = [part, None]
            pieces.count[shard] = len(part["groups"])
        shards = shards_of_rows([rows.columns[place] for place in places], len(rows), shard_of)
        for shard, which in by_shard(shards):
            held = rows.take(which)
            pieces.parts.setdefault(shard, [None, None])[1] = held.plain(places=True)
            groups = Groups([], {})
            group = groups.of(None if self._position is None else held.columns[self._position], len(held))
            for number, name in enumerate(groups.known):
                waiting.ring(pieces, shard, name, int(held.at[group == number].min()))
        return pieces, waiting

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        """Remember that."""
        waiting, self._arrived = shared
        self.waiting.merge(waiting, [part[0] for part in parts if part[0] is not None])
        pending = [Rows.from_plain(part[1]) for part in parts if part[1] is not None]
        self._pending = Rows.concat(pending) if pending else Rows.none(self._kinds)

    def snapshot(self) -> Any:
        """As plain data."""
        return [self.waiting.snapshot(), self._arrived, self._pending.plain(places=True)]

    def restore(self, saved: Any) -> None:
        """Remember that."""
        waiting, self._arrived, pending = saved
        self.waiting.restore(waiting)
        self._pending = Rows.from_plain(pending)


def _device_ranks(rows: Rows) -> Array:
    devices = sorted({source.device for source in rows.sources})
    if len(devices) == 1:
        return np.zeros(len(rows), np.int64)
    rank = {device: number for number, device in enumerate(devices)}
    return np.array([rank[source.device] for source in rows.sources], np.int64)[rows.source]
