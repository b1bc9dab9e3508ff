"""A device in a world of its own: true time, clocks that lie, a disk that keeps commits, a gateway in memory.

The gateway is made of the real machines that judge and place uploads, so what a test sees logged is what one logs.
"""

from __future__ import annotations

import io
import itertools
import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from catchment.device.agent import Agent
from catchment.device.assembly import Device, assemble, stored_plan
from catchment.device.correspondent import PLAN_PATH
from catchment.device.identity import Identified
from catchment.device.journal import Journal
from catchment.device.remembered import StoredPlan
from catchment.device.sensors.named import parse
from catchment.device.surroundings import Surroundings
from catchment.device.transport import Reply, Request
from catchment.gateway.enrolment import Enrolled
from catchment.gateway.log.entry import NO_INSTANT, Entry, Kind
from catchment.gateway.log.marks import Marks
from catchment.gateway.uplink import Turn, Uplink
from catchment.plan import document
from catchment.plan.build import build
from catchment.plan.physical import Plan
from catchment.program.program import Program
from catchment.program.types import Row
from catchment.sync.admission import Admission, Admit, Challenge
from catchment.sync.codecs import codec
from catchment.sync.frame import Beat, Data, Epoch, Frame, Hello, Pressure, Welcome, decode_all, encode_all
from catchment.sync.outbox import Outbox
from tests.unit.sync.outbox_world import image

SECOND_US = 1_000_000
MINUTE_US, HOUR_US, DAY_US = 60 * SECOND_US, 3600 * SECOND_US, 86_400 * SECOND_US
BEGIN_US = 1_700_000_000 * SECOND_US
ME = Identified("phone", "ada", "thread", "secret")


class Machine:
    """The clocks of a machine. `true_us` is what the world knows and the machine does not."""

    def __init__(self, *, wall_error_us: int = 0) -> None:
        self.true_us = BEGIN_US
        self.wall_error_us = wall_error_us
        self._booted_us = BEGIN_US - 100 * SECOND_US
        self._boots = 1

    def reading_us(self) -> int:
        return self.true_us - self._booted_us

    def wall_us(self) -> int:
        return self.true_us + self.wall_error_us

    def boot(self) -> bytes:
        return b"boot %d" % self._boots

    def reboot(self, *, off_us: int = 0) -> None:
        self.true_us += off_us
        self._booted_us = self.true_us
        self._boots += 1


class Disk:
    """What a kill leaves: everything that was committed."""

    def __init__(self) -> None:
        self.image: bytes | None = None
        self._nonces = itertools.count(1)

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if self.image is not None:
            connection.deserialize(self.image)
        return connection

    def nonce(self) -> bytes:
        return next(self._nonces).to_bytes(8, "big")

    def open(self) -> Outbox:
        return Outbox.open(None, fresh_nonce=self.nonce, connect=self.connect)


