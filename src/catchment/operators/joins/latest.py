"""`join_latest`: each left element with the latest right one of its key that is not after it."""

from __future__ import annotations

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.pairing import Pairing, Side, pairs
from catchment.operators.release import Releasing
from catchment.program import steps
from catchment.program.types import Row, Schema


class LatestJoin(Releasing):
    """The latest right element of each key. At one time the right side is taken first."""

    def __init__(self, step: steps.Join, given: tuple[Schema, ...]) -> None:
        super().__init__(given, (step.keys, step.right_keys), step.closing, step.scope, right_first=True)
        self._pairing = Pairing(step, given, optional=(1,) if step.outer else ())
        self._outer = step.outer
        self._latest: dict[Key, Side] = {}

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        self._pair = self._pairing.giving(outputs[0].element, quarantine)
        return super().connect(outputs, quarantine)

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        if port == 1:
            if pairs(key):
                self._latest[key] = Side(at, row)
            return
        right = self._latest.get(key)
        if right is not None or self._outer:
            self._pair(collapsed(self.grouping.of_key(key)), Side(at, row), right)

    def state(self) -> Snapshot:
        return {**super().state(), "latest": [[key, *side] for key, side in self._latest.items()]}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._latest = {frozen(key): Side(at, frozen(row)) for key, at, row in state["latest"]}
