"""A world: devices, gateways, a log, a reader and a script of what goes wrong, run to its end and judged.

Promises: the same script gives the same run. While it runs, every acknowledgement that leaves a gateway is compared
with what a power cut at that moment would leave of the log, every step of a device with its bounds, and every entry of
the log with the ones before. Then everything is healed, everything must drain, and the reliability verifier must say
that what was promised lossless was, in order. Whatever does not hold raises `Broken`.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable

from catchment.gateway.downlink import Downlink
from catchment.gateway.enrolment import Enrolment
from catchment.sim.broken import Broken
from catchment.sim.chance import Chance
from catchment.sim.clock import HOUR_US, SECOND_US, Clock, WallClock
from catchment.sim.consumer import Consumer
from catchment.sim.coverage import Coverage
from catchment.sim.database import DatabaseDisk
from catchment.sim.device import READING, RESULTS, DeviceNode, StreamScript
from catchment.sim.disk import MountedDisk, SafeDisk
from catchment.sim.evidence import Evidence
from catchment.sim.gateway import GRAIN_US, LIMITS, GatewayNode, SharedStores
from catchment.sim.judge import judge
from catchment.sim.ledger import Ledger
from catchment.sim.medium import Medium
from catchment.sim.misfortunes import strike
from catchment.sim.network import Network
from catchment.sim.process import Process
from catchment.sim.script import DevicePlan, Script
from catchment.sync.frame import Ack, Welcome, decode_all
from catchment.sync.parts import Mark

BEGIN_US = 1_800_000_000_000_000
DRAIN_US = 3 * HOUR_US
"""Once everything is healed, all must have drained by then: a device that was barred asks again after an hour."""
EVENTS_MAX = 500_000
"""A world has some thousands. One with so many goes round in a circle."""
TRACE_LINES = 400

logging.getLogger("catchment.gateway").setLevel(logging.CRITICAL + 1)


class World:
    """One run of a script."""

    def __init__(self, script: Script, coverage: Coverage | None = None) -> None:
        self.script = script
        self.coverage = coverage or Coverage()
        self.chance = Chance(script.seed)
        self.began_us = BEGIN_US
        self.clock = Clock(BEGIN_US)
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.ledger = Ledger()
        self.network = Network(self.clock, self.chance.stream("network"), self.coverage)
        self.network.usual = script.usual
        self.medium = Medium(self.chance.stream("log's disk"))
        self.evidence = Evidence(SafeDisk(self.medium), script.partitions)
        self.has_ended = False
        self.pace = 1
        """How much more rarely everything is done than usual, since time is to pass."""
        secrets = self.chance.stream("secrets")
        self.shared = SharedStores(
            Enrolment(":memory:", secret=lambda: secrets.randbytes(8).hex()),
            Downlink(":memory:", nonce=secrets.randbytes(16)),
        )
        self.gateways = [self._gateway(number) for number in range(script.gateways)]
        self.devices = [self._device(number, plan) for number, plan in enumerate(script.devices)]
        self._names = tuple([device.name for device in self.devices])
        reader = Process("reader", self.clock)
        self.consumer = Consumer("cloud", MountedDisk(self.medium, reader), READING, safe_end=self.evidence.end)
        self.reader_pauses_until_us = 0
        self.results: dict[str, list[tuple[int, str]]] = {}
        """What was sent down to each device."""
        self.results_excused: dict[str, int] = {}
        """Devices that may lack some of their first so many, since a disk of theirs went back in time."""
        self.sink_epoch = 0
        self.undo: list[Callable[[], object]] = []
        """What healing has to undo."""
        self.has_good_clocks = True
        """Whether the gateways' clocks were never set."""
        self.has_quick_links = True
        """Whether no message was ever held up for longer than clocks allow for."""
        self.is_rotten = False
        self.lasting_us = 0
        """Until when something goes on, and the world with it."""
        self._broken: Broken | None = None
        """What a gateway was about to say that does not hold: raised inside a task of its, which nobody waits for."""

    # -- making it -------------------------------------------------------------------------------------------------

    def _gateway(self, number: int) -> GatewayNode:
        return GatewayNode(
            f"gw-{'ab'[number]}",
            clock=self.clock,
            wall=WallClock(self.clock),
            network=self.network,
            medium=self.medium,
            shared=self.shared,
            partitions=self.script.partitions,
            luck=self.chance.stream("gateway", number),
            tap=self._answered,
            watch=self.coverage.rule,
        )

    def _device(self, number: int, plan: DevicePlan) -> DeviceNode:
        name = f"device-{number}"
        token = self.shared.enrolment.token(user=f"user-{number % 2}", now_us=BEGIN_US, valid_us=HOUR_US)
        given = self.shared.enrolment.enrol(token, device=name, now_us=BEGIN_US)
        disk = DatabaseDisk(self.chance.stream("flash", number), self.clock)
        return self.make_device(name, given.credential, plan, disk, copy=0, luck_of=str(number))

    def make_device(
        self, name: str, credential: str, plan: DevicePlan, disk: DatabaseDisk, *, copy: int, luck_of: str
    ) -> DeviceNode:
        """A device, or a copy of one."""
        return DeviceNode(
            name,
            credential,
            tuple([StreamScript(stream.name, stream.policy, stream.every_us) for stream in plan.streams]),
            copy=copy,
            by_post=plan.by_post,
            eager=plan.eager,
            drift_ppm=plan.drift_ppm,
            codec_names=plan.codecs,
            clock=self.clock,
            wall=WallClock(self.clock, plan.wall_off_us),
            network=self.network,
            addresses=tuple([gateway.address for gateway in self.gateways]),
            disk=disk,
            ledger=self.ledger,
            coverage=self.coverage,
            observer=self,
            luck=self.chance.stream("device", luck_of),
        )

    def clone(self, device: DeviceNode, plan: DevicePlan, image: bytes) -> DeviceNode:
        """A second live copy of a device, from an image of its disk."""
        copy = 1 + max(other.copy for other in self.devices if other.name == device.name)
        disk = DatabaseDisk(self.chance.stream("flash", device.name, copy), self.clock)
        disk.restore(image)
        clone = self.make_device(device.name, device.credential, plan, disk, copy=copy, luck_of=f"{device.name}~{copy}")
        clone.pace = self.pace
        self.devices.append(clone)
        return clone

    def excuse(self, device: DeviceNode, why: str, *, since_us: int = 0) -> None:
        """A disk of the device went back to that instant: what it made since need not arrive, nor results it had."""
        self.ledger.excuse(device.name, device.copy, why, since_us=since_us)
        self.results_excused[device.name] = len(self.results.get(device.name, ()))

    def release(self, name: str) -> None:
        """Somebody has seen to it that one copy of a device is left."""
        self.shared.enrolment.quarantine(name, now_us=None)

    def gateways_lose_power(self) -> None:
        """All of them, and the disk below: they share a machine."""
        for gateway in self.gateways:
            if gateway.process is not None:
                gateway.process.lost_power = True
            gateway.kill()
        self.medium.power_cut()

    # -- running it ------------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """Of all that was drawn, done and written, to compare two runs by."""
        seen = hashlib.blake2b(digest_size=16)
        said = (self.clock.now_us, self.clock.events, self.chance.drawn(), sorted(self.coverage.counts.items()))
        seen.update(repr((said, list(self.trace))).encode())
        for path, data in self.medium.contents():
            seen.update(path.encode() + data)
        for device in self.devices:
            seen.update(device.place.encode() + (device.disk.image or b""))
        return seen.hexdigest()

    def run(self) -> None:
        """Run to the end; raises `Broken` where something that was promised did not hold."""
        for gateway in self.gateways:
            gateway.start()
        luck = self.chance.stream("beginnings")
        for device in self.devices:
            self.clock.after(luck.randint(0, 5 * SECOND_US), device.power_on)
        self._read_later()
        for number, misfortune in enumerate(self.script.misfortunes):
            at_us = BEGIN_US + misfortune.at_us
            self.clock.at(at_us, lambda m=misfortune, n=number: strike(self, n, m))  # type: ignore[misc]
        self._pass(BEGIN_US + self.script.active_us)
        # What lasts ends before the healing: an offline week is lived through.
        while self.lasting_us > self.clock.now_us:
            self._pass(self.lasting_us)
        self._heal()
        self._drain()
        judge(self)

    def _pass(self, until_us: int) -> None:
        """Let time go on until then."""
        self.clock.run(until_us, EVENTS_MAX - self.clock.events)
        if self._broken is not None:
            raise self._broken
        if self.clock.events >= EVENTS_MAX:
            raise Broken(
                "a world comes to rest", f"{EVENTS_MAX} events, and it is {self.clock.now_us - BEGIN_US} us old"
            )

    def lasts(self, until_us: int) -> None:
        """Something goes on until then, and the world with it."""
        self.lasting_us = max(self.lasting_us, until_us)

    def later(self, delay_us: int, action: Callable[[], object]) -> None:
        """Have that happen, unless everything was healed before."""
        self.clock.after(delay_us, lambda: None if self.has_ended else action())

    def set_pace(self, pace: int) -> None:
        """Have sensors be read and chores be done that much more rarely."""
        self.pace = pace
        for gateway in self.gateways:
            gateway.set_grain(GRAIN_US * pace)
        for device in self.devices:
            device.pace = pace

    def _heal(self) -> None:
        self.has_ended = True
        self.said("world", "heals")
        self.network.heal()
        medium = self.medium
        medium.capacity_bytes = 1 << 40
        medium.write_errno = medium.sync_errno = medium.truncate_errno = medium.replace_errno = None
        self.set_pace(1)
        for undo in self.undo:
            undo()
        for process in [gateway.process for gateway in self.gateways] + [device.process for device in self.devices]:
            if process is not None:
                process.put_out()
        for gateway in self.gateways:
            gateway.start()
        for device in self.devices:
            device.is_sensing = False
            device.disk.set_full(False)
            device.disk.set_read_only(False)
            device.disk.fails_at_commit = False
            if device.process is None:
                device.power_on()
            elif not device.is_gone:
                device.start()
            if device.exchange is not None:
                device.exchange.metered(False)

    def _drain(self) -> None:
        end_us = self.clock.now_us + DRAIN_US
        step_us = 2 * SECOND_US
        stirred = False
        while self.clock.now_us < end_us:
            self._pass(self.clock.now_us + step_us)
            self._start_what_is_down()
            if not stirred:
                # Each device makes one more of everything, so that what it is owed is told.
                stirred = True
                for device in self.devices:
                    self._stir(device)
                continue
            if self._is_drained():
                self.consumer.read()
                if self.consumer.trouble is None and not self.consumer.is_behind:
                    return
            if step_us > 30 * SECOND_US:
                # What is left waits for a time to come, and the gateways need not look about every second meanwhile.
                self.set_pace(20)
            step_us = min(step_us * 2, 120 * SECOND_US)
        raise Broken("everything drains once all is well", self._what_is_left())

    def _start_what_is_down(self) -> None:
        """As service managers do: what was told to stop before all was healed may have ended only now."""
        for gateway in self.gateways:
            gateway.start()
        for device in self.devices:
            if not device.is_gone:
                device.start()

    def _stir(self, device: DeviceNode) -> None:
        process = device.process
        if process is not None and process.alive:
            self.clock.after(0, device.append_all, process.strand)

    def _is_drained(self) -> bool:
        return all(
            device.outbox is not None and all(device.outbox.start(stream.name) is None for stream in device.streams)
            for device in self.devices
            if device.is_up
        ) and not any(self._results_due(device) for device in self.devices)

    def _results_due(self, device: DeviceNode) -> bool:
        """Whether there are results that a device has not dealt with."""
        if device.outbox is None or not device.is_up or device.name not in self.results:
            return False
        have = {(mark.stream, mark.epoch.nonce): mark.upto for mark in device.outbox.marks()}
        on_their_way = self.shared.downlink.pending(device.name, "", have, bytes_max=1)
        return bool(on_their_way) or bool(device.outbox.results(RESULTS, limit=1))

    def _what_is_left(self) -> str:
        left = [f"{device.place}: {device.how_it_is()}" for device in self.devices if not device.is_gone]
        left += [f"{device.place}: results are due" for device in self.devices if self._results_due(device)]
        if self.consumer.is_behind:
            left.append("the log ends before what was read of it")
        if self.consumer.trouble is not None:
            left.append(f"the reader: {self.consumer.trouble}")
        left += [f"{gateway.name}: {gateway.how_it_is()}" for gateway in self.gateways]
        return "\n  ".join(["", *left])

    # -- the reader ------------------------------------------------------------------------------------------------

    def _read_later(self) -> None:
        self.clock.after(4 * SECOND_US * self.pace, self._read)

    def _read(self) -> None:
        if not self.has_ended:
            if self.clock.now_us >= self.reader_pauses_until_us:
                self.consumer.read()
            self._read_later()

    # -- looking on ------------------------------------------------------------------------------------------------

    def said(self, who: str, what: str) -> None:
        """A line of the trace."""
        self.trace.append(f"{(self.clock.now_us - BEGIN_US) / 1e6:12.6f} {who:12} {what}")

    def _answered(self, gateway: GatewayNode, body: bytes) -> None:
        """A gateway is about to send: whatever it says is durable has to be, and what waits in it is bounded."""
        service = gateway.service
        if service is not None and service.pending_bytes() > LIMITS.pending_bytes + LIMITS.frame_bytes:
            self._broken = self._broken or Broken(
                "what waits in a gateway is bounded", f"{gateway.name} holds {service.pending_bytes()} bytes"
            )
        for frame in decode_all(body):
            if isinstance(frame, Ack | Welcome):
                for mark in frame.marks:
                    self._check_durable(gateway, mark)

    def _check_durable(self, gateway: GatewayNode, mark: Mark) -> None:
        best = max([self.evidence.upto(name, mark) for name in self._names])
        if best < mark.upto:
            self._broken = self._broken or Broken(
                "what is acknowledged is on the medium",
                f"{gateway.name} says {mark.stream} of {mark.epoch} is durable up to {mark.upto}, and it is to {best}",
            )

    def superseded(self, device: DeviceNode) -> None:
        """A device was told that an epoch had ended without it: only another copy or history of it can have done so."""
        has_another = sum(other.name == device.name for other in self.devices) > 1
        if not has_another and not any(self.ledger.went_back(device.name, stream.name) for stream in device.streams):
            raise Broken("an epoch is ended by its own device", f"{device.place} was told that one of its is over")

    def device_acted(self, device: DeviceNode) -> None:
        """A device has done something: it must be within its bounds, and must not have forgotten what is not safe."""
        outbox, exchange = device.outbox, device.exchange
        if outbox is None or exchange is None:
            return
        sender, welcome = exchange.uplink.sender, exchange.session.welcome
        if welcome is not None and sender.in_flight > welcome.window_frames:
            raise Broken("a window bounds what is under way", f"{device.place} has {sender.in_flight} frames under way")
        for stream in device.streams:
            bound = device.policy(stream.name).outbox.records
            records = outbox.size(stream.name)[0]
            if bound is not None and records > max(bound, device.bound_before.get(stream.name, 0)):
                raise Broken(
                    "an outbox keeps its bound", f"{device.place} holds {records} of {stream.name}, over {bound}"
                )
            start = outbox.start(stream.name)
            if start is not None and start.number:
                mark = Mark(stream.name, outbox.epoch_of(start), start.number)
                safe = self.evidence.upto(device.name, mark)
                if safe < start.number:
                    raise Broken(
                        "what is not safe in the log stays in the outbox",
                        f"{device.place} has forgotten {stream.name} up to {start.number}, the log has {safe}",
                    )
