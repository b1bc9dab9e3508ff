"""What passes an edge in one batch: elements as columns, and between them what speaks of time, all by place.

The place of an event is its number in the batch, in the log's order; what follows from an event has its place. At one
place elements come before the rest, as steps give results before promises and ticks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from catchment.engines.spark.rows import Array, Rows
from catchment.engines.spark.state.forgetting import Gone
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.places import event_at
from catchment.errors import ProgramError
from catchment.program.types import Row, Schema

Control: TypeAlias = tuple[Any, ...]
"""(place, PROGRESS, device, owner, at), (place, PRESENCE, device, owner, since) or (place, TICK, now)."""

TOLD_AGAIN = -1
"""The place of a tick that happened before the batch, told for what was not looked at then: no timer was due by it.
Steps pass it on whether or not they knew the time already: what is behind them may not."""


@dataclass(slots=True)
class Flow:
    """Elements and controls, each in order."""

    rows: Rows
    controls: list[Control]


@dataclass(slots=True)
class Failed:
    """What was quarantined: (place, step, reason, row), to be put in order at the end of a batch."""

    found: list[tuple[int, int, str, str, Row]] = field(default_factory=list)
    """With the number of the step in the graph, which decides at one place."""

    def add(self, place: int, number: int, step: str, reason: str, row: Row) -> None:
        """One more."""
        self.found.append((place, number, step, reason, row))

    def in_order(self) -> list[tuple[str, str, Row]]:
        """All of them, as (step, reason, row)."""
        found = sorted(self.found, key=lambda each: (event_at(each[0]), each[1]))
        return [(step, reason, row) for _, _, step, reason, row in found]


class VectorOperator(ABC):
    """A step over a batch. `number` and `name` are those of its vertex."""

    name: str
    number: int
    failed: Failed

    @abstractmethod
    def take(self, flows: Sequence[Flow]) -> tuple[Flow, ...]:
        """What each output gives, for what came in by each input."""

    def snapshot(self) -> Any:
        """All that the step remembers, as plain data."""
        return None

    def restore(self, saved: Any) -> None:  # noqa: B027  most steps remember nothing
        """Remember that."""

    adopts: ClassVar[bool] = False
    """Whether it can go on from what the step's operator remembered, which takes event by event."""

    def adopt(self, state: dict[str, Any]) -> None:
        """Remember that."""
        raise ProgramError(
            "C333",
            "the program cannot go on from the state that is here",
            why=f"{self.name} kept its state event by event, and keeps it in columns now",
            fix="give the step another name, or run the program in a new --data directory",
        )

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        """What the step remembers, by shard. `route` says which fields of its key decide that."""
        return Pieces(self.snapshot())

    def remembered(self) -> Sequence[tuple[tuple[Any, ...], Any]]:
        """Each key, and what is remembered of it, as plain data for people."""
        return ()

    def forget(self, device: str) -> None:  # noqa: B027  most steps know no device
        """Know nothing more of a device than if it had never spoken."""

    def drop(self, gone: Gone) -> None:
        """Remember nothing of a device, or of a user, where the state of all keys is one piece."""
        self.forget(gone.device)
        position, stamp = self.stamped
        if stamp is not None and gone.named(stamp) is not None:
            pieces = self.split(lambda route: int(route[0] == gone.named(stamp)), (position,))
            self.merge(pieces.shared, [pieces.parts[0]] if 0 in pieces.parts else [])

    @property
    def stamped(self) -> tuple[int, str | None]:
        """Which field of a key says whose it is, and whether it names a device or a user."""
        return 0, None

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        """Remember what all keys share, and these shards."""
        if shared is not None:
            self.restore(shared)

    def fail(self, rows: Rows, reasons: dict[int, str]) -> Array | None:
        """Quarantine these rows; the others as a mask, or None where there are none to leave out."""
        if not reasons:
            return None
        numbers = list(reasons)
        for number, row in zip(numbers, rows.take(np.array(numbers, np.int64)).objects(), strict=True):
            self.failed.add(int(rows.place[number]), self.number, self.name, reasons[number], row)
        kept = np.ones(len(rows), np.bool_)
        kept[numbers] = False
        return kept


class VectorStep(VectorOperator):
    """One that has one input."""

    def take(self, flows: Sequence[Flow]) -> tuple[Flow, ...]:
        (flow,) = flows
        return self.run(flow)

    @abstractmethod
    def run(self, flow: Flow) -> tuple[Flow, ...]:
        """What each output gives, for what came in."""


def kinds_of(schema: Schema) -> Sequence[Any]:
    """The types of a schema's fields."""
    return [column.type for column in schema.fields]
