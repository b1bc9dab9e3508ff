"""Turns: one message of a device, from its bytes to what is answered once everything in it is durable.

It is decoded, who speaks is made sure of, uploads are gathered, the turn is logged, and only then does anything leave
that says so. What is refused is answered with its code, counted, and kept aside where a person may want to look.
Knows frames; what is decided about an upload is `uplink`'s business, how messages arrive is `exchange`'s.
"""

from __future__ import annotations

import logging
import secrets
from typing import NamedTuple

import msgspec

from catchment.errors import CatchmentError, PeerError
from catchment.gateway.connections import Connections
from catchment.gateway.devices import Device, Devices, Link
from catchment.gateway.enrolment import Enrolled
from catchment.gateway.journal import say
from catchment.gateway.log.files.commit import GroupCommit
from catchment.gateway.negotiation import agree, welcome
from catchment.gateway.service import Service
from catchment.gateway.tally import Tally
from catchment.gateway.uplink import RETRY_US, Turn, Uplink, epoch_of
from catchment.sync.admission import Admission, Admit, Challenge, TurnAway
from catchment.sync.frame import Ack, Beat, Bye, Data, Error, Frame, Hello, Welcome, decode, encode

_STRANGERS = frozenset({"G523", "G524"})
"""Nobody who is known, and somebody who is known no longer."""
_TRY_AGAIN = frozenset({"G504", "G505", "G506", "G507", "G517", "G518", "G556", "G557"})
"""Refusals that pass: the same message is welcome later."""

_ELSEWHERE = frozenset({"G504", "G505", "G518"})
"""Refusals that mean that this gateway does not write the partition any more."""


class Heard(NamedTuple):
    """The frames of a message, and where each ends in it."""

    body: bytes
    frames: list[Frame]
    bounds: list[tuple[int, int]]

    def raw(self, number: int) -> bytes:
        """The bytes of a frame."""
        start, end = self.bounds[number]
        return self.body[start:end]


class Reply(NamedTuple):
    """What to answer, and whether the conversation is over."""

    frames: list[Frame]
    over: bool = False


