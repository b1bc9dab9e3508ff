"""The process on a device: from its settings to a running agent, until it is told to stop.

One thread runs the agent and owns everything; another carries requests. What happens outside the loop (an answer, a
signal, a question) comes in by one queue. On SIGTERM and SIGINT sensors are no longer read, what was taken is stored,
and for a few seconds what is stored is sent; what remains is sent after the next start.
"""

from __future__ import annotations

import hashlib
import os
import queue
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from catchment.device.agent import Agent
from catchment.device.assembly import Device, assemble, look_through, stored_plan
from catchment.device.clock import Clock, SystemClock
from catchment.device.control import Answer, Control, Question
from catchment.device.correspondent import PLAN_PATH
from catchment.device.identity import FILE, Identified, enrol, keep_identity, read_identity
from catchment.device.journal import Journal
from catchment.device.remembered import StoredPlan
from catchment.device.sensors.named import Spec
from catchment.device.status import answer
from catchment.device.surroundings import MachineEnvironment
from catchment.device.transport import Carrier, Http, Reply, Request, basic
from catchment.errors import CatchmentError, PeerError, ProgramError
from catchment.sync.outbox import Outbox, OutboxError

OUTBOX = "outbox.db"
STOP_S = 5.0
RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""How long to wait before the gateway is asked again for what a first start needs."""

Found = TypeVar("Found")
Happened: TypeAlias = Callable[[Agent], None]
"""Something for the loop to do with the agent, such as to hand it an answer."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a device is told."""

    data: Path
    name: str = ""
    gateway: str = ""
    """Empty for a device that only gathers."""
    plan: Path | None = None
    token: str = ""
    identity: Path | None = None
    user: str = ""
    """Whose it is, where no gateway has said so yet."""
    sensors: tuple[Spec, ...] = ()
    poll_us: int | None = 30_000_000
    ca: Path | None = None
    surroundings: Path | None = None
    stop_s: float = STOP_S
    until_idle: bool = False
    """Stop once every sensor has ended and everything is sent."""


