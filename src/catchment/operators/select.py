"""`select`: new fields computed from the old."""

from __future__ import annotations

from catchment.operators.chain import Chain
from catchment.operators.stateless import Stateless
from catchment.program import steps
from catchment.program.types import Schema


class Select(Stateless):
    """A projection."""

    def __init__(self, step: steps.Select, given: Schema) -> None:
        super().__init__(given)
        self._step = step

    def write(self, chain: Chain) -> None:
        chain.replace(self._step.columns, self._step.record)