class Gateway:
    """Uploads judged, placed and kept as entries; results numbered and given until they are acknowledged."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.messages = 0
        self.results: list[Data] = []
        self.held: dict[str, int] = {}
        self.pressure: Pressure | None = None
        self.plan = StoredPlan(b"", "")
        self.away = False
        self.deaf = False
        """Takes messages, and its answers are lost."""
        self._marks = Marks()
        self._tokens = itertools.count(1)
        self._admission = Admission(fresh_token=lambda: b"token %d" % next(self._tokens))
        self._enrolled = Enrolled(ME.device, ME.user, ME.program, "", 0)

    def ask(self, request: Request, now_us: int) -> Reply:
        if self.away:
            return Reply(0, b"no route to host")
        if request.path == PLAN_PATH:
            return Reply(200, self.plan.document, {"etag": f'"{self.plan.tag}"'})
        self.messages += 1
        answer = encode_all(self._turn(list(decode_all(request.body)), now_us))
        return Reply(0, b"timed out") if self.deaf else Reply(200, answer)

    def restart(self) -> None:
        self._admission = Admission(
            fresh_token=lambda: b"token %d" % next(self._tokens),
            epochs={Epoch(counter, nonce.to_bytes(8, "little", signed=True)) for counter, nonce in self._epochs()},
        )

    def give(self, plan: Plan, stream: str, rows: list[Row]) -> None:
        """A result for the device, as a sink appends it."""
        schema = plan.schemas[plan.sync(stream).schema]
        name = f"{plan.program}/{stream}"
        first = sum(one.count for one in self.results if one.stream == name)
        payload = codec("msgpack").encode(schema, rows)
        fingerprint = bytes.fromhex(schema.fingerprint)
        self.results.append(
            Data(name, Epoch(1, b"downlink"), first, len(rows), fingerprint, "msgpack", payload=payload)
        )

    def rows(self, plan: Plan, stream: str) -> list[Row]:
        """The elements of a stream as they were logged."""
        return [row for _, found in self.logged(plan, stream) for row in found]

    def logged(self, plan: Plan, stream: str) -> list[tuple[Entry, list[Row]]]:
        """The uploads of a stream, with their elements."""
        schema = plan.schemas[plan.sync(stream).schema]
        return [
            (entry, codec(entry.codec).decode(schema, entry.payload))
            for entry in self.entries
            if entry.kind == Kind.DATA and entry.stream == f"{plan.program}/{stream}"
        ]

    def moments(self, plan: Plan, stream: str) -> list[int]:
        """When the elements of a stream happened, by the log."""
        schema = plan.schemas[plan.sync(stream).schema]
        at = schema.position(schema.event_time or "")
        return [row[at] + entry.shift_us for entry, rows in self.logged(plan, stream) for row in rows]

    def promises(self, stream: str) -> list[int]:
        """What was promised of a stream, in the order of the log."""
        named = [entry for entry in self.entries if entry.stream.endswith(f"/{stream}")]
        return [entry.promise_us for entry in named if entry.promise_us != NO_INSTANT]

    def _turn(self, frames: list[Frame], now_us: int) -> list[Frame]:
        hello = frames[0]
        assert isinstance(hello, Hello)
        decision = self._admission.hello(hello)
        if isinstance(decision, Challenge):
            return [Welcome(hello.nonce, challenge=decision.challenge)]
        assert isinstance(decision, Admit)
        for mark in hello.marks:
            self.held[mark.stream] = max(mark.upto, self.held.get(mark.stream, 0))
        # Made anew each time, as after a restart of the gateway: what it knows is what it logged.
        known = self._marks.devices.get(ME.device)
        uplink = Uplink(self._enrolled, known, streams_max=16, schemas=lambda look: {})
        turn = Turn()
        uplink.greeted(hello, turn, now_us=now_us)
        for frame in frames[1:]:
            if isinstance(frame, Beat):
                uplink.beat(frame, turn, now_us=now_us)
            elif isinstance(frame, Data):
                uplink.data(frame, turn, now_us=now_us)
        for entry in turn.entries:
            self._marks.apply(entry)
        self.entries += turn.entries
        answers = uplink.settle(turn, pressure=self.pressure)
        welcome = Welcome(
            hello.nonce,
            token=decision.token,
            codecs=hello.codecs,
            compressions=hello.compressions,
            marks=uplink.marks(),
            offset=uplink.offset(),
            pressure=self.pressure,
            plan=self.plan.tag,
        )
        waiting = [one for one in self.results if one.upto > self.held.get(one.stream, 0)]
        return [welcome, *answers, *waiting]

    def _epochs(self) -> set[tuple[int, int]]:
        return {(e.epoch_counter, e.epoch_nonce) for e in self.entries if e.kind == Kind.DATA}


class World:
    """A device with its gateway. `run` lets time pass; `kill` and `start` are what they say."""

    def __init__(self, program: Program, *sensors: str, machine: Machine | None = None, poll_s: float = 30.0) -> None:
        self.plan = build(program)
        self.machine = machine or Machine()
        self.disk = Disk()
        self.gateway = Gateway()
        self.delay_us = 20_000
        self.bytes_per_s: float | None = None
        """What the way to the gateway carries; None where the size of a message does not matter."""
        self.around = Surroundings()
        self.journal = io.StringIO()
        self.sensors = sensors
        self.poll_us = round(poll_s * 1e6)
        self.document = StoredPlan(document.write(self.plan), "first")
        self.gateway.plan = self.document
        self.follows_plan = True
        self.agent: Agent | None = None
        self._under_way: tuple[int, Request] | None = None

    # What the device is given: a transport and an environment.

    def start_request(self, request: Request) -> None:
        assert self._under_way is None, "one request at a time"
        takes_us = 0 if self.bytes_per_s is None else round(len(request.body) / self.bytes_per_s * 1e6)
        self._under_way = (self.machine.true_us + takes_us + 2 * self.delay_us, request)

    def look(self) -> Surroundings:
        return self.around

    # What happens.

    def start(self) -> Agent:
        outbox = self.disk.open()
        device = Device(
            outbox=outbox,
            who=ME,
            specs=tuple(parse(text) for text in self.sensors),
            clock=self.machine,
            environment=self,
            journal=Journal(self.journal, self.machine.wall_us),
            fresh_nonce=self.disk.nonce,
            transport=_Transport(self),
            gateway="http://gateway",
            poll_us=self.poll_us,
            follows_plan=self.follows_plan,
        )
        self._under_way = None
        self.agent = assemble(device, stored_plan(outbox) or self.document if self.follows_plan else self.document)
        self.save()
        return self.agent

    def save(self) -> None:
        assert self.agent is not None
        self.disk.image = image(self.agent.outbox)

    def kill(self) -> None:
        self.save()
        assert self.agent is not None
        self.agent.outbox.close()
        self.agent = None

    def run(self, for_us: int) -> None:
        """Let time pass, turn by turn."""
        until_us = self.machine.true_us + for_us
        for _ in range(1_000_000):
            agent = self.agent
            assert agent is not None
            wake_us = agent.turn()
            if self.machine.true_us >= until_us:
                return
            due_us = until_us
            if wake_us is not None:
                due_us = min(due_us, self.machine.true_us + max(wake_us - self.machine.reading_us(), 1))
            if self._under_way is not None:
                due_us = min(due_us, self._under_way[0])
            self.machine.true_us = due_us
            self._deliver(agent)
        raise AssertionError("the device never rests")

    def run_until(self, what: Callable[[], bool], within_us: int = 20 * MINUTE_US) -> None:
        """Let time pass until that is so."""
        until_us = self.machine.true_us + within_us
        while not what():
            assert self.machine.true_us < until_us, "it did not happen in time"
            self.run(5 * SECOND_US)

    def said(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in self.journal.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    def _deliver(self, agent: Agent) -> None:
        if self._under_way is not None and self._under_way[0] <= self.machine.true_us:
            _, request = self._under_way
            self._under_way = None
            agent.answered(self.gateway.ask(request, self.machine.true_us - self.delay_us))


class _Transport:
    def __init__(self, world: World) -> None:
        self._world = world

    def start(self, request: Request) -> None:
        self._world.start_request(request)


def recording(path: Path, moments: Iterable[int], amount: int = 1) -> Path:
    """A file of readings at these moments."""
    path.write_text("at,amount\n" + "".join(f"{at},{amount}\n" for at in moments))
    return path


__all__ = [
    "BEGIN_US",
    "DAY_US",
    "HOUR_US",
    "ME",
    "MINUTE_US",
    "SECOND_US",
    "Disk",
    "Gateway",
    "Machine",
    "World",
    "recording",
]
