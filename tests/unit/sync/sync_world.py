"""One device and one gateway in virtual time, with a network and disks that fail by seed.

The device is the real exchange over the real outbox. The gateway is the smallest one that uses the real admission,
receiver and sender: a log that is durable some time after it was written to, and results that it sends down. What they
must keep is checked at every step: see `World.check`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from catchment.errors import PeerError
from catchment.program.sync import Batch, Sync
from catchment.program.types import INSTANT, INT, Column, Duration, Row, Schema
from catchment.sync import frame as f
from catchment.sync.admission import Admission, Admit, Challenge
from catchment.sync.codecs import codec
from catchment.sync.exchange import Exchange
from catchment.sync.happening import Parted
from catchment.sync.outbox import Outbox, Stamp
from catchment.sync.receiver import Accept, Duplicate, Receiver
from catchment.sync.sender import Sender
from catchment.sync.session import Clocks, Identity
from catchment.sync.table import Rule
from tests.unit.sync.outbox_world import Disk

FIX = Schema("Fix", (Column("at", INSTANT, event_time=True), Column("n", INT)))
SECOND = 1_000_000
POLICY = Sync(batch=Batch(records=5, within=Duration(2 * SECOND)))
LogEntry = tuple[str, f.Epoch, int, Row | None]


class Gateway:
    """What is on its disk, and what is only in its memory."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log: list[LogEntry] = []
        self.met: list[f.Epoch] = []
        self.quarantined = False
        self.results: list[Row] = []
        self.results_acked = 0
        self.downlink_epoch = f.Epoch(1, b"downlink")
        self.start()

    def start(self) -> None:
        """A new process: only the disk is left."""
        marks: dict[tuple[str, f.Epoch], int] = {}
        for stream, epoch, number, _ in self.log:
            marks[stream, epoch] = number + 1
        self.receiver = Receiver([f.Mark(s, e, upto) for (s, e), upto in marks.items()], watch=self.world.saw)
        self.admission = Admission(
            fresh_token=self.world.nonce, epochs=self.met, quarantined=self.quarantined, watch=self.world.saw
        )
        self.sender = Sender(watch=self.world.saw)
        self.connection: int | None = None
        self.pending: list[tuple[int, list[LogEntry], f.Mark]] = []

    def received(self, connection: int, message: bytes) -> None:
        for frame in f.decode_all(message):
            match frame:
                case f.Hello():
                    self.hello(connection, frame)
                case _ if connection != self.connection:
                    # A connection that was displaced, or is new to this process.
                    self.say(connection, f.Error("G575", "nobody has said hello", retry_after_us=0))
                    return
                case f.Beat():
                    self.receiver.heard(frame)
                case f.Data():
                    self.data(frame)
                case f.Ack():
                    for mark in self.sender.acknowledged(frame.marks, now_us=self.world.now):
                        self.results_acked = max(self.results_acked, mark.upto)
                case f.Error(mark=f.Mark() as mark):
                    self.sender.refused(mark)
                case f.Bye():
                    self.connection = None
                case _:
                    pass
        self.send_results()

    def hello(self, connection: int, frame: f.Hello) -> None:
        decision = self.admission.hello(frame)
        if isinstance(decision, Challenge):
            self.say(connection, f.Welcome(frame.nonce, challenge=decision.challenge))
            return
        if not isinstance(decision, Admit):
            self.quarantined = True
            error = decision.error
            self.say(connection, f.Error(error.code, error.what, error.fix, nonce=frame.nonce))
            return
        if decision.supersedes:
            self.met.append(frame.epoch)
        self.connection = connection
        self.receiver.heard(frame)
        window = self.world.random.choice([1, 3, 64])
        welcome = f.Welcome(
            frame.nonce, decision.token, codecs=("msgpack", "none"), marks=self.receiver.marks(), window_frames=window
        )
        self.say(connection, welcome)
        for mark in self.sender.opened(frame.marks, window_frames=window, now_us=self.world.now):
            self.results_acked = max(self.results_acked, mark.upto)

    def data(self, frame: f.Data) -> None:
        verdict = self.receiver.consider(frame)
        match verdict:
            case Accept():
                rows = codec(frame.codec).decode(FIX, frame.payload) if frame.count else []
                numbered = dict(zip(frame.numbers(), rows, strict=True))
                entries: list[LogEntry] = [
                    (frame.stream, frame.epoch, number, numbered.get(number))
                    for number in range(frame.first, frame.upto)
                ]
                mark = self.receiver.take(frame)
                self.pending.append((self.world.now + self.world.random.randrange(SECOND), entries, mark))
                self.world.at(self.pending[-1][0], self.group_commit)
            case Duplicate():
                self.say_ack(self.receiver.mark(frame.stream, frame.epoch))
            case _:
                self.world.codes.add(verdict.error.code)
                error = verdict.error
                if self.connection is not None:
                    self.say(self.connection, f.Error(error.code, error.what, error.fix, 0, verdict.mark))

    def group_commit(self) -> None:
        """What was written by now is durable, in order, and only then acknowledged."""
        while self.pending and self.pending[0][0] <= self.world.now:
            _, entries, mark = self.pending.pop(0)
            self.log.extend(entries)
            self.receiver.commit(mark)
            self.say_ack(mark)

    def send_results(self) -> None:
        """Results go down as frames of up to three."""
        stream = "results"
        overdue_at_us = self.sender.overdue_at_us
        if overdue_at_us is not None and self.world.now >= overdue_at_us:
            self.sender.opened((), window_frames=3, now_us=self.world.now)
        for _ in range(1000):
            if self.connection is None or not self.sender.may_send(stream, self.world.now):
                return
            at = self.sender.position(stream)
            if at is None:
                if self.results_acked >= len(self.results):
                    return
                self.sender.filled(stream, self.downlink_epoch, self.results_acked)
                continue
            rows = self.results[at[1] : at[1] + 3]
            if not rows:
                self.sender.ended(stream)
                if self.sender.state(stream) == "resting" and self.results_acked >= len(self.results):
                    return
                if self.sender.state(stream) == "draining":
                    return
                continue
            payload = codec("msgpack").encode(FIX, rows)
            fingerprint = bytes.fromhex(FIX.fingerprint)
            frame = f.Data(stream, at[0], at[1], len(rows), fingerprint, "msgpack", payload=payload)
            self.sender.sent(stream, frame.upto, now_us=self.world.now)
            self.say(self.connection, frame)
        raise AssertionError("a gateway that never stops talking")

    def say_ack(self, mark: f.Mark) -> None:
        if self.connection is not None:
            self.say(self.connection, f.Ack((mark,)))

    def say(self, connection: int, frame: f.Frame) -> None:
        self.world.carry(connection, f.encode(frame), self.world.to_device)


