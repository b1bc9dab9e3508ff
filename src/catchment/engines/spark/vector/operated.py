"""Steps that the operators of devices compute, run through whole batches, with their state by key.

What speaks of time is followed once for the batch; the operator then gets the calls that a device's would get, in the
same order, and so gives the same, of any key and any aggregate. Its snapshot is lists of entries, one per key, which
go to the shards of their keys.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from catchment.engines.spark.events import TICK
from catchment.engines.spark.rows import Rows
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.flow import Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.told import Told
from catchment.engines.spark.vector.waiting import Followed, VectorWaiting, WaitingPieces
from catchment.operators.contract import NOWHERE, Port, Snapshot
from catchment.operators.keys import Grouping, Key
from catchment.operators.waiting import Waiting
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema

Operated: TypeAlias = steps.Aggregated | steps.TopK | steps.Running | steps.Fold
"""What is run so."""

AT_ONCE = -(2**63)
"""Before every watermark: when that is due which the next batch has to look at, whatever it says of time."""


class Entry(NamedTuple):
    """What an operator saved of a key, in which list of its snapshot, and what its group's bound must pass for more."""

    field: str
    key: Key
    saved: Any
    due: int | None


class VectorOperated(VectorStep):
    """The base: what the operator gives, with its place, and its entries."""

    FIELDS: ClassVar[tuple[str, ...]]
    """Which parts of a snapshot are lists of entries."""
    ELSEWHERE: ClassVar[tuple[str, ...]] = ()
    """Which parts of it are kept otherwise."""

    def __init__(self, step: Operated, given: Schema, operator: Waiting) -> None:
        self.record = step.record
        self._places = [given.position(key) for key in step.keys]
        self._grouping = Grouping.of(given, step.keys, step.scope)
        position = self._grouping.position
        self.position = None if position is None else self._places[position]
        closing = step.closing if isinstance(step, steps.Running | steps.Fold) else step.window.closing
        self.waiting = VectorWaiting(self._grouping, closing, step.scope)
        self._operator = operator
        self.told = Told()
        told: Any = self.told
        operator.tracker = told
        output = Port(self._give, NOWHERE.progress, NOWHERE.presence, NOWHERE.tick)
        late = Port(self._late, NOWHERE.progress, NOWHERE.presence, NOWHERE.tick)
        (self.port,) = operator.connect((output, late), self._quarantine)
        self.place = 0
        """The place of what happens now."""
        self._made: list[tuple[int, int, Source, Row]] = []

    def _give(self, at: int, source: Source, row: Row) -> None:
        self._made.append((self.place, at, source, row))

    def _late(self, at: int, source: Source, row: Row) -> None:
        raise AssertionError("what is released is not late")

    def _quarantine(self, error: RowError, row: Row) -> None:
        self.failed.add(self.place, self.number, self.name, error.reason, row)

    def given(self, followed: Followed, late: Rows) -> tuple[Flow, ...]:
        """All that was made, and what was late."""
        made = Rows.of([(at, source, row) for _, at, source, row in self._made], kinds_of(self.record))
        made.place = np.array([place for place, *_ in self._made], np.int64)
        self._made.clear()
        return Flow(made, followed.controls), Flow(late, [each for each in followed.controls if each[1] == TICK])

    @abstractmethod
    def entries(self, state: Snapshot) -> Iterator[Entry]:
        """What is in a snapshot, by key."""

    def spread(self, pieces: Pieces, waiting: WaitingPieces, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        """With the operator's entries, each in its shard, by their list: the last of each part."""
        state = self._operator.state()
        kept = (*self.FIELDS, *self.ELSEWHERE)
        pieces.shared = [pieces.shared, {field: value for field, value in state.items() if field not in kept}]
        keys: dict[int, set[Key]] = {}
        for field, key, saved, due in self.entries(state):
            shard = shard_of(tuple([key[place] for place in route]))
            part = pieces.parts[shard] if shard in pieces.parts else pieces.parts.setdefault(shard, self.part())
            part[-1].setdefault(field, []).append(saved)
            keys.setdefault(shard, set()).add(key)
            if due == AT_ONCE:
                pieces.ring(pieces.alarm, shard, due)
            elif due is not None:
                waiting.ring(pieces, shard, self._grouping.of_key(key), due)
        for shard, there in keys.items():
            pieces.count[shard] = max(pieces.count.get(shard, 0), len(there))
        return pieces

    @abstractmethod
    def part(self) -> list[Any]:
        """That of a shard of which nothing is known."""

    def gathered(self, shared: Snapshot, parts: Sequence[Any]) -> Snapshot:
        """The operator's snapshot of what `spread` made."""
        listed = {field: [entry for part in parts for entry in part[-1].get(field, ())] for field in self.FIELDS}
        return {**shared, **listed}

    def resume(self, state: Snapshot) -> None:
        """Let the operator remember that; the progress is known already."""
        self.told.marks.clear()
        self.told.marks.update(self.waiting.tracker.marks)
        self._operator.closes[0] = self.told.watermark(None) - self._operator.grace
        self._operator.set_state(state)

    def forget(self, device: str) -> None:
        self.waiting.forget(device)

    @property
    def stamped(self) -> tuple[int, str | None]:
        return self._grouping.position or 0, self._grouping.stamp
