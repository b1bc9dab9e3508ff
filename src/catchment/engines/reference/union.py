"""Union: elements of all inputs in arrival order, and of promises and ticks the least."""

from __future__ import annotations

from catchment.engines.reference.definition import Given, Place, nothing
from catchment.engines.reference.events import Arrival, Element, Presence, Progress, Tick
from catchment.plan.history import Source


def union(place: Place, arrivals: list[Arrival]) -> Given:
    """One stream of many."""
    ports = range(len(place.vertex.inputs))
    promised: list[dict[Source, int]] = [{} for _ in ports]
    given_promise: dict[Source, int] = {}
    given_presence: dict[Source, Presence] = {}
    ticks = Ticks(len(ports))
    given = nothing(place)
    for arrival in arrivals:
        event = arrival.event
        match event:
            case Element():
                given.send(arrival.round, event)
            case Progress(source, at):
                known = promised[arrival.port]
                known[source] = max(at, known.get(source, at))
                least = min(promised[port][source] for port in ports if source in promised[port])
                if source not in given_promise or least > given_promise[source]:
                    given_promise[source] = least
                    given.send(arrival.round, Progress(source, least))
            case Presence(source):
                if given_presence.get(source) != event:
                    given_presence[source] = event
                    given.send(arrival.round, event)
            case Tick(now):
                tick = ticks.take(arrival.port, now)
                if tick is not None:
                    given.send(arrival.round, tick)
    return given


class Ticks:
    """The tick of a step with several inputs: the least of their largest, given when it rises."""

    def __init__(self, ports: int) -> None:
        self._largest: list[int | None] = [None] * ports
        self._given: int | None = None

    def take(self, port: int, now: int) -> Tick | None:
        """The tick to give after this one came, if any."""
        before = self._largest[port]
        self._largest[port] = now if before is None else max(before, now)
        known = [largest for largest in self._largest if largest is not None]
        least = min(known)
        if len(known) < len(self._largest) or (self._given is not None and least <= self._given):
            return None
        self._given = least
        return Tick(least)