class Turns:
    """The messages of one gateway's devices, each device's one after the other."""

    def __init__(self, service: Service, devices: Devices, connections: Connections, tally: Tally) -> None:
        self._service = service
        self._limits = service.options.limits
        self._devices = devices
        self._connections = connections
        self._tally = tally

    async def take(self, link: Link, body: bytes) -> Reply:
        """One message: what to answer once everything in it is durable."""
        now = self._service.clock_us()
        link.heard_us = now
        heard, fault = self._decode(body, link)
        self._tally.frames(heard.frames)
        reply = await self._turn(link, heard, now)
        if fault is not None:
            reply.frames.append(Error(fault.code, fault.what, fault.fix))
            return Reply(reply.frames, over=True)
        return reply

    async def _turn(self, link: Link, heard: Heard, now: int) -> Reply:
        token = b""
        first = heard.frames[0] if heard.frames else None
        hello = first if isinstance(first, Hello) else None
        try:
            device = self._speaker(link, hello, len(heard.body), now)
        except PeerError as error:
            # What a stranger says may explain who it is; what an honest device says too fast it will say again.
            is_strange = error.code in _STRANGERS
            self._put_aside(error, _without_secret(heard) if is_strange else b"", link, keep=is_strange)
            return Reply([_error(error, hello)], over=True)
        if device is None:
            return Reply(
                [self._connections.moved(self._service.stores.log.partition_of(_name(link, hello)))], over=True
            )
        async with device.turn:
            if not self._is_current(device):
                # Its partition went to another writer while this message waited.
                self._devices.drop(device.enrolled.device)
                return Reply([self._connections.moved(device.partition)], over=True)
            if not device.is_certain:
                await self._make_certain(device)
            if hello is not None:
                refused = self._greet(device, link, hello, now)
                if isinstance(refused, Reply):
                    return refused
                token = refused.token
            elif device.link is not link:
                # A newer connection of the device displaced this one.
                return Reply([Bye("another connection of this device took over")], over=True)
            return await self._upload(device, link, hello, token, heard, now)

    def _speaker(self, link: Link, hello: Hello | None, size: int, now: int) -> Device | None:
        """Who speaks; None if another gateway should be asked."""
        if hello is None:
            if link.device is None:
                raise _no_hello()
            name = link.device.enrolled.device
            self._service.stores.enrolment.check(name)
            self._admits(name, size, now)
            return link.device
        agree(hello)
        enrolled = self._service.stores.enrolment.prove(hello.device, hello.credential)
        self._admits(enrolled.device, size, now)
        return self._device(enrolled)

    def _admits(self, name: str, size: int, now: int) -> None:
        """Whether there is room for a message of that size."""
        if self._service.rates.take(name, size, now_us=now):
            raise _too_fast(name, self._limits.device_bytes_per_s)
        if self._service.pending_bytes() > self._limits.pending_bytes:
            raise _too_busy(self._limits.pending_bytes)

    def _device(self, enrolled: Enrolled) -> Device | None:
        """The device with what the log knows of it; None if its partition is not written here."""
        log, name = self._service.stores.log, enrolled.device
        writer = log.writers.get(log.partition_of(name))
        if writer is None:
            return None
        known = self._devices.find(name)
        if known is not None and known.enrolled.user == enrolled.user and known.writer is writer:
            if known.enrolled.quarantined_us is not None and enrolled.quarantined_us is None:
                known.admission.release()
            known.enrolled = enrolled
            return known
        if known is not None:
            if known.turn.locked():
                # What is on its way for the former owner, or to the former writer, has to arrive or fail first.
                raise _too_busy(self._limits.pending_bytes)
            self._connections.displace(known, None)
            self._devices.drop(name)
        mark = writer.partition.marks.devices.get(name)
        admission = Admission(
            fresh_token=_fresh_token,
            epochs=[epoch_of(counter, nonce) for counter, nonce in (mark.epochs if mark is not None else ())],
            quarantined=enrolled.quarantined_us is not None,
            watch=self._service.watch,
        )
        device = Device(enrolled, writer, admission, self._uplink(enrolled, writer))
        self._devices.add(device)
        return device

    def _is_current(self, device: Device) -> bool:
        current = self._service.stores.log.writers.get(device.partition)
        return current is device.writer and self._devices.find(device.enrolled.device) is device

    def _uplink(self, enrolled: Enrolled, writer: GroupCommit) -> Uplink:
        """A device's uploads as the log has them. Nothing of the device is on its way to the log at this moment."""
        plans = self._service.stores.plans
        return Uplink(
            enrolled,
            writer.partition.marks.devices.get(enrolled.device),
            streams_max=self._limits.device_streams,
            schemas=lambda look: plans.schemas(enrolled.program, look=look),
            watch=self._service.watch,
        )

    async def _make_certain(self, device: Device) -> None:
        """Wait until everything that was submitted is durable or refused, and take what the log says then."""
        await self._service.log(device.writer, [])
        self._renew(device)
        device.is_certain = True

    def _renew(self, device: Device) -> None:
        """Know of its uploads what the log knows, and no more."""
        before, device.uplink = device.uplink, self._uplink(device.enrolled, device.writer)
        device.uplink.go_on_from(before)

    def _greet(self, device: Device, link: Link, hello: Hello, now: int) -> Reply | Admit:
        """Let the device in, or say why not yet or not at all."""
        decision = device.admission.hello(hello)
        if isinstance(decision, Challenge):
            return Reply([Welcome(hello.nonce, challenge=decision.challenge)])
        if isinstance(decision, TurnAway):
            name = device.enrolled.device
            self._tally.refused(decision.error)
            if decision.news:
                self._service.stores.enrolment.quarantine(name, now_us=now)
                device.enrolled = self._service.stores.enrolment.find(name) or device.enrolled
                say("two live copies", level=logging.WARNING, device=name, peer=link.peer)
                self._connections.displace(device, None)
            return Reply([_error(decision.error, hello)], over=True)
        if link.device is not None and link.device is not device:
            self._connections.left(link)
        is_new = link.device is None
        self._connections.displace(device, link)
        device.link, link.device, device.results_due = link, device, True
        link.plan = hello.plan
        link.have = {}
        link.in_flight.clear()
        for mark in hello.marks:
            link.have[(mark.stream, mark.epoch.nonce)] = mark.upto
            self._acknowledged(device, mark.stream, mark.epoch.nonce, mark.upto)
        if link.is_open and is_new:
            enrolled = device.enrolled
            self._service.note(self._service.presence.connect(enrolled.device, enrolled.user, now_us=now))
        return decision

    async def _upload(
        self, device: Device, link: Link, hello: Hello | None, token: bytes, heard: Heard, now: int
    ) -> Reply:
        """Have the message's uploads logged, and answer."""
        turn, over = Turn(), False
        strange: PeerError | None = None
        if hello is not None:
            device.uplink.greeted(hello, turn, now_us=now)
        take = device.uplink.data
        for number, frame in enumerate(heard.frames):
            match frame:
                case Data():
                    refused = take(frame, turn, now_us=now)
                    if refused is not None:
                        self._put_aside(refused.error, heard.raw(number), link, keep=refused.keep_aside)
                case Beat():
                    device.uplink.beat(frame, turn, now_us=now)
                case Ack():
                    for mark in frame.marks:
                        link.acknowledged(mark)
                        self._acknowledged(device, mark.stream, mark.epoch.nonce, mark.upto)
                case Bye():
                    link.sleep_us, over = frame.sleep_us, True
                case Hello() if number == 0:
                    # It was heeded before.
                    pass
                case _:
                    strange, over = _not_a_devices(frame), True
                    self._put_aside(strange, heard.raw(number), link, keep=True)
                    break
        failure = await self._log(device, turn)
        if failure is not None:
            return self._failed(device, turn, failure, hello)
        self._tally.logged(device.enrolled.device, turn, self._service.clock_us() - now)
        pressure = self._service.pressure(device.partition)
        answers = device.uplink.settle(turn, pressure=pressure)
        if hello is not None:
            answers.insert(
                0,
                welcome(
                    hello,
                    token=token,
                    uplink=device.uplink,
                    pressure=pressure,
                    plan=self._service.stores.plans.current(device.enrolled.program) or "",
                    limits=self._limits,
                    gateway=self._service.options.name,
                    generation=device.writer.partition.lease.generation,
                ),
            )
        if strange is not None:
            answers.append(_error(strange, None))
        answers += self._connections.downhill(device, link, offer=hello is not None)
        return Reply(answers, over=over)

    async def _log(self, device: Device, turn: Turn) -> CatchmentError | None:
        if not turn.entries:
            return None
        device.is_certain = False
        outcome = await self._service.log(device.writer, turn.entries)
        # Not reached when this task is cancelled meanwhile: then the next turn asks the log.
        device.is_certain = True
        return outcome if isinstance(outcome, CatchmentError) else None

    def _failed(self, device: Device, turn: Turn, failure: CatchmentError, hello: Hello | None) -> Reply:
        """Nothing of the turn is in the log: forget what was taken, and say so."""
        self._tally.refused(failure)
        if failure.code in _ELSEWHERE or not self._is_current(device):
            self._devices.drop(device.enrolled.device)
            return Reply([self._connections.moved(device.partition)], over=True)
        self._renew(device)
        if hello is not None:
            return Reply([_error(failure, hello)], over=True)
        return Reply(device.uplink.refuse(turn, failure))

    def _acknowledged(self, device: Device, stream: str, nonce: bytes, upto: int) -> None:
        if upto > device.acknowledged.get((stream, nonce), 0):
            device.acknowledged[(stream, nonce)] = upto
            self._service.acknowledge(device.enrolled.device, device.enrolled.user, stream, nonce, upto)

    def _decode(self, body: bytes, link: Link) -> tuple[Heard, PeerError | None]:
        """The frames of a message, up to the first that is not one."""
        heard = Heard(body, [], [])
        at, size, bytes_max = 0, len(body), self._limits.frame_bytes
        try:
            while at < size:
                frame, end = decode(body, at, frame_bytes_max=bytes_max)
                if frame is not None:
                    heard.frames.append(frame)
                    heard.bounds.append((at, end))
                at = end
        except PeerError as error:
            self._put_aside(error, body[at:], link, keep=True)
            return heard, error
        return heard, None

    def _put_aside(self, error: PeerError, raw: bytes, link: Link, *, keep: bool) -> None:
        device = "" if link.device is None else link.device.enrolled.device
        self._tally.refused(error)
        if keep:
            self._tally.put_aside(error, raw, device=device, peer=link.peer)


