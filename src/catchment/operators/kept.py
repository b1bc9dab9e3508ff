"""Filters that compare an element with the last one kept of its key: what `changes` and `moved` have in common.

They take elements as they arrive and pass all other events on, so they wait for nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Operator, Port, Quarantine, Snapshot
from catchment.operators.keys import Key, key_of
from catchment.plan.history import Source
from catchment.program.row_error import RowError
from catchment.program.types import Row, Schema

_NOTHING = object()


class Kept(Operator):
    """The base: what was seen of the last element kept, for each key."""

    def __init__(self, keys: tuple[str, ...], given: Schema) -> None:
        self._key_of = key_of(given, keys)
        self._last: dict[Key, Any] = {}

    @abstractmethod
    def look(self, row: Row) -> Any:
        """What is compared; may raise `RowError`."""

    @abstractmethod
    def differs(self, before: Any, now: Any) -> bool:
        """Whether an element of which `now` was seen is kept after one of which `before` was."""

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        (output, *_) = outputs
        give, last, key_of, look, differs = output.element, self._last, self._key_of, self.look, self.differs

        def element(at: int, source: Source, row: Row) -> None:
            try:
                now = look(row)
            except RowError as error:
                quarantine(error, row)
                return
            key = key_of(row)
            before = last.get(key, _NOTHING)
            if before is _NOTHING or differs(before, now):
                last[key] = now
                give(at, source, row)

        return (Port(element, output.progress, output.presence, output.tick),)

    def snapshot(self) -> Snapshot:
        return {"last": [[key, seen] for key, seen in self._last.items()]}

    def restore(self, state: Snapshot) -> None:
        self._last.clear()
        self._last.update((frozen(key), frozen(seen)) for key, seen in state["last"])
