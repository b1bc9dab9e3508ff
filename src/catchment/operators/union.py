"""`union`: elements of all inputs in arrival order; of promises and of ticks the least.

A source's progress is the least over the inputs that had progress of it, and is given when it rises. A presence event
is passed on unless it repeats the one before.
"""

from __future__ import annotations

from catchment.operators.contract import Operator, Port, Quarantine, Snapshot
from catchment.operators.ticks import Ticks
from catchment.plan.history import Source


class Union(Operator):
    """Remembers what each input promised and which ticks it had."""

    def __init__(self, ports: int) -> None:
        self._promised: list[dict[Source, int]] = [{} for _ in range(ports)]
        self._given: dict[Source, int] = {}
        self._presence: dict[Source, int | None] = {}
        self._ticks = Ticks(ports)

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        (output, *_) = outputs
        return tuple(self._port(port, output) for port in range(len(self._promised)))

    def _port(self, port: int, output: Port) -> Port:
        promised = self._promised[port]

        def progress(source: Source, at: int) -> None:
            before = promised.get(source)
            if before is None or at > before:
                promised[source] = at
            least = min(known[source] for known in self._promised if source in known)
            given = self._given.get(source)
            if given is None or least > given:
                self._given[source] = least
                output.progress(source, least)

        def presence(source: Source, since: int | None) -> None:
            if source not in self._presence or self._presence[source] != since:
                self._presence[source] = since
                output.presence(source, since)

        def tick(now: int) -> None:
            least = self._ticks.take(port, now)
            if least is not None:
                output.tick(least)

        return Port(output.element, progress, presence, tick)

    def snapshot(self) -> Snapshot:
        return {
            "promised": [[[*source, at] for source, at in known.items()] for known in self._promised],
            "given": [[*source, at] for source, at in self._given.items()],
            "presence": [[*source, since] for source, since in self._presence.items()],
            "ticks": self._ticks.save(),
        }

    def restore(self, state: Snapshot) -> None:
        for known, saved in zip(self._promised, state["promised"], strict=True):
            known.clear()
            known.update((Source(device, owner), at) for device, owner, at in saved)
        self._given = {Source(device, owner): at for device, owner, at in state["given"]}
        self._presence = {Source(device, owner): since for device, owner, since in state["presence"]}
        self._ticks.load(state["ticks"])
