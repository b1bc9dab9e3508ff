"""A sensor that this device does not have: it gives nothing, and promises at once that nothing is to come."""

from __future__ import annotations

from catchment.device.sensors.sensor import Reading
from catchment.device.surroundings import Surroundings


class Absent:
    """See the module."""

    recorded = False
    ended = True
    closes = True
    """So that nobody waits for it."""

    def due_us(self, around: Surroundings) -> int | None:
        """Never."""
        return None

    def take(self, now_us: int, around: Surroundings, limit: int) -> list[Reading]:
        """Nothing."""
        return []

    def position(self) -> bytes:
        """Nowhere."""
        return b""

    def resume(self, position: bytes, now_us: int) -> None:
        """Another sensor may have stood here before; there is nothing to go on with."""
