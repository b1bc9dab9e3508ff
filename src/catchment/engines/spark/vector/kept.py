"""`changes` and `moved` over a batch, by the operator of devices: they wait for nothing, and keep one value per key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.flow import Flow, VectorStep
from catchment.operators.build import operator_of
from catchment.operators.contract import NOWHERE, Port, Snapshot
from catchment.operators.keys import Key
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


class VectorKept(VectorStep):
    """What was seen of the last element kept, for each key."""

    adopts = True

    def __init__(self, step: steps.Changes | steps.Moved, given: Schema) -> None:
        self._operator = operator_of(step, (given,))
        output = Port(self._keep, NOWHERE.progress, NOWHERE.presence, NOWHERE.tick)
        (self._port,) = self._operator.connect((output,), self._quarantine)
        stamps = [given.column(key).stamp for key in step.keys]
        named = [position for position, stamp in enumerate(stamps) if stamp is not None]
        self._stamped = (named[0], stamps[named[0]]) if named else (0, None)
        self._number = 0
        self._kept: list[int] = []
        self._reasons: dict[int, str] = {}

    def _keep(self, at: int, source: Source, row: Row) -> None:
        self._kept.append(self._number)

    def _quarantine(self, error: RowError, row: Row) -> None:
        self._reasons[self._number] = error.reason

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        rows, element, nobody = flow.rows, self._port.element, Source("", None)
        for self._number, row in enumerate(rows.objects()):
            element(0, nobody, row)
        kept = rows if len(self._kept) == len(rows) else rows.take(np.array(self._kept, np.int64))
        self.fail(rows, self._reasons)
        self._kept.clear()
        self._reasons.clear()
        return (Flow(kept, flow.controls),)

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        pieces = Pieces()
        for key, seen in self._operator.snapshot()["last"]:
            shard = shard_of(tuple([key[place] for place in route]))
            pieces.parts.setdefault(shard, []).append([key, seen])
        pieces.count = {shard: len(part) for shard, part in pieces.parts.items()}
        return pieces

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        self.adopt({"last": [entry for part in parts for entry in part]})

    def snapshot(self) -> Any:
        return self._operator.snapshot()

    def restore(self, saved: Any) -> None:
        self.adopt(saved)

    def adopt(self, state: Snapshot) -> None:
        self._operator.restore(state)

    def remembered(self) -> Sequence[tuple[Key, Any]]:
        return [(key, {"kept": seen}) for key, seen in self._operator.snapshot()["last"]]

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self._stamped
