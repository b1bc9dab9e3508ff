"""A device put together: from its directory, its plan and its sensors to an agent that goes on where the last one
stopped.

Promises: what the last start stored is restored and replayed, so the agent stands exactly behind its last
transaction; a plan that differs takes over what its steps have in common with the former one's, and says which begin
anew. Knows all parts of a device and none of the system: clocks, randomness, transport and journal are given.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

from catchment.device import remembered
from catchment.device.agent import Agent
from catchment.device.clock import Clock
from catchment.device.correspondent import Correspondent, PlanGiven
from catchment.device.identity import Identified
from catchment.device.journal import Journal
from catchment.device.ledger import PLAN_KEY, Ledger
from catchment.device.memory import Memory
from catchment.device.parts import Parts
from catchment.device.power import PowerMeter
from catchment.device.program import Running
from catchment.device.remembered import Standing, StoredPlan
from catchment.device.schedule import Schedule
from catchment.device.sensors.named import Spec, Surrounded
from catchment.device.surroundings import Environment
from catchment.device.timekeeper import Timekeeper
from catchment.device.transport import Transport
from catchment.errors import CatchmentError, ProgramError
from catchment.plan import document
from catchment.plan.history import Source
from catchment.program.site import DEVICE
from catchment.sync.codecs import available
from catchment.sync.codecs.compress import COMPRESSIONS
from catchment.sync.exchange import Exchange, Identity
from catchment.sync.outbox import Health, Outbox, OutboxError


class Device(NamedTuple):
    """What a device is made of."""

    outbox: Outbox
    who: Identified
    specs: tuple[Spec, ...]
    clock: Clock
    environment: Environment
    journal: Journal
    fresh_nonce: Callable[[], bytes]
    transport: Transport | None = None
    """None for a device that only gathers."""
    gateway: str = ""
    poll_us: int | None = None
    follows_plan: bool = True
    """Whether it runs what the gateway says, or the plan that it was given, whatever the gateway says."""


def stored_plan(outbox: Outbox) -> StoredPlan | None:
    """The plan that this device ran last."""
    held = outbox.load_state(PLAN_KEY)
    return None if held is None else remembered.plan_of(held)


def look_through(outbox: Outbox) -> OutboxError | None:
    """Read all that a start reads. Damage that this comes upon is mended here, with what can be salvaged, and told."""
    try:
        stored_plan(outbox)
        Memory(outbox.save_state, outbox.load_state).read()
    except OutboxError as failure:
        if failure.health is not Health.DAMAGED:
            raise
        return failure
    return None


def assemble(device: Device, plan: StoredPlan) -> Agent:
    """The agent that runs that plan, from where the last start stopped."""
    clock, outbox = device.clock, device.outbox
    memory = Memory(outbox.save_state, outbox.load_state)
    former = stored_plan(outbox)
    state, entries = memory.read()
    parts, standing = _recover(device, former, state, entries)
    keeper = Timekeeper(standing.keeper, boot=clock.boot(), reading_us=clock.reading_us(), wall_us=clock.wall_us())
    now_us = clock.reading_us()
    wanted = _running(device, plan)
    anew: Iterable[str] = ()
    if parts is not None:
        anew = wanted.parts.inherit(parts)
    wanted.schedule.resume(standing.positions, now_us)
    exchange = Exchange(
        outbox,
        Identity(
            device.who.device, device.who.credential, codecs=tuple(reversed(available())), compressions=COMPRESSIONS
        ),
        fresh_nonce=device.fresh_nonce,
        jitter=random.Random(device.fresh_nonce()).random,
        eager=True,
    )
    correspondent = None
    if device.transport is not None:
        # Results come with every answer; where the program has none, nobody asks for them.
        poll_us = device.poll_us if wanted.parts.down else None
        correspondent = Correspondent(exchange, device.transport, gateway=device.gateway, poll_us=poll_us)
        correspondent.plan_tag = plan.tag
    wanted.connect(exchange, now_us=now_us)
    ledger = Ledger(outbox, exchange.uplink.intakes, memory)
    agent = Agent(
        wanted,
        outbox=outbox,
        ledger=ledger,
        correspondent=correspondent,
        keeper=keeper,
        fed=dict(standing.fed),
        told=dict(standing.told),
        clock=clock,
        environment=device.environment,
        meter=PowerMeter(now_us=now_us),
        journal=device.journal,
        follow=_Follower(device, exchange) if device.follows_plan else lambda agent, plan: None,
    )
    for step in anew:
        device.journal.say("state begins anew", step=step, plan=plan.tag)
    ledger.begin_anew(remembered.encode(plan))
    agent.commit()
    return agent


def _recover(
    device: Device, former: StoredPlan | None, state: bytes | None, entries: list[bytes]
) -> tuple[Parts | None, Standing]:
    """The parts of the former plan as they stood, and where everything else did."""
    if state is None or former is None:
        return None, Standing()
    kept = remembered.state_of(state)
    since = [remembered.since_of(entry) for entry in entries]
    standing = since[-1].standing if since else kept.standing
    try:
        parts = Parts(document.read(former.document), _source(device))
        parts.restore(kept.engines)
        for one in since:
            parts.replay(one.entries)
    except CatchmentError as error:
        # Its code is gone, or its format is not read any more: what it remembered cannot be carried over.
        device.journal.say("state left behind", code=error.code, what=error.what, why=error.why, fix=error.fix)
        return None, standing
    return parts, standing


def _running(device: Device, plan: StoredPlan) -> Running:
    known = document.read(plan.document)
    parts = Parts(known, _source(device))
    if not known.at(DEVICE):
        raise ProgramError(
            "D632",
            f"{known.program} has nothing to do on a device",
            why="no stream of it is at=DEVICE, and nothing is delivered to one",
            fix="declare a stream with at=cm.DEVICE, or run the program with catchment run",
        )
    journal = device.journal
    around = Surrounded(
        device.who.device,
        device.who.user,
        device.clock.reading_us(),
        lambda why: journal.say("record left out", why=why),
    )
    schedule = Schedule(
        parts.sources(), device.specs, around, lambda event, step, why: journal.say(event, step=step, why=why)
    )
    return Running(parts, schedule)


class _Follower:
    """Switches an agent to the gateway's plan."""

    def __init__(self, device: Device, exchange: Exchange) -> None:
        self._device = device
        self._exchange = exchange

    def __call__(self, agent: Agent, given: PlanGiven) -> None:
        plan = StoredPlan(given.document, given.tag)
        assert agent.correspondent is not None
        if given.tag == agent.correspondent.plan_tag:
            return
        try:
            wanted = _running(self._device, plan)
            anew = wanted.parts.inherit(agent.running.parts)
        except CatchmentError as error:
            # The plan that runs goes on: better an older one than none.
            agent.journal.say("plan refused", code=error.code, what=error.what, why=error.why, fix=error.fix)
            return
        if agent.switch(wanted, self._exchange, remembered.encode(plan), given.tag):
            agent.journal.say("plan follows", plan=given.tag, begins_anew=anew)


def _source(device: Device) -> Source:
    return Source(device.who.device, device.who.user)
