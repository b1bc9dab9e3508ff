"""`combine`: whenever either side has a new element, the latest of both of its key, null for a side that had none."""

from __future__ import annotations

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.pairing import Pairing, Side, saved
from catchment.operators.release import Releasing
from catchment.program import steps
from catchment.program.types import Row, Schema


class Combine(Releasing):
    """The latest element of both sides for each key."""

    def __init__(self, step: steps.Combine, given: tuple[Schema, ...]) -> None:
        super().__init__(given, (step.keys, step.right_keys), step.closing, step.scope)
        self._pairing = Pairing(step, given, optional=(0, 1))
        self._latest: dict[Key, list[Side | None]] = {}

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        self._pair = self._pairing.giving(outputs[0].element, quarantine)
        return super().connect(outputs, quarantine)

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        latest = self._latest.setdefault(key, [None, None])
        latest[port] = Side(at, row)
        self._pair(collapsed(self.grouping.of_key(key)), *latest)

    def state(self) -> Snapshot:
        return {**super().state(), "latest": [[key, *map(saved, sides)] for key, sides in self._latest.items()]}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._latest = {
            frozen(key): [None if side is None else Side(side[0], frozen(side[1])) for side in sides]
            for key, *sides in state["latest"]
        }
