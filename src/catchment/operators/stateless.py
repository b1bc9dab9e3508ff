"""Stateless steps: what each writes into a chain is all that it is, so that running alone and fused cannot differ.

A step alone is a chain of one. It keeps nothing, and progress, presence and ticks pass it untouched.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from catchment.operators.chain import Chain
from catchment.operators.contract import Operator, Port, Quarantine, Snapshot
from catchment.program.row_error import FUNCTION_FAILED, RowError
from catchment.program.types import Schema


class Stateless(Operator):
    """A step that treats each element by itself."""

    def __init__(self, given: Schema) -> None:
        self.given = given

    @abstractmethod
    def write(self, chain: Chain) -> None:
        """Add this step to the chain."""

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        chain = Chain(self.given)
        self.write(chain)
        (output, *_) = outputs
        fused = chain.compile(output.element, [quarantine])
        return (Port(fused.element, output.progress, output.presence, output.tick),)

    def snapshot(self) -> Snapshot:
        return {}

    def restore(self, state: Snapshot) -> None:
        pass


def calling(body: Callable[..., Any]) -> Callable[..., Any]:
    """An author's function, whose exceptions fail the row."""

    def call(*args: Any) -> Any:
        try:
            return body(*args)
        except Exception as error:
            raise RowError(FUNCTION_FAILED, repr(error)) from error

    return call
