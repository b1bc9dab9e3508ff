"""The clocks of a machine, as everything else on a device is given them.

`reading_us` counts from the boot, through suspend, and never goes back within one; `wall_us` is what the machine
believes the time to be, which may be wrong by years and may jump; `boot` names the boot. Nothing else on a device
asks the system.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """What a device knows of time."""

    def reading_us(self) -> int:
        """The boot clock."""
        ...

    def wall_us(self) -> int:
        """The wall clock, in microseconds since 1970 as the machine believes."""
        ...

    def boot(self) -> bytes:
        """A name of this boot that no other boot of this machine has."""
        ...


class SystemClock:
    """This machine's clocks."""

    def __init__(self, boot_id: Path = _BOOT_ID) -> None:
        self._boot = _read_boot(boot_id)
        # Without a clock that runs through suspend the monotonic one is the best there is.
        self._clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def reading_us(self) -> int:
        """`CLOCK_BOOTTIME`."""
        return time.clock_gettime_ns(self._clock) // 1000

    def wall_us(self) -> int:
        """The system's time of day."""
        return time.time_ns() // 1000

    def boot(self) -> bytes:
        """The kernel's name of the boot. Where it has none, each start counts as a boot."""
        return self._boot


def _read_boot(path: Path) -> bytes:
    try:
        return bytes.fromhex(path.read_text(encoding="ascii").strip().replace("-", ""))[:16]
    except (OSError, ValueError):
        return os.urandom(16)
