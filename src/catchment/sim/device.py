"""A device in the simulator: the real outbox, sync streams and timekeeping, driven by simulated clocks and links.

It does what a device's agent does: sensors append elements with their moments, the clock's memory is kept in the same
transaction, results are read and forgotten; its way to the gateways is `link`. What is simulated: the disk below the
outbox, the boot and wall clocks, the network. Everything it makes goes into the ledger first.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec

from catchment.device.timekeeper import Timekeeper
from catchment.program.sync import Sync
from catchment.program.types import INSTANT, INT, STR, Column, Schema
from catchment.sim.clock import SECOND_US, BootClock, Clock, WallClock
from catchment.sim.coverage import Coverage
from catchment.sim.database import DatabaseDisk, DiskMending
from catchment.sim.ledger import Fate, Ledger, Name
from catchment.sim.link import Link
from catchment.sim.network import Network
from catchment.sim.process import Process
from catchment.sync.exchange import Exchange
from catchment.sync.frame import Data, Epoch, encode
from catchment.sync.happening import Told, Trouble
from catchment.sync.outbox import Outbox, OutboxError
from catchment.sync.receiver import SUPERSEDED
from catchment.sync.session import Clocks, Identity

READING = Schema(
    "Reading",
    (Column("at", INSTANT, event_time=True), Column("serial", INT), Column("copy", INT), Column("reading", INT)),
)
RESULT = Schema("Result", (Column("number", INT), Column("key", STR)))
RESULTS = "results"
_SEEN = msgspec.msgpack.Decoder(list[tuple[int, str]])


class StreamScript(NamedTuple):
    """A stream of a device: its policy, and how often its sensor is read."""

    name: str
    policy: Sync
    every_us: int


class Observer(Protocol):
    """Who looks on: called whenever the device has done something."""

    def device_acted(self, device: DeviceNode) -> None:
        """Something happened at the device."""
        ...

    def superseded(self, device: DeviceNode) -> None:
        """It was told that an epoch of its had ended without it."""
        ...

    def said(self, who: str, what: str) -> None:
        """For the trace."""
        ...


class DeviceNode:
    """One device of a world, or one copy of it, through all its lives."""

    def __init__(
        self,
        name: str,
        credential: str,
        streams: tuple[StreamScript, ...],
        *,
        copy: int,
        by_post: bool,
        eager: bool,
        drift_ppm: int,
        codec_names: tuple[str, ...],
        clock: Clock,
        wall: WallClock,
        network: Network,
        addresses: tuple[str, ...],
        disk: DatabaseDisk,
        ledger: Ledger,
        coverage: Coverage,
        observer: Observer,
        luck: random.Random,
    ) -> None:
        self.name = name
        self.place = name if copy == 0 else f"{name}~{copy}"
        self.copy = copy
        self.streams = streams
        self.disk = disk
        self.wall = wall
        self.by_post = by_post
        self.pace = 1
        """How much slower sensors are read than their streams say."""
        self.is_sensing = True
        self.is_gone = False
        """Whether it was taken away for good."""
        self.bound_before: dict[str, int] = {}
        """What a stream may still hold from before its bound was made smaller."""
        self.boots = 0
        self.boot: BootClock | None = None
        self.process: Process | None = None
        self.outbox: Outbox | None = None
        self.exchange: Exchange | None = None
        self.keeper: Timekeeper | None = None
        self.seen: list[tuple[int, str]] = []
        """The results that its program has dealt with, as its durable state says."""
        self.troubles: list[str] = []
        """Codes that it was told."""
        self.credential = credential
        self._identity = Identity(name, credential, codecs=codec_names)
        self._eager = eager
        self._drift_ppm = drift_ppm
        self._clock = clock
        self._network = network
        self._addresses = addresses
        self._ledger = ledger
        self._coverage = coverage
        self._observer = observer
        self._luck = luck
        self._link: Link | None = None
        self._has_unread = False
        self._policies = {stream.name: stream.policy for stream in streams}

    # -- its life --------------------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        """Whether its process lives."""
        return self.process is not None and self.process.alive

    def how_it_is(self) -> str:
        """For people: where its conversation stands."""
        if not self.is_up or self.exchange is None or self.outbox is None:
            return "down" if not self.is_up else "no outbox"
        sender, reading_us = self.exchange.uplink.sender, self.reading_us()
        lanes = [
            f"{stream.name}: {sender.state(stream.name)} at {sender.position(stream.name)}, outbox "
            f"{self.outbox.size(stream.name)[0]} from {self.outbox.start(stream.name)}, paused for "
            f"{max(0, sender.paused_until_us(stream.name) - reading_us) / 1e6:.0f} s"
            for stream in self.streams
        ]
        return (
            f"{self.exchange.session.state}, {self._link.how_it_is() if self._link else ''}, "
            f"outbox {self.outbox.health}, told {self.troubles[-3:]}; {'; '.join(lanes)}"
        )

    def power_on(self) -> None:
        """Boot, unless it is on: another session of the boot clock."""
        if self.is_up:
            return
        self.boots += 1
        session = f"{self.place}/{self.boots}".encode()
        self.boot = BootClock(self._clock, self._clock.now_us, self._drift_ppm, session)
        self.start()

    def start(self) -> None:
        """Begin another life of the process."""
        if self.is_up:
            return
        process = Process(self.place, self._clock)
        self.process = process
        self._clock.after(0, lambda: self._begin(process), process.strand)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None and self.process.alive:
            self._note_uncounted()
            self.process.kill()
            self.disk.process_killed()

    def power_off(self) -> None:
        """Power is gone: nothing says goodbye, and what was not durable may be lost."""
        if self.process is not None and self.process.alive:
            self._note_uncounted()
            self.process.lost_power = True
            self.process.kill()
        self.disk.power_cut()

    def leave(self, sleep_us: int) -> None:
        """Stop in good order, and say for how long."""
        if not self.is_up or self._link is None:
            return
        self._link.leave(sleep_us)
        self._observer.device_acted(self)
        self.kill()

    @property
    def is_joined(self) -> bool:
        """Whether it has a connection on which it was welcomed."""
        return self._link is not None and self._link.is_joined

    def claim_the_future(self) -> None:
        """Send, by a defect, a frame of an epoch that has not begun."""
        if self._link is not None and self.outbox is not None and self.outbox.epoch is not None:
            epoch = Epoch(self.outbox.epoch.counter + 1, b"too soon")
            self._link.say(encode(Data(self.streams[0].name, epoch, 0, 0, b"", "none")))

    def clocks(self) -> Clocks:
        """What its clocks say now."""
        assert self.keeper is not None
        reading_us = self.reading_us()
        return Clocks(self.keeper.session, reading_us, self.wall.now_us() - reading_us)

    def reading_us(self) -> int:
        """The boot clock."""
        assert self.boot is not None
        return self.boot.reading_us()

    # -- starting --------------------------------------------------------------------------------------------------

    def _begin(self, process: Process) -> None:
        self.outbox = self.exchange = self.keeper = self._link = None
        outbox = Outbox.open(
            None,
            fresh_nonce=lambda: self._luck.randbytes(8),
            connect=lambda: self.disk.connect(process),
            mending=DiskMending(self.disk, process),
        )
        keeper: bytes | None = None
        seen: bytes | None = None
        # Damage may show only now: then the outbox is opened anew at the next attempt.
        with suppress(OutboxError):
            keeper, seen = outbox.load_state("timekeeper") or b"", outbox.load_state("seen") or b"\x90"
        if outbox.epoch is None or keeper is None or seen is None:
            # A disk in trouble: a device's agent tries again after a while, and says so meanwhile.
            self._coverage.hit("device", f"outbox {outbox.health.value} at the start")
            outbox.close()
            self._clock.after(5 * SECOND_US, lambda: self._begin(process), process.strand)
            return
        exchange = Exchange(
            outbox,
            self._identity,
            fresh_nonce=lambda: self._luck.randbytes(8),
            jitter=lambda: self._luck.uniform(0.5, 1.5),
            eager=self._eager or self.by_post,
            watch=self._coverage.rule,
        )
        self.outbox, self.exchange = outbox, exchange
        self.keeper = Timekeeper(
            keeper,
            boot=self.boot.session if self.boot is not None else b"",
            reading_us=self.reading_us(),
            wall_us=self.wall.now_us(),
        )
        self.seen = _SEEN.decode(seen)
        self._has_unread = True
        for stream in self.streams:
            policy = self._policies[stream.name]
            exchange.up(stream.name, READING, policy, now_us=self.reading_us())
            self._sense_later(process, stream)
        exchange.down(RESULTS, [RESULT])
        self._link = Link(
            process,
            exchange,
            self,
            clock=self._clock,
            network=self._network,
            place=self.place,
            addresses=self._addresses,
            by_post=self.by_post,
            luck=self._luck,
            coverage=self._coverage,
        )
        self._link.connect()

    def _note_uncounted(self) -> None:
        """Counts that are in memory only go with the process."""
        if self.outbox is not None:
            for stream in self.streams:
                self._ledger.account(Name(self.name, stream.name, self.copy)).uncertain += self.outbox.uncounted

    # -- sensing ---------------------------------------------------------------------------------------------------

    def _sense_later(self, process: Process, stream: StreamScript) -> None:
        every_us = stream.every_us * self.pace
        delay_us = self._luck.randint(every_us // 2, every_us * 3 // 2)
        self._clock.after(delay_us, lambda: self._sense(process, stream), process.strand)

    def _sense(self, process: Process, stream: StreamScript) -> None:
        if self.is_sensing:
            self.append(stream, self._luck.choice((1, 1, 1, 2, 5)))
            self.pump()
        if self._has_unread:
            self.results_came()
        self._sense_later(process, stream)

    def append(self, stream: StreamScript, count: int) -> None:
        """Take so many readings of a stream's sensor, now."""
        outbox, exchange, keeper = self.outbox, self.exchange, self.keeper
        if outbox is None or exchange is None or keeper is None:
            return
        intake = exchange.uplink.intakes[stream.name]
        name = Name(self.name, stream.name, self.copy)
        account = self._ledger.account(name)
        policy = self._policies[stream.name]
        account.is_lossy = account.is_lossy or policy.gives_up != ""
        # What an append that never returns may have given up of others.
        slack = count + (policy.outbox.records or 0 if account.is_lossy else 0)
        reading_us = self.reading_us()
        keeper.look(reading_us=reading_us, wall_us=self.wall.now_us())
        at_us = keeper.place(reading_us)
        made = [
            self._ledger.make(name, true_us=self._clock.now_us, reading_us=reading_us, boot=self.boots)
            for _ in range(count)
        ]
        rows = [(at_us, one.serial, self.copy, reading_us) for one in made]
        account.uncertain += slack
        try:
            with outbox.transaction():
                appended = intake.append(rows, stamp=keeper.stamp(), readings_us=[reading_us] * count, promise_us=at_us)
                outbox.save_state("timekeeper", keeper.memory())
        except OutboxError as failure:
            self._coverage.hit("device", f"append met a disk that was {failure.health.value}")
            account.refused += count
            # Otherwise a crash before the next commit may bring it back.
            if not self.disk.has_revenant:
                account.uncertain -= slack
                for one in made:
                    one.fate = Fate.REFUSED
            # Killed before it is noted anywhere, they are lost and not counted.
            account.uncertain += count
            outbox.give_up(stream.name, count)
            account.uncertain -= count
            return
        account.uncertain -= slack
        taken = appended.accepted
        account.appended(made, taken, given_up=appended.given_up)
        if appended.refused:
            self._coverage.hit("device", "outbox full: refused")
        if appended.given_up:
            self._coverage.hit("device", "outbox full: older ones given up")
        if taken + appended.refused < count:
            self._coverage.hit("device", "sampled down")

    def append_all(self) -> None:
        """One reading of every sensor, whether or not they are read otherwise."""
        if self.exchange is not None:
            for stream in self.streams:
                self.append(stream, 1)
            self.pump()

    def policy(self, stream: str) -> Sync:
        """The policy that a stream follows now."""
        return self._policies[stream]

    def change_policy(self, stream: str, policy: Sync) -> None:
        """Follow another policy, now and after restarts."""
        self._policies[stream] = policy
        if self.exchange is not None and self.is_up:
            self.exchange.change(stream, policy)

    # -- what its link tells it ------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what is due."""
        if self._link is not None:
            self._link.pump()

    def acted(self) -> None:
        """It has done something."""
        self._observer.device_acted(self)

    def told(self, told: Told) -> None:
        """What a gateway says beside acknowledging."""
        assert self.keeper is not None
        if told.offset is not None and self.keeper.learn(
            told.offset, reading_us=self.reading_us(), wall_us=self.wall.now_us()
        ):
            self._coverage.hit("device", "learnt an offset")
        if told.pressure is not None and told.pressure.slow_down > 1:
            self._coverage.hit("device", "told to slow down")

    def results_came(self) -> None:
        """Deal with what came down, as a program does: its state and the forgetting are one transaction."""
        assert self.outbox is not None
        self._has_unread = True
        try:
            with self.outbox.transaction():
                found = self.outbox.results(RESULTS)
                seen = [*self.seen, *[(result.row[0], result.row[1]) for result in found]]
                if found:
                    self.outbox.save_state("seen", msgspec.msgpack.encode(seen))
                    self.outbox.forget_results(RESULTS, found[-1].id)
        except OutboxError as failure:
            self._coverage.hit("device", f"results met a disk that was {failure.health.value}")
            return
        self._has_unread, self.seen = False, seen

    def in_trouble(self, trouble: Trouble) -> None:
        """It was told what it did wrong."""
        self.troubles.append(trouble.code)
        if trouble.code == SUPERSEDED:
            self._observer.superseded(self)
        self._observer.said(self.place, f"was told {trouble.code}: {trouble.what}")
