"""One simulated device of the demo: a real agent with a real outbox, and a link to the gateway that can be cut.

Enrols itself with its token as every device does, fetches the plan, and goes on where it stopped. Only its sensors are
recordings. Knows the device's parts; who turns it, and when, is the fleet's business.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from catchment.device.agent import Agent
from catchment.device.assembly import Device, assemble, stored_plan
from catchment.device.clock import Clock
from catchment.device.correspondent import PLAN_PATH
from catchment.device.identity import FILE, Identified, enrol, keep_identity, read_identity
from catchment.device.journal import Journal
from catchment.device.process import OUTBOX, refuse_for_good
from catchment.device.remembered import StoredPlan
from catchment.device.sensors.named import parse
from catchment.device.status import results
from catchment.device.surroundings import Surroundings
from catchment.device.transport import Carrier, Http, Reply, Request, basic
from catchment.sync.outbox import Outbox

RETRY_S = 0.5
POLL_US = 4_000_000
"""How often a device asks for results, and says how far it has come: time passes many times faster here."""


class Cast(msgspec.Struct, frozen=True):
    """A device as it is to be: its name, its token, and what its sensors play."""

    device: str
    token: str
    sensors: dict[str, str]


class Outdoors:
    """The demo's devices know of themselves what their program infers of its sensors, and no more."""

    def look(self) -> Surroundings:
        """Nothing that slows anything down."""
        return Surroundings()


class CutLink:
    """The way to a gateway. While it is cut, nothing that is asked leaves the device."""

    def __init__(self, answered: Callable[[Reply], None]) -> None:
        self.is_cut = False
        self._answered = answered
        self._carrier = Carrier(Http(timeout_s=10.0), self._came)

    def start(self, request: Request) -> None:
        """Ask, or have it fail as where there is no network."""
        if self.is_cut:
            self._answered(Reply(0, b"the network is unreachable: the demo took it away"))
        else:
            self._carrier.start(request)

    def stop(self) -> None:
        """End after what was started."""
        self._carrier.stop()

    def _came(self, request: Request, reply: Reply) -> None:
        # An answer that is on its way when the link is cut is lost with it: the gateway is asked again later.
        self._answered(Reply(0, b"the connection broke") if self.is_cut else reply)


@dataclass(slots=True)
class Phone:
    """A device that runs."""

    name: str
    agent: Agent
    outbox: Outbox
    link: CutLink
    back_us: int | None = None
    """When its link comes back, while it is cut."""

    def cut(self, until_us: int) -> None:
        """Take its network away."""
        self.link.is_cut, self.back_us = True, until_us

    def mend(self) -> None:
        """Give it its network back."""
        self.link.is_cut, self.back_us = False, None

    @property
    def is_linked(self) -> bool:
        """Whether it is in conversation with the gateway."""
        correspondent = self.agent.correspondent
        return correspondent is not None and correspondent.exchange.is_connected

    def results(self) -> list[dict[str, Any]]:
        """All results that it holds."""
        return list(_pages(self.agent))

    def numbered(self) -> dict[str, int]:
        """Of each stream and start of the device, how many numbers its elements were given."""
        return {
            place(self.name, stream, epoch.counter, epoch.nonce): upto for stream, epoch, upto in self.outbox.numbered()
        }


def place(device: str, stream: str, counter: int, nonce: bytes) -> str:
    """What the numbers of a stream begin anew for: a start of its device."""
    return f"{device} · {stream} · start {counter}/{nonce.hex()[:4]}"


def open_phone(
    cast: Cast,
    data: Path,
    gateway: str,
    *,
    clock: Clock,
    journal: Journal,
    put: Callable[[str, Reply], None],
    stopping: threading.Event,
) -> Phone | None:
    """The device, enrolled and with its plan; None if it was told to stop before. `put` takes its answers."""
    home = data / cast.device
    home.mkdir(parents=True, exist_ok=True)
    http = Http(timeout_s=10.0)
    who = _identity(cast, home, gateway, http, stopping)
    outbox = Outbox.open(home / OUTBOX, fresh_nonce=lambda: os.urandom(8))
    plan = None if who is None else stored_plan(outbox) or _plan(who, gateway, http, stopping)
    http.close()
    if who is None or plan is None:
        outbox.close()
        return None
    link = CutLink(lambda reply: put(cast.device, reply))
    device = Device(
        outbox=outbox,
        who=who,
        specs=tuple(parse(f"{name}={text}") for name, text in cast.sensors.items()),
        clock=clock,
        environment=Outdoors(),
        journal=journal,
        fresh_nonce=lambda: os.urandom(8),
        transport=link,
        gateway=gateway,
        poll_us=POLL_US,
    )
    return Phone(cast.device, assemble(device, plan), outbox, link)


def _identity(cast: Cast, home: Path, gateway: str, http: Http, stopping: threading.Event) -> Identified | None:
    who = read_identity(home / FILE)
    while who is None and not stopping.is_set():
        who = enrol(http.ask, gateway=gateway, token=cast.token, device=cast.device)
        if who is None:
            stopping.wait(RETRY_S)
        else:
            keep_identity(home / FILE, who)
    return who


def _plan(who: Identified, gateway: str, http: Http, stopping: threading.Event) -> StoredPlan | None:
    while not stopping.is_set():
        reply = http.ask(Request(gateway, "GET", PLAN_PATH, headers=basic(who.device, who.credential)))
        if reply.status == 200:
            return StoredPlan(reply.body, reply.headers.get("etag", "").strip('"'))
        refuse_for_good(reply)
        stopping.wait(RETRY_S)
    return None


def _pages(agent: Agent) -> Iterator[dict[str, Any]]:
    after = 0
    while found := results(agent.running.plan, agent.outbox_results, after, None):
        yield from found
        after = found[-1]["id"]
