"""The devices that a gateway speaks with: what it knows of each, and the connection that each has.

A device is looked up in the log's marks when it first speaks, and forgotten when it has not spoken for long and
others need the room: it costs a challenge to be known again, never an element. Knows no frames and no requests.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator

from catchment.gateway.enrolment import Enrolled
from catchment.gateway.http import Send
from catchment.gateway.log.files.commit import GroupCommit
from catchment.gateway.uplink import Uplink
from catchment.sync.admission import Admission
from catchment.sync.parts import Mark

DEVICES_KEPT = 50_000
RESULTS_IN_FLIGHT = 64


class Link:
    """A connection, or one HTTP request."""

    def __init__(self, peer: str, *, now_us: int, send: Send | None = None) -> None:
        self.peer = peer
        self.opened_us = self.heard_us = now_us
        self.device: Device | None = None
        """Who speaks, once it was let in."""
        self.plan = ""
        """The plan that the device has or was offered."""
        self.have: dict[tuple[str, bytes], int] = {}
        """Per downlink stream and epoch nonce, what the device holds or was sent on this connection."""
        self.in_flight: deque[Mark] = deque()
        """Results that were sent on this connection and not acknowledged."""
        self.pushing = True
        """Whether somebody is pushing; also before the welcome has left, so that nothing overtakes it."""
        self.was_welcomed = False
        self.sleep_us: int | None = None
        """What the device said of its next word, as it left."""
        self._send = send
        self._sending = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent without being asked."""
        return self._send is not None

    @property
    def has_room(self) -> bool:
        """Whether more results may be sent before some are acknowledged."""
        return len(self.in_flight) < RESULTS_IN_FLIGHT

    async def send(self, body: bytes) -> None:
        """Send frames; `OSError` if the device does not take them."""
        if self._send is None:
            raise ConnectionResetError("the connection is closed")
        # No timeout here: the kernel ends a connection that takes no bytes, see `run.bind`.
        async with self._sending:
            await self._send({"type": "websocket.send", "bytes": body})

    async def close(self, code: int) -> None:
        """End the connection, if it is open."""
        send, self._send = self._send, None
        if send is not None:
            await send({"type": "websocket.close", "code": code})

    def acknowledged(self, mark: Mark) -> None:
        """The device holds everything below the mark."""
        self.in_flight = deque(
            [
                sent
                for sent in self.in_flight
                if sent.stream != mark.stream or sent.epoch != mark.epoch or sent.upto > mark.upto
            ]
        )

    def shut(self) -> None:
        """Send nothing more."""
        self._send = None


class Device:
    """One device, while this gateway writes its partition."""

    def __init__(self, enrolled: Enrolled, writer: GroupCommit, admission: Admission, uplink: Uplink) -> None:
        self.enrolled = enrolled
        self.writer = writer
        """Of its partition. What is known here is true as long as this one writes."""
        self.admission = admission
        self.uplink = uplink
        self.link: Link | None = None
        """Its connection. There is one at most: a newer one displaces it."""
        self.turn = asyncio.Lock()
        """Held while a message of the device is on its way to the disk."""
        self.is_certain = True
        """Whether `uplink` is what the log says; not after a turn whose outcome nobody heard."""
        self.results_due = True
        """Whether there may be results that it lacks."""
        self.woken = asyncio.Event()
        """Set when there are results, or when another connection took over: somebody may wait for it."""
        self.acknowledged: dict[tuple[str, bytes], int] = {}
        """Results that it holds, as far as was written down."""

    @property
    def partition(self) -> int:
        """Where its uploads go."""
        return self.writer.partition.number


class Devices:
    """Those that are known now."""

    def __init__(self, kept: int = DEVICES_KEPT) -> None:
        self._kept = kept
        self._devices: OrderedDict[str, Device] = OrderedDict()
        self._of_user: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._devices)

    def find(self, name: str) -> Device | None:
        """The device of that name; it counts as heard."""
        device = self._devices.get(name)
        if device is not None:
            self._devices.move_to_end(name)
        return device

    def add(self, device: Device) -> None:
        """Know a device."""
        self._devices[device.enrolled.device] = device
        self._of_user.setdefault(device.enrolled.user, set()).add(device.enrolled.device)
        if len(self._devices) > self._kept:
            self._make_room()

    def drop(self, name: str) -> None:
        """Know it no longer."""
        device = self._devices.pop(name, None)
        if device is not None:
            others = self._of_user[device.enrolled.user]
            others.discard(name)
            if not others:
                del self._of_user[device.enrolled.user]

    def of_target(self, target: str) -> list[Device]:
        """The known devices of a downlink target."""
        kind, _, name = target.partition(":")
        names = [name] if kind == "device" else sorted(self._of_user.get(name, ()))
        return [self._devices[name] for name in names if name in self._devices]

    def __iter__(self) -> Iterator[Device]:
        return iter(list(self._devices.values()))

    def _make_room(self) -> None:
        for name, device in list(self._devices.items())[: self._kept // 10 + 1]:
            if device.link is None and not device.turn.locked():
                self.drop(name)
