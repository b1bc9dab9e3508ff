"""What a sensor is: something that gives readings when they are due, and can say where it stands.

Promises of every sensor: `take` gives readings in order, at most as many as asked for; a sensor that is given back the
position that it stood at goes on with the reading after the last one that it gave. The position is stored together with
what became of those readings, so a reading is neither lost nor taken twice, whenever the process dies.

A `Probe` is the simpler thing behind most: it is asked, and gives a reading or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from catchment.device.surroundings import Surroundings

Values: TypeAlias = Mapping[str, Any]
"""A reading by field name. Texts are read as the field's type; what is left out takes the field's default."""


class Reading(NamedTuple):
    """What a sensor gave, and when that was, where the sensor knows better than the clock."""

    values: Values
    at_us: int | None = None


class Probe(Protocol):
    """Something to ask, such as a serial line or a file of the kernel."""

    def read(self, at_us: int) -> Values | None:
        """A reading at that moment, or None where there is nothing to say."""
        ...


class Sensor(Protocol):
    """Something that gives readings when they are due. Times are readings of the boot clock."""

    @property
    def recorded(self) -> bool:
        """Whether its readings bring their own moments, which nobody may shift."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing will come any more."""
        ...

    def due_us(self, around: Surroundings) -> int | None:
        """When to take next; None while there is nothing to wait for."""
        ...

    def take(self, now_us: int, around: Surroundings, limit: int) -> list[Reading]:
        """The readings that are due, the oldest first."""
        ...

    def position(self) -> bytes:
        """Where it stands, after what was taken."""
        ...

    def resume(self, position: bytes, now_us: int) -> None:
        """Go on from there."""
        ...
