"""Steps that give every element on as it came: `key_by`, which only says what the key is, `deliver` and sinks, and
the sources of a graph, at which an engine enters what it is fed."""

from __future__ import annotations

from catchment.operators.chain import Chain
from catchment.operators.stateless import Stateless


class Passing(Stateless):
    """Gives what it takes."""

    def write(self, chain: Chain) -> None:
        chain.pass_on()
