"""Elements in order of time: those that wait for progress, and those that a batch releases, with the place of each.

An element is released at the first moment at which the bound of its group lies beyond it; at one moment by time,
device and arrival. One that comes behind its group's bound is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Rows
from catchment.engines.spark.state.pieces import Pieces, ShardOf, by_shard, shards_of_rows
from catchment.engines.spark.vector.flow import Flow
from catchment.engines.spark.vector.waiting import Followed, Groups, Heard, VectorWaiting, WaitingPieces
from catchment.operators.members import Group
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


class Pending:
    """What waits of one input. `position` is where in a row its group is named, None where all are one."""

    def __init__(self, position: int | None, kinds: Any) -> None:
        self.position = position
        self.arrived = 0
        self._kinds = kinds
        self.rows = Rows.none(kinds)

    def take(self, heard: Heard, followed: Followed) -> Released:
        """Take what came; give what is released, and what was late."""
        rows, group = heard.rows, heard.group
        behind = rows.at < heard.closed
        late = rows.take(np.zeros(0, np.int64))
        if behind.any():
            late, rows, group = rows.take(behind), rows.take(~behind), group[~behind]
        numbers = np.arange(self.arrived, self.arrived + len(rows), dtype=np.int64)
        self.arrived += len(rows)
        rows = Rows(rows.at, rows.source, numbers, rows.sources, rows.columns)
        if len(self.rows):
            held = None if self.position is None else self.rows.columns[self.position]
            group = np.concatenate([followed.groups.of(held, len(self.rows)), group])
            rows = Rows.concat([self.rows, rows])
        out, moment = followed.moments.first_beyond(group, rows.at)
        if out.all():
            self.rows = rows.take(np.zeros(0, np.int64))
        else:
            self.rows = rows.take(~out)
            rows, group, moment = rows.take(out), group[out], moment[out]
        order = np.lexsort((rows.place, device_ranks(rows), rows.at, moment))
        rows, group, moment = rows.take(order), group[order], moment[order]
        rows.place = followed.moments.places[moment]
        return Released(rows, group, moment, late, followed)

    def split(self, shard_of: ShardOf, places: Sequence[int]) -> Iterator[tuple[int, Rows, dict[Group, int]]]:
        """What waits, by shard, with the least time in each group."""
        rows = self.rows
        shards = shards_of_rows([rows.columns[place] for place in places], len(rows), shard_of)
        for shard, which in by_shard(shards):
            held = rows.take(which)
            groups = Groups([], {})
            group = groups.of(None if self.position is None else held.columns[self.position], len(held))
            yield shard, held, {name: int(held.at[group == n].min()) for n, name in enumerate(groups.known)}

    def forget(self, device: str) -> None:
        """Wait with nothing of that device."""
        gone = np.array([source.device == device for source in self.rows.sources], np.bool_)
        if gone.any():
            self.rows = self.rows.take(~gone[self.rows.source])

    def load(self, saved: Sequence[Any]) -> None:
        """Remember what these say."""
        pending = [Rows.from_plain(each) for each in saved if each is not None]
        self.rows = Rows.concat(pending) if pending else Rows.none(self._kinds)


class VectorRelease:
    """What waits to be released of a step with one input."""

    def __init__(self, waiting: VectorWaiting, position: int | None, order: Order, kinds: Any) -> None:
        self.waiting = waiting
        self._in_order = order == "event_time"
        self._pending = Pending(position, kinds)

    def take(self, flow: Flow) -> Released:
        """Take a batch; give what it releases."""
        position = self._pending.position
        followed = self.waiting.follow(flow, None if position is None else flow.rows.columns[position])
        if not self._in_order:
            (heard,) = followed.inputs
            late = heard.rows.take(np.zeros(0, np.int64))
            return Released(heard.rows, heard.group, heard.following, late, followed)
        return self._pending.take(followed.inputs[0], followed)

    def split(self, shard_of: ShardOf, places: Sequence[int]) -> tuple[Pieces, WaitingPieces]:
        """What waits, by shard; `places` are those of the fields that decide it."""
        waiting = self.waiting.split(shard_of)
        pieces = Pieces([waiting.shared, self._pending.arrived])
        for shard, part in waiting.parts.items():
            pieces.parts[shard] = [part, None]
            pieces.count[shard] = len(part["groups"])
        for shard, held, least in self._pending.split(shard_of, places):
            pieces.parts.setdefault(shard, [None, None])[1] = held.plain(places=True)
            for name, at in least.items():
                waiting.ring(pieces, shard, name, at)
        return pieces, waiting

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        """Remember that."""
        waiting, self._pending.arrived = shared
        self.waiting.merge(waiting, [part[0] for part in parts if part[0] is not None])
        self._pending.load([part[1] for part in parts])

    def snapshot(self) -> Any:
        """As plain data."""
        return [self.waiting.snapshot(), self._pending.arrived, self._pending.rows.plain(places=True)]

    def restore(self, saved: Any) -> None:
        """Remember that."""
        waiting, self._pending.arrived, pending = saved
        self.waiting.restore(waiting)
        self._pending.load([pending])


def device_ranks(rows: Rows) -> Array:
    """Of each element, where its device stands in the order of devices."""
    devices = sorted({source.device for source in rows.sources})
    if len(devices) == 1:
        return np.zeros(len(rows), np.int64)
    rank = {device: number for number, device in enumerate(devices)}
    return np.array([rank[source.device] for source in rows.sources], np.int64)[rows.source]