@dataclass(slots=True)
class _Inbox:
    """What comes to the loop from outside it."""

    things: queue.SimpleQueue[Happened | None] = field(default_factory=queue.SimpleQueue)
    """None wakes the loop."""
    stopping: bool = False

    def stop(self, *signal_and_frame: object) -> None:
        self.stopping = True
        self.things.put(None)

    def wait(self, seconds: float) -> list[Happened]:
        """What came, after so long at most."""
        found: list[Happened] = []
        try:
            thing = self.things.get(timeout=seconds) if seconds > 0 else self.things.get_nowait()
            while True:
                found.extend([] if thing is None else [thing])
                thing = self.things.get_nowait()
        except queue.Empty:
            return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question from outside, to be answered between two turns."""

    question: Question
    answers: queue.SimpleQueue[Answer]

    def __call__(self, agent: Agent) -> None:
        try:
            self.answers.put(answer(agent, self.question))
        except CatchmentError as error:
            self.answers.put({"error": str(error)})
        except (TypeError, ValueError) as error:
            self.answers.put({"error": f"this is no question: {error}"})


def run(settings: Settings) -> int:
    """Run until a signal; the exit code."""
    clock = SystemClock()
    journal = Journal(sys.stderr, clock.wall_us)
    inbox = _Inbox()
    before = {number: signal.signal(number, inbox.stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return _run(settings, clock, journal, inbox)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(settings: Settings, clock: Clock, journal: Journal, inbox: _Inbox) -> int:
    settings.data.mkdir(parents=True, exist_ok=True)
    settings.data.chmod(0o700)
    http = Http(ca=settings.ca)
    outbox = _open_outbox(settings.data / OUTBOX)
    try:
        damage = look_through(outbox)
        if damage is not None:
            journal.say("outbox damaged", why=damage.why, salvaged=str(outbox.salvaged))
        who = _identity(settings, http, journal, inbox)
        plan = None if who is None else _plan(settings, who, outbox, http, journal, inbox)
        if who is None or plan is None:
            journal.say("stopped", why="told so before the first start was complete")
            return 0
        http.close()
        return _live(settings, clock, journal, inbox, outbox, who, plan)
    finally:
        outbox.close()


def _live(
    settings: Settings,
    clock: Clock,
    journal: Journal,
    inbox: _Inbox,
    outbox: Outbox,
    who: Identified,
    plan: StoredPlan,
) -> int:
    carrier = None
    if settings.gateway:
        carrier = Carrier(
            Http(ca=settings.ca), lambda request, reply: inbox.things.put(lambda agent: agent.answered(reply))
        )
    device = Device(
        outbox=outbox,
        who=who,
        specs=settings.sensors,
        clock=clock,
        environment=MachineEnvironment(settings.surroundings),
        journal=journal,
        fresh_nonce=lambda: os.urandom(8),
        transport=carrier,
        gateway=settings.gateway,
        poll_us=settings.poll_us,
        follows_plan=settings.plan is None,
    )
    agent = assemble(device, plan)
    control = Control(settings.data, lambda question, answers: inbox.things.put(_Asked(question, answers)))
    journal.say("started", device=who.device, user=who.user, plan=plan.tag, epoch=str(outbox.epoch), pid=os.getpid())
    while not inbox.stopping:
        wake_us = agent.turn()
        if settings.until_idle and agent.is_idle:
            break
        wait_s = 3600.0 if wake_us is None else (wake_us - clock.reading_us()) / 1e6
        for happened in inbox.wait(wait_s):
            happened(agent)
    control.stop()
    agent.commit()
    if carrier is not None:
        _say_goodbye(agent, clock, inbox, settings.stop_s)
        carrier.stop()
    used = agent.meter.used(clock.reading_us())
    journal.say("stopped", taken=agent.taken, backlog=agent.backlog(), joules=round(used.total_j, 1))
    return 0


def _say_goodbye(agent: Agent, clock: Clock, inbox: _Inbox, within_s: float) -> None:
    """Send what there is time for, and say that the device is leaving."""
    until_us = clock.reading_us() + round(within_s * 1e6)
    correspondent = agent.correspondent
    assert correspondent is not None

    def wait(at_least_until_us: int = 0) -> None:
        while (correspondent.is_waiting or clock.reading_us() < at_least_until_us) and clock.reading_us() < until_us:
            for happened in inbox.wait(min(0.2, (until_us - clock.reading_us()) / 1e6)):
                happened(agent)

    wait()
    left = agent.backlog() + 1
    while agent.backlog() > 0 and clock.reading_us() < until_us and (again_us := correspondent.hurry()) < until_us:
        was_connected = correspondent.exchange.is_connected
        # As long as each exchange leaves less behind, there is a point in another; and in another attempt to have one.
        if was_connected and agent.backlog() >= left:
            break
        left = agent.backlog() if was_connected else left
        wait(again_us)
        agent.correspond()
        if not correspondent.is_waiting:
            break
        wait()
    if agent.say_goodbye():
        wait()


def _open_outbox(path: Path) -> Outbox:
    """The outbox; one that a process which is just ending still holds is waited for."""
    for attempt in range(50):
        try:
            return Outbox.open(path, fresh_nonce=lambda: os.urandom(8))
        except OutboxError as error:
            if error.code != "S430" or attempt == 49:
                raise
            time.sleep(0.1)
    raise AssertionError("the last attempt returns or raises")


def _identity(settings: Settings, http: Http, journal: Journal, inbox: _Inbox) -> Identified | None:
    """Who this device is; None if it was told to stop before it could find out."""
    path = settings.identity or settings.data / FILE
    known = read_identity(path)
    if known is not None:
        return known
    if not settings.gateway:
        return Identified(settings.name or "device", settings.user)
    if not settings.token:
        raise ProgramError(
            "D633",
            "this device is not enrolled",
            why=f"there is no {path.name} here, and no token to get one for",
            fix="give it a token: catchment gateway token --user NAME, then catchment device run --token TOKEN",
        )
    given = _patiently(
        lambda: enrol(http.ask, gateway=settings.gateway, token=settings.token, device=settings.name),
        "enrolment waits for the gateway",
        journal,
        inbox,
    )
    if given is not None:
        keep_identity(path, given)
        journal.say("enrolled", device=given.device, user=given.user, program=given.program)
    return given


def _plan(
    settings: Settings, who: Identified, outbox: Outbox, http: Http, journal: Journal, inbox: _Inbox
) -> StoredPlan | None:
    """What to run: the file's plan, else the one that ran last, else the gateway's."""
    if settings.plan is not None:
        try:
            document = settings.plan.read_bytes()
        except OSError as error:
            raise ProgramError(
                "D634",
                f"there is no plan in {settings.plan}",
                why=str(error),
                fix="build one: catchment explain PROGRAM.py --json, or leave --plan out to get the gateway's",
            ) from None
        return StoredPlan(document, hashlib.sha256(document).hexdigest()[:32])
    stored = stored_plan(outbox)
    if stored is not None:
        return stored
    if not settings.gateway:
        raise ProgramError(
            "D635",
            "this device has nothing to run",
            why="it has no plan of its own, and no gateway to ask for one",
            fix="add --plan FILE, or --gateway URL",
        )

    def fetch() -> StoredPlan | None:
        headers = basic(who.device, who.credential)
        reply = http.ask(Request(settings.gateway, "GET", PLAN_PATH, headers=headers))
        if reply.status == 200:
            return StoredPlan(reply.body, reply.headers.get("etag", "").strip('"'))
        refuse_for_good(reply)
        return None

    return _patiently(fetch, "the plan waits for the gateway", journal, inbox)


def refuse_for_good(reply: Reply) -> None:
    """Raise where asking again will not help."""
    if reply.status in (401, 403):
        raise PeerError(
            "D642",
            "the gateway gives this device no plan",
            why=reply.problem,
            fix="enrol it again: remove its identity.json, and give it a new --token",
        )


def _patiently(attempt: Callable[[], Found | None], event: str, journal: Journal, inbox: _Inbox) -> Found | None:
    """Try until it works or the device is told to stop."""
    for number in range(1 << 30):
        found = attempt()
        if found is not None:
            return found
        wait_s = RETRY_S[min(number, len(RETRY_S) - 1)]
        journal.say(event, retry_s=wait_s)
        inbox.wait(wait_s)
        if inbox.stopping:
            break
    return None
