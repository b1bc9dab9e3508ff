"""What a step of a program is, as data: one frozen structure per kind of operator.

This is all that a plan carries of a step, in JSON too; what it computes is defined in docs/reference/semantics.md,
evaluated slowly by the reference engine and incrementally by `operators`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from catchment.program.aggregate import NamedAggregate
from catchment.program.nodes import Node
from catchment.program.sampling import Sampling
from catchment.program.types import DataType, Schema
from catchment.program.window import Closing, Window

Order: TypeAlias = Literal["event_time", "arrival"]
Scope: TypeAlias = Literal["own", "all"]
"""Whose promises close a window: those of the key's own devices, or of all sources of the stream."""


class Named(msgspec.Struct, frozen=True):
    """An expression and the field that it becomes."""

    name: str
    value: Node
    type: DataType
    nullable: bool = False


class _Step(msgspec.Struct, frozen=True, tag_field="step", tag=str.lower):
    pass


class Sensor(_Step, frozen=True):
    """Readings of a device's sensor."""

    record: Schema
    sensor: str
    sampling: Sampling | None = None


class Timer(_Step, frozen=True):
    """An element each `every`, carrying only the moment."""

    record: Schema
    every: int


class Append(_Step, frozen=True):
    """Elements that a program outside appends."""

    record: Schema


class External(_Step, frozen=True):
    """A source that the cloud reads by itself: files, Kafka, a rate."""

    record: Schema
    connector: str
    options: dict[str, Any]

    def __hash__(self) -> int:
        return hash((self.record, self.connector, tuple(sorted(self.options.items()))))


class Feedback(_Step, frozen=True):
    """What a later step of the same program gives, brought back here: the one way to a cycle."""

    record: Schema
    loop: str


class Where(_Step, frozen=True):
    """Keep the elements for which the predicate is true (not false, not null)."""

    predicate: Node


class Select(_Step, frozen=True):
    """New fields computed from the old."""

    columns: tuple[Named, ...]
    record: Schema


class Map(_Step, frozen=True):
    """A declared function of each element, giving one element, or many where `many`."""

    function: str
    record: Schema
    many: bool = False


class Union(_Step, frozen=True):
    """The elements of all inputs."""


class KeyBy(_Step, frozen=True):
    """Say which fields are the key. `owner` is the one that a gateway stamps, if there is one."""

    keys: tuple[str, ...]
    owner: str | None = None


class Changes(_Step, frozen=True):
    """Keep an element of a key when one of these values differs from that of the last element kept."""

    values: tuple[Node, ...]
    keys: tuple[str, ...]
    order: Order = "arrival"


class Moved(_Step, frozen=True):
    """Keep an element of a key when it is more than so many metres from the last element kept."""

    by_m: float
    lat_deg: Node
    lon_deg: Node
    keys: tuple[str, ...]
    order: Order = "arrival"


class Aggregated(_Step, frozen=True):
    """Aggregates per key and window. `panes` is set by the plan where slides are aggregated once and combined."""

    window: Window
    aggregates: tuple[NamedAggregate, ...]
    keys: tuple[str, ...]
    scope: Scope
    record: Schema
    panes: bool = False


class TopK(_Step, frozen=True):
    """The k elements with the largest value, per key and window, largest first; ties to the earlier element."""

    k: int
    by: Node
    window: Window
    keys: tuple[str, ...]
    scope: Scope
    record: Schema


class Join(_Step, frozen=True):
    """Pairs of a left and a right element of one key.

    `how` "window": both in one window. "interval": the right one at most `before` earlier and `after` later than the
    left. "latest": the latest right element not after the left one. `outer` keeps lonely left elements, with nulls.
    """

    how: Literal["window", "interval", "latest"]
    keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    columns: tuple[Named, ...]
    scope: Scope
    record: Schema
    window: Window | None = None
    before: int = 0
    after: int = 0
    outer: bool = False
    closing: Closing = Closing()


class Zip(_Step, frozen=True):
    """The n-th element of the left with the n-th of the right, per key."""

    keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    columns: tuple[Named, ...]
    scope: Scope
    record: Schema
    closing: Closing = Closing()


class Combine(_Step, frozen=True):
    """Whenever either side has a new element: the latest of both, per key, null where there was none yet."""

    keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    columns: tuple[Named, ...]
    scope: Scope
    record: Schema
    closing: Closing = Closing()


class Running(_Step, frozen=True):
    """A stateful stream of aggregates: after each element of a key, the aggregates of all so far."""

    aggregates: tuple[NamedAggregate, ...]
    keys: tuple[str, ...]
    scope: Scope
    record: Schema
    order: Order = "event_time"
    closing: Closing = Closing()


class Fold(_Step, frozen=True):
    """A stateful stream: `state = function(state, element)` per key, given after each element."""

    function: str
    initial: tuple[Any, ...]
    keys: tuple[str, ...]
    scope: Scope
    record: Schema
    order: Order = "event_time"
    closing: Closing = Closing()


class Processed(_Step, frozen=True):
    """An author's `Process`, by reference, with its parameters."""

    process: str
    parameters: dict[str, Any]
    keys: tuple[str, ...]
    scope: Scope
    record: Schema
    order: Order = "event_time"
    closing: Closing = Closing()
    ttl: int | None = None

    def __hash__(self) -> int:
        return hash((self.process, str(sorted(self.parameters.items())), self.keys, self.order))


class Subscribe(_Step, frozen=True):
    """Call a declared function with each element, for its effect; the elements pass on unchanged."""

    function: str


class Deliver(_Step, frozen=True):
    """Bring results to the devices of a user (or one device), where they are a sensor to the program."""

    by: str
    to: Literal["device", "user"]
    keep: Literal["latest", "all"]


class Sink(_Step, frozen=True):
    """Put results outside: a table, files, a callback."""

    connector: str
    options: dict[str, Any]

    def __hash__(self) -> int:
        return hash((self.connector, tuple(sorted(self.options.items()))))


Step: TypeAlias = (
    Sensor
    | Timer
    | Append
    | External
    | Feedback
    | Where
    | Select
    | Map
    | Union
    | KeyBy
    | Changes
    | Moved
    | Aggregated
    | TopK
    | Join
    | Zip
    | Combine
    | Running
    | Fold
    | Processed
    | Subscribe
    | Deliver
    | Sink
)

SOURCES = (Sensor, Timer, Append, External, Feedback)
"""Steps without an input."""
LATE = 1
"""The output port of late elements, on steps that wait for progress. Port 0 is the result."""
SURROUNDINGS = "surroundings"
"""The sink by which a program tells its own device what is around it: sampling rules go by that from then on."""
LATE_PORTS = (Aggregated, TopK, Join, Zip, Combine, Running, Fold, Processed)
"""Steps that have it."""
