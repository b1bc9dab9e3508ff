"""`state`: after each element of a key, the aggregates of all so far."""

from __future__ import annotations

from typing import Any

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.aggregates.bundle import Bundle
from catchment.operators.contract import Snapshot
from catchment.operators.keys import Key, collapsed
from catchment.operators.release import Releasing
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema


class Running(Releasing):
    """A summary for each key."""

    def __init__(self, step: steps.Running, given: Schema) -> None:
        super().__init__((given,), (step.keys,), step.closing, step.scope, order=step.order)
        self._bundle = Bundle(step.aggregates, given, None)
        self._summaries: dict[Key, Any] = {}
        self._taken = 0

    def release(self, at: int, port: int, key: Key, row: Row) -> None:
        bundle = self._bundle
        try:
            seen = bundle.look(row)
        except RowError as error:
            self.quarantine(error, row)
            return
        summary = self._summaries.get(key)
        if summary is None:
            summary = self._summaries[key] = bundle.empty()
        self._taken += 1
        bundle.add(summary, seen, at, self._taken)
        rows, failure = bundle.rows((*key, at), summary)
        if failure is not None:
            self.quarantine(failure, rows[0])
        else:
            self.output.element(at, collapsed(self.grouping.of_key(key)), rows[0])

    def state(self) -> Snapshot:
        summaries = [[key, self._bundle.save(summary)] for key, summary in self._summaries.items()]
        return {**super().state(), "taken": self._taken, "summaries": summaries}

    def set_state(self, state: Snapshot) -> None:
        super().set_state(state)
        self._taken = state["taken"]
        self._summaries.clear()
        for key, saved in state["summaries"]:
            self._summaries[frozen(key)] = self._bundle.load(saved)
