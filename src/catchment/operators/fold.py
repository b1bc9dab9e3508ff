"""`fold`: `state = function(state, element)` for each key, given after each element.

An element on which the function fails leaves the state as it was.
"""

from __future__ import annotations

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.map import record_of
from catchment.operators.projection import time_position
from catchment.operators.release import Releasing
from catchment.operators.stateless import calling
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


class Fold(Releasing):
    """A record for each key."""

    def __init__(self, step: steps.Fold, given: Schema) -> None:
        super().__init__((given,), (step.keys,), step.closing, step.scope, order=step.order)
        function = declared(step.function)
        self._state_of, self._element_of = (annotation.of for annotation in function.annotations)
        self._body = calling(function.body)
        self._record_of = record_of(step.record)
        self._time = time_position(step.record)
        self._initial = step.initial
        self._states: dict[Key, Row] = {}

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        before = self._state_of(self._states.get(key, self._initial))
        try:
            after = self._record_of(self._body(before, self._element_of(row)))
        except RowError as error:
            self.quarantine(error, row)
            return
        self._states[key] = after
        time = None if self._time is None else after[self._time]
        self.output.element(at if time is None else time, collapsed(self.grouping.of_key(key)), after)

    def state(self) -> Snapshot:
        return {**super().state(), "states": [[key, row] for key, row in self._states.items()]}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._states.clear()
        self._states.update((frozen(key), frozen(row)) for key, row in state["states"])
