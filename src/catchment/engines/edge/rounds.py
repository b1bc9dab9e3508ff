"""Rounds: a step with several inputs takes, in each round, the new events of its port 0, then of port 1, and so on.

A graph is run depth first, by plain calls, which is the order of the definition wherever a step has one input. Before
a step with several, the events of a round wait at the step until the steps before it are done; in a round that can
reach the step by one port only, they need not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catchment.operators.contract import Port
from catchment.plan.history import Source
from catchment.program.types import Row

_Event = tuple[Callable[..., None], tuple[Any, ...]]


class Rounds:
    """The queues of the steps with several inputs, in the order of the graph."""

    def __init__(self) -> None:
        self.queueing = [False]
        """Whether events have to wait in this round; in a list, so that closures see it change."""
        self._queues: list[list[list[_Event]]] = []

    def queued(self, ports: tuple[Port, ...]) -> tuple[Port, ...]:
        """The ports of a step, with queues before them. To be called for the last step of the graph first."""
        queues: list[list[_Event]] = [[] for _ in ports]
        self._queues.insert(0, queues)
        return tuple(self._queued(port, queue) for port, queue in zip(ports, queues, strict=True))

    def _queued(self, port: Port, queue: list[_Event]) -> Port:
        queueing, wait = self.queueing, queue.append

        def element(at: int, source: Source, row: Row) -> None:
            if queueing[0]:
                wait((port.element, (at, source, row)))
            else:
                port.element(at, source, row)

        def progress(source: Source, at: int) -> None:
            if queueing[0]:
                wait((port.progress, (source, at)))
            else:
                port.progress(source, at)

        def presence(source: Source, since: int | None) -> None:
            if queueing[0]:
                wait((port.presence, (source, since)))
            else:
                port.presence(source, since)

        def tick(now: int) -> None:
            if queueing[0]:
                wait((port.tick, (now,)))
            else:
                port.tick(now)

        return Port(element, progress, presence, tick)

    def finish(self) -> None:
        """Let every step take what waits for it. Steps only give to later ones, so once through is enough."""
        for queues in self._queues:
            for queue in queues:
                for take, event in queue:
                    take(*event)
                queue.clear()
