"""`where`: keep an element when the predicate is true, not false and not null."""

from __future__ import annotations

from catchment.operators.chain import Chain
from catchment.operators.stateless import Stateless
from catchment.program import steps
from catchment.program.types import Schema


class Where(Stateless):
    """A filter."""

    def __init__(self, step: steps.Where, given: Schema) -> None:
        super().__init__(given)
        self._predicate = step.predicate

    def write(self, chain: Chain) -> None:
        chain.keep_if(self._predicate)
