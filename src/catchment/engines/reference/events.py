"""Events on the edges of a graph, each with the round it happened in, and the one order of values.

An edge over a whole history is a list of events; what a step takes is its inputs' lists, merged by round and port.

>>> ada = Source("ada-1", "ada")
>>> left, right = [Sent((1, 0), Tick(5))], [Sent((0, 0), Progress(ada, 3)), Sent((1, 0), Tick(5))]
>>> [(arrival.round, arrival.port) for arrival in arrivals([left, right])]
[((0, 0), 1), ((1, 0), 0), ((1, 0), 1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from catchment.plan.history import Source
from catchment.program.types import Row


class Element(NamedTuple):
    """A row, when it happened, and who sent it."""

    at: int
    source: Source
    row: Row


class Progress(NamedTuple):
    """The source's promise that nothing older than `at` is still to come on this edge."""

    source: Source
    at: int


class Presence(NamedTuple):
    """The source went away at that moment of the clock, or came back (None)."""

    source: Source
    since: int | None


class Tick(NamedTuple):
    """The clock of whoever keeps the log."""

    now: int


Event: TypeAlias = Element | Progress | Presence | Tick
Round: TypeAlias = tuple[int, int]
"""The number of the entry, and how often feedback has gone round since: 0 for the entry itself."""


class Sent(NamedTuple):
    """An event on an edge."""

    round: Round
    event: Event


class Arrival(NamedTuple):
    """An event at an input port of a step."""

    round: Round
    port: int
    event: Event


def arrivals(edges: Sequence[Sequence[Sent]]) -> list[Arrival]:
    """What a step takes, in order: in each round the new events of its port 0, then of port 1, and so on."""
    merged = [Arrival(sent.round, port, sent.event) for port, edge in enumerate(edges) for sent in edge]
    return sorted(merged, key=lambda arrival: (arrival.round, arrival.port))


def ordering(value: Any) -> tuple[Any, ...]:
    """Something that sorts as the value does: null first, NaN last, lists and records by their first difference.

    >>> sorted([2.0, float("nan"), None, 1.0], key=ordering)
    [None, 1.0, 2.0, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(ordering(inner) for inner in value))
    return (2,) if value != value else (1, value)
