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
An element that cannot be computed is handed to the operator's `quarantine` with the reason; it is no output.

The two special streams of the model are functions here: `restore` is the port that sets state, `snapshot` the one
that reads it. Snapshots are plain data that any codec carries (numbers within 64 bits, text, bytes, lists, dicts with
text keys). The rest of an operator's identity, its time context (how many elements each port took and gave), is the
same for every operator, so an engine keeps it and puts it beside the snapshot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from catchment.plan.history import Source
from catchment.program.row_error import RowError
from catchment.program.types import Row

Snapshot: TypeAlias = dict[str, Any]
Quarantine: TypeAlias = Callable[[RowError, Row], None]
"""Takes why an element could not be computed, and what was given."""


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


def _nothing(*event: Any) -> None:
    """Takes an event that no one asked for."""


NOWHERE = Port(_nothing, _nothing, _nothing, _nothing)
"""Where an output goes that nothing reads."""


class Operator(ABC):
    """A running step. `connect` is called once, before any event; then only the ports it returned are used."""

    @abstractmethod
    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        """Given where each output goes, the ports of the inputs. This is where closures are made."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """All that the operator remembers, as plain data (the port that reads state)."""

    @abstractmethod
    def restore(self, state: Snapshot) -> None:
        """Remember exactly that (the port that sets state)."""


__all__ = ["NOWHERE", "Operator", "Port", "Quarantine", "Snapshot", "Source"]
