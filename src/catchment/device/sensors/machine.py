"""The machine's own figures as a sensor: load, memory, temperature, battery, how long it is up.

A record names the figures that it wants by its fields; one that this machine does not have is null, where the field
may be, else there is no reading. Knows the files of a Linux kernel; a figure that cannot be read is not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from catchment.device.sensors.sensor import Values
from catchment.device.surroundings import battery_of
from catchment.errors import ProgramError
from catchment.program.types import Schema


class Machine:
    """The figures that a record asks for. `root` is where the kernel's files lie."""

    def __init__(self, schema: Schema, *, root: Path = Path("/")) -> None:
        self._root = root
        wanted = [column for column in schema.fields if not column.event_time and column.stamp is None]
        figures = self._figures()
        unknown = [column.name for column in wanted if column.name not in figures and not column.has_default]
        if unknown:
            raise ProgramError(
                "D623",
                f"this sensor has no figure {unknown[0]!r} for {schema.name}",
                why=f"the machine's figures are: {', '.join(figures)}",
                fix="name the record's fields after these, or give the others a default",
            )
        self._wanted = [(column.name, figures[column.name]) for column in wanted if column.name in figures]

    def read(self, at_us: int) -> Values | None:
        """The figures of this moment."""
        return {name: figure() for name, figure in self._wanted}

    def _figures(self) -> dict[str, Callable[[], float | int | bool | None]]:
        return {
            "load_1_min": lambda: self._number("proc/loadavg", 0),
            "load_5_min": lambda: self._number("proc/loadavg", 1),
            "load_15_min": lambda: self._number("proc/loadavg", 2),
            "uptime_s": lambda: self._number("proc/uptime", 0),
            "memory_total_bytes": lambda: self._memory("MemTotal"),
            "memory_free_bytes": lambda: self._memory("MemAvailable"),
            "temperature_celsius": self._temperature,
            "battery_level": lambda: self._battery(0),
            "battery_charging": lambda: self._battery(1),
            "disk_free_bytes": self._disk_free,
        }

    def _text(self, path: str) -> str:
        try:
            return (self._root / path).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return ""

    def _number(self, path: str, word: int) -> float | None:
        words = self._text(path).split()
        return float(words[word]) if len(words) > word else None

    def _memory(self, name: str) -> int | None:
        for line in self._text("proc/meminfo").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        return None

    def _temperature(self) -> float | None:
        zone = self._text("sys/class/thermal/thermal_zone0/temp").strip()
        return int(zone) / 1000 if zone.lstrip("-").isdigit() else None

    def _battery(self, place: int) -> float | bool | None:
        found = battery_of(self._root / "sys/class/power_supply")
        return None if found is None else found[place]

    def _disk_free(self) -> int | None:
        try:
            status = os.statvfs(self._root)
        except OSError:
            return None
        return status.f_bavail * status.f_frsize
