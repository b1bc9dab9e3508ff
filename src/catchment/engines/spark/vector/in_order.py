"""Steps that take elements in order, computed by the operator of devices: `fold`, `state`, and windows of counts.

Elements wait in columns and are released for the whole batch; the operator is given them one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from catchment.engines.spark.rows import Rows, column_of
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.flow import Flow, kinds_of
from catchment.engines.spark.vector.operated import Entry, Operated, VectorOperated
from catchment.engines.spark.vector.release import VectorRelease
from catchment.operators.build import operator_of
from catchment.operators.contract import Snapshot
from catchment.operators.fold import Fold
from catchment.operators.keys import Key
from catchment.operators.release import Releasing, Taken
from catchment.program import steps
from catchment.program.types import INT, Schema


class VectorInOrder(VectorOperated):
    """A step whose operator waits until elements are in order."""

    FIELDS = ("states", "summaries", "keys")
    ELSEWHERE = ("arrived", "waiting")
    adopts = True

    def __init__(self, step: Operated, given: Schema) -> None:
        operator = operator_of(step, (given,))
        assert isinstance(operator, Releasing)
        super().__init__(step, given, operator)
        self._releasing = operator
        order = step.order if isinstance(step, steps.Running | steps.Fold) else "event_time"
        self._kinds = kinds_of(given)
        self._release = VectorRelease(self.waiting, self.position, order, self._kinds)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        released = self._release.take(flow)
        rows = released.rows
        release, key_of = self._releasing.release, self._releasing.keys_of[0]
        for self.place, at, row in zip(rows.place.tolist(), rows.at.tolist(), rows.objects(), strict=True):
            release(at, 0, key_of(row), row)
        return self.given(released.followed, released.late)

    def entries(self, state: Snapshot) -> Iterator[Entry]:
        for field in self.FIELDS:
            for entry in state.get(field, ()):
                yield Entry(field, entry[0], entry, None)

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces, waiting = self._release.split(shard_of, [self._places[field] for field in route])
        for part in pieces.parts.values():
            part.append({})
        return self.spread(pieces, waiting, shard_of, route)

    def part(self) -> list[Any]:
        return [None, None, {}]

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        release, rest = shared
        self._release.merge(release, parts)
        self.resume({**_NOTHING_WAITS, **self.gathered(rest, parts)})

    def snapshot(self) -> Any:
        return [self._release.snapshot(), self._releasing.state()]

    def restore(self, saved: Any) -> None:
        release, state = saved
        self._release.restore(release)
        self.resume(state)

    def adopt(self, state: Snapshot) -> None:
        taken = [Taken._make(each) for each in state["waiting"]]
        pending = Rows.of([(each.at, (each.device, each.owner), each.row) for each in taken], self._kinds)
        pending.place = column_of([each.arrived for each in taken], INT).values
        progress = {"progress": state["progress"], "ticks": state["ticks"]}
        self._release.restore([progress, state["arrived"] + 1, pending.plain(places=True)])
        self.resume({**state, **_NOTHING_WAITS})

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        state = self._releasing.state()
        if isinstance(self._releasing, Fold):
            names = self.record.names
            return [(key, {"state": dict(zip(names, row, strict=True))}) for key, row in state["states"]]
        return [(key, {"kept": saved}) for _, key, (_, *saved), _ in self.entries(state)]


_NOTHING_WAITS: Snapshot = {"arrived": 0, "waiting": []}
