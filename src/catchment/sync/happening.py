"""What a device's end of its sync streams tells the process around it."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from catchment.errors import CatchmentError
from catchment.sync.frame import Error, Offset, Pressure
from catchment.sync.session import Joined, Parted


class Told(msgspec.Struct, frozen=True):
    """The gateway told the session's offset, or how hard the cloud is pressed."""

    offset: Offset | None
    pressure: Pressure | None


class Arrived(msgspec.Struct, frozen=True):
    """Results are in the outbox, durable."""

    stream: str
    count: int


class PlanArrived(msgspec.Struct, frozen=True):
    """A whole plan."""

    fingerprint: str
    payload: bytes


class Noticed(msgspec.Struct, frozen=True):
    """For streams whose policy is NOTIFY: the connection came or went."""

    stream: str
    connected: bool


class Trouble(msgspec.Struct, frozen=True):
    """Something that a person may want to read: a refusal, or an unsound message. What follows from it is done."""

    code: str
    what: str
    fix: str


Happening: TypeAlias = Joined | Parted | Told | Arrived | PlanArrived | Noticed | Trouble


def trouble(cause: CatchmentError | Error) -> Trouble:
    """An error as something that happened."""
    return Trouble(cause.code, cause.what, cause.fix)


__all__ = ["Arrived", "Happening", "Joined", "Noticed", "Parted", "PlanArrived", "Told", "Trouble", "trouble"]
