"""The journal: what a device says of itself, one JSON object per line.

An event has a name that tools can count on, and fields that people can read. One that repeats is said a few times a
minute, and then how often it was not. Secrets never appear.

>>> import sys
>>> journal = Journal(sys.stdout, lambda: 0)
>>> journal.say("started", device="phone")
{"at":"1970-01-01T00:00:00.000Z","event":"started","device":"phone"}
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

import msgspec

MINUTE_US = 60_000_000
REPEATS_MAX = 20
"""So often in a minute one event is said."""

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Journal:
    """Writes to a stream; the clock is the wall's."""

    def __init__(self, stream: TextIO, wall_us: Callable[[], int]) -> None:
        self._stream = stream
        self._wall_us = wall_us
        self._said: dict[str, tuple[int, int]] = {}

    def say(self, event: str, **fields: object) -> None:
        """Write an event."""
        now_us = self._wall_us()
        since_us, times = self._said.get(event, (now_us, 0))
        if not 0 <= now_us - since_us < MINUTE_US:
            if times > REPEATS_MAX:
                self._write(now_us, event, {"not_said": times - REPEATS_MAX})
            since_us, times = now_us, 0
        self._said[event] = (since_us, times + 1)
        if times < REPEATS_MAX:
            self._write(now_us, event, fields)

    def _write(self, now_us: int, event: str, fields: dict[str, object]) -> None:
        at = datetime.fromtimestamp(now_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            self._stream.write(_encode({"at": at, "event": event, **fields}).decode() + "\n")
            self._stream.flush()
        except OSError:
            # Whoever read this has gone, or the disk is full: a device does not end for that.
            pass
