"""A sensor that is asked: by a probe, at an interval that the sampling rules stretch.

Promises: at most one reading per interval; an interval that was slept through, or during which the process was dead,
is not made up for, since nobody can read the past. After a restart the cadence goes on within the same boot.

>>> class Counter:
...     def read(self, at_us): return {"at_us": at_us}
>>> sensor, outside = Polled(Counter(), Rate(Sampling(10)), now_us=100), Surroundings()
>>> [len(sensor.take(now, outside, 9)) for now in (100, 105, 110, 155)], sensor.due_us(outside)
([1, 0, 1, 1], 160)
"""

from __future__ import annotations

from typing import Protocol, cast

import msgspec

from catchment.device.sampling import Rate
from catchment.device.sensors.sensor import Probe, Reading
from catchment.device.surroundings import Surroundings
from catchment.program.sampling import Sampling


class Positioned(Protocol):
    """A probe that has something to remember between starts."""

    @property
    def spent(self) -> bool:
        """Whether it has nothing more to give."""
        ...

    def position(self) -> bytes:
        """Where it stands."""
        ...

    def resume(self, position: bytes) -> None:
        """Go on from there."""
        ...


class _Memory(msgspec.Struct, array_like=True):
    asked_us: int | None
    probe: bytes


class Polled:
    """See the module."""

    recorded = False

    def __init__(self, probe: Probe, rate: Rate, *, now_us: int) -> None:
        self._probe = probe
        self._own = cast(Positioned, probe) if hasattr(probe, "position") else None
        self._rate = rate
        self._asked_us: int | None = None
        self._begun_us = now_us

    @property
    def ended(self) -> bool:
        """Whether the probe has said all that it has."""
        return self._own is not None and self._own.spent

    def due_us(self, around: Surroundings) -> int | None:
        """The next beat of the interval."""
        interval_us = self._rate.interval_us(around)
        if interval_us is None or self.ended:
            return None
        return self._begun_us if self._asked_us is None else self._asked_us + interval_us

    def take(self, now_us: int, around: Surroundings, limit: int) -> list[Reading]:
        """Ask the probe, if it is time."""
        due_us = self.due_us(around)
        if due_us is None or now_us < due_us or limit < 1:
            return []
        interval_us = self._rate.interval_us(around) or 1
        # Beats that were missed are skipped, and the cadence stays.
        self._asked_us = due_us + (now_us - due_us) // interval_us * interval_us
        values = self._probe.read(now_us)
        return [] if values is None else [Reading(values)]

    def position(self) -> bytes:
        """When it was asked last, and what the probe remembers."""
        return msgspec.msgpack.encode(_Memory(self._asked_us, b"" if self._own is None else self._own.position()))

    def resume(self, position: bytes, now_us: int) -> None:
        """Keep the cadence, unless the clock is another boot's."""
        memory = msgspec.msgpack.decode(position, type=_Memory)
        if memory.asked_us is not None and memory.asked_us <= now_us:
            self._asked_us = memory.asked_us
        if self._own is not None and memory.probe:
            self._own.resume(memory.probe)


__all__ = ["Polled", "Positioned", "Sampling"]