class World:
    """Time, the network, the device's process, and what everybody should agree on in the end."""

    def __init__(self, seed: int, *, faults: bool = True) -> None:
        self.random = Random(seed)
        self.faults = faults
        self.now = 0
        self.rules: set[tuple[str, str]] = set()
        self.codes: set[str] = set()
        self.appended: list[Row] = []
        self.values = count()
        self._nonces = count(1)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._connections = count(1)
        self.disk = Disk()
        self.disk.nonces = self.nonce
        self.gateway = Gateway(self)
        self.consumed: list[Row] = []
        self.connection: int | None = None
        self.outbox: Outbox
        self.start_device()

    # -- the device ----------------------------------------------------------------------------------------------

    def start_device(self) -> None:
        self.outbox = self.disk.open()
        self.exchange = Exchange(
            self.outbox, Identity("d", "secret", codecs=("msgpack",)), fresh_nonce=self.nonce, watch=self.saw
        )
        self.intake = self.exchange.up("fixes", FIX, POLICY)
        self.exchange.down("results", [FIX])
        self.connection = None
        self.connect_at = self.now
        self.durable = self.outbox.commits

    def clocks(self) -> Clocks:
        return Clocks(b"boot", self.now)

    def append(self, how_many: int) -> None:
        rows = [(self.now, next(self.values)) for _ in range(how_many)]
        with self.outbox.transaction():
            self.intake.append(rows, stamp=Stamp(b"boot"), readings_us=[self.now] * how_many, promise_us=self.now)
            done = self.outbox.load_state("appended")
            self.outbox.save_state("appended", str(int(done or b"0") + how_many).encode())
        self.appended.extend(rows)

    def consume(self) -> None:
        """The program takes results and remembers that it did, in one transaction."""
        results = self.outbox.results("results")
        if results:
            with self.outbox.transaction():
                self.outbox.forget_results("results", results[-1].id)
                done = int(self.outbox.load_state("consumed") or b"0")
                self.outbox.save_state("consumed", str(done + len(results)).encode())
            self.consumed.extend([result.row for result in results])

    def crash_device(self) -> None:
        """Kill -9 or a power cut: what was committed durably is there, what came after it perhaps."""
        if self.outbox.commits > self.durable or self.random.random() < 0.5:
            self.disk.save(self.outbox)
        self.outbox.close()
        self.start_device()

    def step_device(self) -> None:
        if self.connection is None and self.now >= self.connect_at:
            self.connection = next(self._connections)
            self.settle(self.exchange.connected(self.clocks()))
        self.settle(self.exchange.due(self.clocks()))
        self.pump()

    def pump(self) -> None:
        for _ in range(1000):
            if self.connection is None or not (message := self.exchange.outgoing(self.clocks())):
                return
            self.carry(self.connection, message, lambda c, m: self.gateway.received(c, m))
        raise AssertionError("a device that never stops talking")

    def to_device(self, connection: int, message: bytes) -> None:
        if connection != self.connection:
            return
        self.settle(self.exchange.received(message, self.clocks()))
        self.consume()
        self.pump()

    def settle(self, happenings: list[Any]) -> None:
        for happening in happenings:
            if isinstance(happening, Parted):
                self.connection, self.connect_at = None, happening.retry_at_us
        if self.outbox.commits > self.durable:
            self.durable = self.outbox.commits
            self.disk.save(self.outbox)

    # -- the network ---------------------------------------------------------------------------------------------

    def carry(self, connection: int, message: bytes, arrive: Callable[[int, bytes], None]) -> None:
        """Messages of a connection may be late, lost, repeated, reordered or garbled."""
        copies = 1
        if self.faults:
            copies = self.random.choices([0, 1, 2], [4, 92, 4])[0]
        for _ in range(copies):
            delay = 10_000
            if self.faults:
                delay = self.random.choice([1_000, 50_000, 50_000, 3 * SECOND])
                if self.random.random() < 0.01:
                    at = self.random.randrange(len(message))
                    message = message[:at] + bytes([message[at] ^ 0x10]) + message[at + 1 :]
            self.at(self.now + delay, lambda m=message: self._arrive(arrive, connection, m))  # type: ignore[misc]

    def _arrive(self, arrive: Callable[[int, bytes], None], connection: int, message: bytes) -> None:
        try:
            arrive(connection, message)
        except PeerError as error:
            self.codes.add(error.code)

    # -- time ----------------------------------------------------------------------------------------------------

    def at(self, time: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self.now), next(self._order), action))

    def run(self, until: int) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = until

    def nonce(self) -> bytes:
        return next(self._nonces).to_bytes(8, "big")

    def saw(self, table: str, rule: Rule) -> None:
        self.rules.add((table, rule.name))

    def tick(self) -> None:
        """A second of life, with whatever befalls."""
        self.run(self.now + SECOND)
        if self.faults:
            fate = self.random.random()
            if fate < 0.03:
                self.crash_device()
            elif fate < 0.06:
                self.gateway.start()
            elif fate < 0.10 and self.connection is not None:
                self.settle(self.exchange.disconnected(self.now))
            elif fate < 0.12 and self.connection is not None:
                self.gateway.connection = None
            elif fate < 0.13:
                # The log took what it was given, and not its answer: or it took nothing.
                self.gateway.receiver.roll_back()
                self.gateway.pending.clear()
        if self.random.random() < 0.6:
            self.append(self.random.randrange(1, 4))
        if self.random.random() < 0.3:
            self.gateway.results.append((self.now, next(self.values)))
            self.gateway.send_results()
        self.settle([])
        self.step_device()
        self.check()

    def check(self) -> None:
        """Delivered once, in order, and nothing that was acknowledged is lost: at every step."""
        logged = [row for _, _, _, row in self.gateway.log if row is not None]
        assert logged == self.appended[: len(logged)], "the log is a prefix of what was appended"
        assert self.outbox.size("fixes")[0] >= len(self.appended) - len(logged), "what is not in the log is still here"
        assert self.consumed == self.gateway.results[: len(self.consumed)], "results are seen once, in order"
        assert not self.gateway.quarantined, "one device is not taken for two"

    def heal(self) -> None:
        """The faults end, and all that is left must arrive."""
        self.faults = False
        for _ in range(400):
            self.run(self.now + SECOND)
            self.settle([])
            self.step_device()
            self.gateway.send_results()
            self.consume()
            self.check()
            if self.outbox.start("fixes") is None and self.gateway.results_acked == len(self.gateway.results):
                return
        raise AssertionError("what was left did not arrive in 400 s without faults")