def _without_secret(heard: Heard) -> bytes:
    """The message as it came, but for the credentials of its hellos: they may be somebody's, for nobody to read."""
    return b"".join(
        [
            encode(msgspec.structs.replace(frame, credential="")) if isinstance(frame, Hello) else heard.raw(number)
            for number, frame in enumerate(heard.frames)
        ]
    )


def _fresh_token() -> bytes:
    return secrets.token_bytes(16)


def _error(error: CatchmentError, hello: Hello | None) -> Error:
    retry_us = RETRY_US if error.code in _TRY_AGAIN else None
    return Error(error.code, error.what, error.fix, retry_us, nonce=b"" if hello is None else hello.nonce)


def _name(link: Link, hello: Hello | None) -> str:
    if hello is not None:
        return hello.device
    return link.device.enrolled.device if link.device is not None else ""


def _no_hello() -> PeerError:
    return PeerError(
        "G575",
        "nobody has said hello",
        why="the first frame of a connection and of an HTTP body says who speaks",
        fix="begin with a hello; after a connection was displaced or closed, connect anew",
    )


def _not_a_devices(frame: Frame) -> PeerError:
    return PeerError(
        "G576",
        f"a device does not send a {type(frame).__name__}",
        why="it sends one Hello, then Data, Beat, Ack and Bye",
        fix="send only these",
    )


def _too_fast(device: str, bytes_per_s: float) -> PeerError:
    return PeerError(
        "G557",
        f"{device} sends too fast",
        why=f"a device may send {bytes_per_s / 1e6:g} MB per second over time",
        fix="keep the data and send it later; batch and compress more",
    )


def _too_busy(bytes_max: int) -> PeerError:
    return PeerError(
        "G556",
        "the gateway is busy",
        why=f"more than {bytes_max} bytes wait for its disk",
        fix="keep the data and send it later",
    )
