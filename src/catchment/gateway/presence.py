"""Presence: which devices are there, as the log is to say it.

A device is there while it has a connection, for a while after it last spoke by HTTP, or as long as it said it would
sleep. A dropped connection that comes back within `linger_us` is nothing to speak of: phones change cells. What is
returned are entries to log.
No I/O, no clock: instants are arguments.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catchment.gateway.log import Entry, presence

LINGER_US = 10_000_000
"""How long a device may be without a connection before it is said to be away."""
SILENCE_US = 150_000_000
"""The same for a device that speaks by HTTP, and so only when it has something to say."""


@dataclass(slots=True)
class _Device:
    user: str
    online: bool
    """As the log says, or will say once what was returned is logged."""
    connections: int = 0
    heard_us: int = 0
    away_us: int | None = None
    """When it counts as away, unless it is heard before."""


class Presence:
    """Follows the devices of one gateway."""

    def __init__(self, *, linger_us: int = LINGER_US, silence_us: int = SILENCE_US) -> None:
        self._linger_us = linger_us
        self._silence_us = silence_us
        self._devices: dict[str, _Device] = {}
        self._deadlines: list[tuple[int, str]] = []

    @property
    def connected(self) -> int:
        """Devices with a connection."""
        return sum([device.connections > 0 for device in self._devices.values()])

    def there(self) -> dict[str, int]:
        """The devices that are there, and when each was heard last."""
        return {name: device.heard_us for name, device in list(self._devices.items()) if device.online}

    def adopt(self, online: Mapping[str, str], *, now_us: int) -> None:
        """Take over devices, with their users, that the log says are there: they have `linger_us` to come back."""
        for name, user in online.items():
            if name not in self._devices:
                self._devices[name] = _Device(user, True, heard_us=now_us)
                self._expect(name, now_us + self._linger_us)

    def release(self, is_theirs: Callable[[str], bool]) -> None:
        """Forget the devices that another gateway speaks with now."""
        self._devices = {name: device for name, device in self._devices.items() if not is_theirs(name)}

    def connect(self, device: str, user: str, *, now_us: int) -> list[Entry]:
        """A connection of the device opened."""
        known, entries = self._heard(device, user, now_us)
        known.connections += 1
        known.away_us = None
        return entries

    def disconnect(self, device: str, *, now_us: int, sleep_us: int | None = None) -> None:
        """A connection of the device ended; `sleep_us` is what it said of its next word."""
        known = self._devices.get(device)
        if known is None:
            return
        known.connections = max(0, known.connections - 1)
        known.heard_us = now_us
        if known.connections == 0:
            self._expect(device, now_us + (sleep_us or 0) + self._linger_us)

    def heard(self, device: str, user: str, *, now_us: int, sleep_us: int | None = None) -> list[Entry]:
        """The device spoke by HTTP."""
        known, entries = self._heard(device, user, now_us)
        if known.connections == 0:
            silence_us = self._silence_us if sleep_us is None else sleep_us + self._linger_us
            self._expect(device, now_us + silence_us)
        return entries

    def due(self, *, now_us: int) -> list[Entry]:
        """Devices that are away now."""
        gone: list[Entry] = []
        while self._deadlines and self._deadlines[0][0] <= now_us:
            at_us, name = heapq.heappop(self._deadlines)
            known = self._devices.get(name)
            # A deadline that was moved, or met, is still in the heap: the device knows its own.
            if known is None or known.away_us != at_us:
                continue
            del self._devices[name]
            if known.online:
                gone.append(presence(device=name, user=known.user, online=False, since=known.heard_us, now=now_us))
        return gone

    def next_due_us(self) -> int | None:
        """When to ask `due` again."""
        return self._deadlines[0][0] if self._deadlines else None

    def _heard(self, device: str, user: str, now_us: int) -> tuple[_Device, list[Entry]]:
        known = self._devices.get(device)
        if known is None:
            known = self._devices[device] = _Device(user, False)
        known.heard_us = now_us
        known.user = user
        if known.online:
            return known, []
        known.online = True
        return known, [presence(device=device, user=user, online=True, since=now_us, now=now_us)]

    def _expect(self, device: str, by_us: int) -> None:
        self._devices[device].away_us = by_us
        heapq.heappush(self._deadlines, (by_us, device))
