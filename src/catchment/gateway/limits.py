"""Limits: how much one device, and all of them, may ask of a gateway.

A device that exceeds its rate is told when to come back and loses nothing: its outbox keeps the data. State is a few
numbers per device that was heard lately. No clock: instants are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What a gateway takes."""

    frame_bytes: int = 4 << 20
    """One frame."""
    body_bytes: int = 16 << 20
    """One HTTP body or WebSocket message."""
    device_bytes_per_s: float = 8e6
    device_burst_bytes: float = 64e6
    """How far a device may run ahead of its rate: what catches up after an offline week comes in bursts."""
    device_streams: int = 256
    """Streams of one device, ever: each is remembered."""
    connections: int = 20_000
    pending_bytes: int = 256 << 20
    """Payload that waits for the disk; beyond this, devices are asked to wait."""
    idle_us: int = 120_000_000
    """A connection without a word for this long is closed."""
    hello_us: int = 10_000_000
    """A connection that has not said hello by then is closed."""
    body_us: int = 60_000_000
    """A request must have arrived by then: slow senders hold memory."""


@dataclass(slots=True)
class Bucket:
    """A token bucket.

    >>> bucket = Bucket(rate_per_s=100, burst=50, level=50, at_us=0)
    >>> bucket.take(50, now_us=0), bucket.take(10, now_us=0), bucket.take(10, now_us=100_000)
    (0, 100000, 0)
    """

    rate_per_s: float
    burst: float
    level: float
    at_us: int

    def take(self, amount: float, *, now_us: int) -> int:
        """Take; 0 if it was there, or after how many microseconds to ask again (then nothing is taken)."""
        self.level = min(self.burst, self.level + max(0, now_us - self.at_us) / 1e6 * self.rate_per_s)
        self.at_us = max(self.at_us, now_us)
        # More than a burst never fits: let it through when the bucket is full, and let it be paid for after.
        if self.level >= min(amount, self.burst):
            self.level -= amount
            return 0
        return int((min(amount, self.burst) - self.level) / self.rate_per_s * 1e6)


class Rates:
    """A bucket per device that was heard lately."""

    def __init__(self, limits: GatewayLimits) -> None:
        self._limits = limits
        self._buckets: dict[str, Bucket] = {}

    def take(self, device: str, amount: int, *, now_us: int) -> int:
        """Charge a device; 0, or after how many microseconds to ask again."""
        bucket = self._buckets.get(device)
        if bucket is None:
            burst = self._limits.device_burst_bytes
            bucket = self._buckets[device] = Bucket(self._limits.device_bytes_per_s, burst, burst, now_us)
        return bucket.take(amount, now_us=now_us)

    def tidy(self, *, now_us: int) -> None:
        """Forget devices whose bucket is full again."""
        full_us = self._limits.device_burst_bytes / self._limits.device_bytes_per_s * 1e6 * 2
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if now_us - bucket.at_us < full_us}
