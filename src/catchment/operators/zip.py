"""`zip`: the n-th left element of a key with its n-th right one, when both are there."""

from __future__ import annotations

from collections import deque

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.pairing import Pairing, Side
from catchment.operators.release import Releasing
from catchment.program import steps
from catchment.program.types import Row, Schema


class Zip(Releasing):
    """For each key the elements of the side that is ahead; a key of which neither is takes no room."""

    def __init__(self, step: steps.Zip, given: tuple[Schema, ...]) -> None:
        super().__init__(given, (step.keys, step.right_keys), step.closing, step.scope)
        self._pairing = Pairing(step, given, optional=())
        self._ahead: dict[Key, tuple[int, deque[Side]]] = {}

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        self._pair = self._pairing.giving(outputs[0].element, quarantine)
        return super().connect(outputs, quarantine)

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        mine = Side(at, row)
        ahead, waiting = self._ahead.get(key) or (port, deque())
        if ahead == port:
            waiting.append(mine)
            self._ahead[key] = ahead, waiting
            return
        other = waiting.popleft()
        if not waiting:
            del self._ahead[key]
        left, right = (mine, other) if port == 0 else (other, mine)
        self._pair(collapsed(self.grouping.of_key(key)), left, right)

    def state(self) -> Snapshot:
        ahead = [[key, port, [list(side) for side in waiting]] for key, (port, waiting) in self._ahead.items()]
        return {**super().state(), "ahead": ahead}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._ahead = {
            frozen(key): (port, deque(Side(at, frozen(row)) for at, row in waiting))
            for key, port, waiting in state["ahead"]
        }
