"""What a device knows of itself: the row that sampling rules are evaluated over.

The battery comes from the machine; whether it is indoors, or on a metered link, only the platform can know, which
writes it into a small JSON file that is read when it changes. Whether there is a connection, and how far behind the
cloud is, comes from the sync streams. What is unknown has a value that slows nothing down.

>>> told = Surroundings().told(connected=True, pressure=Pressure(slow_down=4.0))
>>> told.row(), told.slow_down
((1.0, False, False, True, False, 0.75), 4.0)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from catchment.errors import ProgramError
from catchment.program.types import Row
from catchment.sync.frame import Pressure

BATTERY_LOW = 0.2
"""At or below this share of its charge, while it is not charging, a battery is low."""
_SUPPLIES = Path("/sys/class/power_supply")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The values of `DEVICE_CONTEXT`, and the cloud's advice as it was given."""

    battery_level: float = 1.0
    battery_low: bool = False
    indoors: bool = False
    connected: bool = False
    metered: bool = False
    slow_down: float = 1.0

    def row(self) -> Row:
        """As `DEVICE_CONTEXT` has it: pressure is 0 while the cloud keeps up, and grows to 1."""
        pressure = 1.0 - 1.0 / self.slow_down
        return (self.battery_level, self.battery_low, self.indoors, self.connected, self.metered, pressure)

    def inferred(self, told: Mapping[str, bool | float]) -> Surroundings:
        """With what the program says by its sink "surroundings"."""
        return replace(self, **told) if told else self  # type: ignore[arg-type]

    def told(self, *, connected: bool, pressure: Pressure | None) -> Surroundings:
        """With what the sync streams know."""
        return replace(self, connected=connected, slow_down=1.0 if pressure is None else pressure.slow_down)


class Environment(Protocol):
    """Whoever knows the battery, the building and the link."""

    def look(self) -> Surroundings:
        """How things are; `connected` and `slow_down` are not its business."""
        ...


class MachineEnvironment:
    """This machine's battery, and the platform's file if there is one."""

    def __init__(self, told: Path | None = None, supplies: Path = _SUPPLIES) -> None:
        self._told = told
        self._supplies = supplies
        self._stamp: tuple[int, int] | None = None
        self._said: dict[str, bool | float] = {}

    def look(self) -> Surroundings:
        """Read both."""
        battery = battery_of(self._supplies)
        level, charging = battery if battery is not None else (1.0, True)
        found = Surroundings(battery_level=level, battery_low=level <= BATTERY_LOW and not charging)
        said = self._read_told()
        return replace(found, **said) if said else found  # type: ignore[arg-type]

    def _read_told(self) -> dict[str, bool | float]:
        if self._told is None:
            return {}
        try:
            status = self._told.stat()
        except OSError:
            return self._said
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._said, self._stamp = _parse(self._told), stamp
        return self._said


def battery_of(supplies: Path = _SUPPLIES) -> tuple[float, bool] | None:
    """How full the machine's battery is, and whether it is charging; None where there is none."""
    for capacity in sorted(supplies.glob("*/capacity")) if supplies.is_dir() else ():
        try:
            # A mouse has a battery too, whose scope is its own.
            if _text(capacity.with_name("scope")) == "Device":
                continue
            return int(_text(capacity)) / 100, _text(capacity.with_name("status")) not in {"Discharging", ""}
        except ValueError:
            continue
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


_KNOWN = {"battery_level": float, "battery_low": bool, "indoors": bool, "metered": bool}


def _parse(path: Path) -> dict[str, bool | float]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(said, dict):
            raise ValueError("it is no object")
        for name, value in said.items():
            if name not in _KNOWN:
                raise ValueError(f"{name!r} is none of {', '.join(_KNOWN)}")
            if isinstance(value, bool) != (_KNOWN[name] is bool) or not isinstance(value, bool | int | float):
                raise ValueError(f"{name} is {value!r}, not a {_KNOWN[name].__name__}")
    except (OSError, ValueError) as error:
        raise ProgramError(
            "D610",
            f"{path.name} does not say how things are around the device",
            why=str(error),
            fix='write JSON such as {"indoors": true, "metered": false}, and replace the file as a whole',
        ) from None
    return {name: _KNOWN[name](value) for name, value in said.items()}
