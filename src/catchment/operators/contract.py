"""The operator contract: state + one input event -> new state + output events.

An operator is deterministic and sans-I/O. It is given events at its input ports and pushes events to its outputs;
time reaches it only as those events. Engines connect operators by handing each the ports that it pushes into, so a
chain of operators is a chain of plain function calls.

Four kinds of event travel an edge, in one order (the log's):

- `element(at, source, row)`: an element with its event time, and who sent it
- `progress(source, at)`: the source promises that nothing older than `at` is still to come on this edge
- `presence(source, since)`: the source went away at that moment of the clock, or came back (None)
- `tick(now)`: the clock of whoever keeps the log reads `now`

`source` is (device, owner): who sent it, by the gateway's word. A device's own engine has one source.
The contract keeps the operator's time context by itself: how many elements were taken at each input and given at
each output. Snapshots are plain data: numbers, text, bytes, lists, dicts; `restore` takes what `snapshot` gave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from catchment.plan.history import Source
from catchment.program.types import Row


class Port:
    """Where events go in: the four functions of one input of an operator, or of whatever collects an output."""

    __slots__ = ("element", "presence", "progress", "tick")

    def __init__(
        self,
        element: Callable[[int, Source, Row], None],
        progress: Callable[[Source, int], None],
        presence: Callable[[Source, int | None], None],
        tick: Callable[[int], None],
    ) -> None:
        self.element = element
        self.progress = progress
        self.presence = presence
        self.tick = tick


Snapshot: TypeAlias = dict[str, Any]


class Operator(ABC):
    """A running step. `connect` is called once, before any event; then only the ports it returned are used."""

    @abstractmethod
    def connect(self, outputs: tuple[Port, ...]) -> tuple[Port, ...]:
        """Given where each output goes, the ports of the inputs. This is where closures are made."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """All that the operator remembers, as plain data (the port that reads state)."""

    @abstractmethod
    def restore(self, state: Snapshot) -> None:
        """Remember exactly that (the port that sets state)."""


__all__ = ["Operator", "Port", "Snapshot", "Source"]
