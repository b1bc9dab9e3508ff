"""`subscribe`: call a declared function with each element, for its effect; what it fails on does not pass."""

from __future__ import annotations

from catchment.operators.chain import Chain
from catchment.operators.stateless import Stateless, calling
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.types import Schema


class Subscribe(Stateless):
    """A declared function that is told of each element."""

    def __init__(self, step: steps.Subscribe, given: Schema) -> None:
        super().__init__(given)
        self._function = declared(step.function)

    def write(self, chain: Chain) -> None:
        of = self._function.annotations[0].of
        body = calling(self._function.body)
        chain.call(lambda row: body(of(row)))
