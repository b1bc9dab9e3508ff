"""One thing that `catchment doctor` looked at: what it found and, where something is to be done, the fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Area(StrEnum):
    """Who needs it."""

    CORE = "core"
    DEVICE = "device"
    GATEWAY = "gateway"
    CLOUD = "cloud"
    MACHINE = "machine"


class State(StrEnum):
    """`NOTE` is worth knowing and stops nothing; what is `MISSING` stops its area."""

    OK = "ok"
    NOTE = "note"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is `MISSING` always says its fix."""

    area: Area
    name: str
    state: State
    found: str
    fix: str | None = None
