"""WebSockets, in process: results and plans come down, silence and displacement end a connection, partitions move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from catchment.gateway.downlink import Downlink, Keep, Result, to_device, to_user
from catchment.gateway.downlink import Mark as SinkMark
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log import Kind
from catchment.gateway.log.files import lease
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from catchment.gateway.presence import LINGER_US
from catchment.gateway.service import Service
from catchment.gateway.stores import Options, open_downlink
from catchment.sync.frame import Ack, Bye, Data, Error, Frame, Hello, Moved, PlanOffer, Welcome, decode_all, encode_all
from catchment.sync.parts import Epoch, Gap, Mark

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
F = TypeVar("F")


class Socket:
    """A device's side of a WebSocket, in memory."""

    def __init__(self, exchange: Exchange) -> None:
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.takes = asyncio.Event()
        """Cleared while the device takes no bytes."""
        self.takes.set()

        async def send(message: Any) -> None:
            await self.takes.wait()
            self._inbox.put_nowait(dict(message))

        scope = {"client": ("10.0.0.1", 1), "path": "/v1/sync"}
        self.served = asyncio.create_task(exchange.talk(scope, self._outbox.get, send))

    def send(self, *frames: Frame) -> None:
        self._outbox.put_nowait({"type": "websocket.receive", "bytes": encode_all(frames)})

    def raw(self, **message: Any) -> None:
        self._outbox.put_nowait(message)

    async def frames(self) -> list[Frame]:
        """The next message; nothing once the connection is closed."""
        while True:
            message = await asyncio.wait_for(self._inbox.get(), 10)
            if message["type"] == "websocket.send":
                return list(decode_all(message["bytes"]))
            if message["type"] == "websocket.close":
                self.raw(type="websocket.disconnect", code=1000)
                await self.served
                return []

    async def leave(self) -> None:
        self.raw(type="websocket.disconnect", code=1000)
        await self.served


class Place:
    """A gateway in a directory that others may share, with a clock that only the test moves."""

    def __init__(self, root: Path, *, name: str = "one", limits: GatewayLimits | None = None) -> None:
        self.root = root
        self.now_us = NOW
        options = Options(
            root,
            name=name,
            address=f"http://{name}",
            partitions=2,
            log=Limits(reserve_bytes=0),
            limits=limits or GatewayLimits(),
        )
        self.service = Service(options, clock_us=lambda: self.now_us)
        self.exchange = Exchange(self.service)
        self.epochs = 0

    def enrol(self, name: str, user: str = "ada") -> str:
        enrolment = self.service.stores.enrolment
        token = enrolment.token(user=user, program="peir", now_us=self.now_us, valid_us=SECOND)
        return enrolment.enrol(token, device=name, now_us=self.now_us).credential

    async def join(self, name: str, credential: str, **changes: Any) -> tuple[Socket, list[Frame]]:
        """A new start of a device, on a connection of its own."""
        self.epochs += 1
        hello = Hello(name, credential, Epoch(self.epochs, b"epoch %2d" % self.epochs), b"nonce", **changes)
        socket = Socket(self.exchange)
        socket.send(hello)
        answers = await socket.frames()
        if isinstance(answers[0], Welcome) and answers[0].challenge:
            fields = {field: getattr(hello, field) for field in hello.__struct_fields__}
            socket.send(Hello(**{**fields, "token": answers[0].challenge}))
            answers = await socket.frames()
        return socket, answers

    def presence(self) -> list[tuple[str, int]]:
        reader = LogReader(LocalDisk(self.root / "log"))
        entries = [entry for number in range(reader.partitions) for _, entry in reader.read(number, 0)]
        return [(entry.device, entry.count) for entry in entries if entry.kind == Kind.PRESENCE]


def _tell(root: Path, story: Callable[[Place], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        place = Place(root, **options)
        await place.service.start()
        try:
            await story(place)
        finally:
            await place.service.stop()

    asyncio.run(asyncio.wait_for(whole(), 60))


def _only(kind: type[F], frames: list[Frame]) -> F:
    (found,) = [frame for frame in frames if isinstance(frame, kind)]
    return found


def _sink(root: Path) -> Downlink:
    """What another process writes results with."""
    return open_downlink(root)


def _write(sink: Downlink, epoch: int, *results: Result, keep: Keep = Keep.ALL) -> None:
    sink.append(SinkMark("peir", "footprint", 1, epoch, str(epoch)), results, keep=keep, now_us=NOW)


def _result(payload: bytes, target: str = to_user("ada"), key: bytes = b"") -> Result:
    return Result(target, "peir/footprint", b"\x00" * 8, "none", payload, 1, key)


def test_results_are_pushed_to_every_device_of_the_user_and_once_on_a_connection(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        sink = _sink(tmp_path)
        phone, _ = await place.join("phone", place.enrol("phone"))
        tablet, _ = await place.join("tablet", place.enrol("tablet"))
        other, _ = await place.join("other", place.enrol("other", "bob"))
        _write(sink, 0, _result(b"a"), _result(b"just the phone's", to_device("phone")))
        found = [frame for frame in await phone.frames() if isinstance(frame, Data)]
        assert [frame.payload for frame in found] == [b"just the phone's", b"a"]
        assert _only(Data, await tablet.frames()).payload == b"a"
        phone.send(Ack(tuple([Mark(frame.stream, frame.epoch, frame.upto) for frame in found])))
        _write(sink, 1, _result(b"b"))
        assert _only(Data, await phone.frames()).first == 1
        other.send(Bye())
        assert await other.frames() == [], "nothing but the close"
        for socket in (phone, tablet):
            await socket.leave()

    _tell(tmp_path, story)


def test_what_a_device_does_not_hold_comes_again_on_its_next_connection(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        sink, credential = _sink(tmp_path), place.enrol("phone")
        _write(sink, 0, _result(b"a"), _result(b"b"), _result(b"c"))
        socket, first = await place.join("phone", credential)
        await socket.leave()
        found = [frame for frame in first if isinstance(frame, Data)]
        assert [frame.payload for frame in found] == [b"a", b"b", b"c"]
        held = Mark(found[0].stream, found[0].epoch, 2)
        socket, second = await place.join("phone", credential, marks=(held,))
        assert _only(Data, second).payload == b"c"
        await socket.leave()

    _tell(tmp_path, story)


def test_overtaken_results_are_named_as_gaps(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        sink = _sink(tmp_path)
        for epoch, payload in enumerate([b"1 kg", b"2 kg", b"3 kg"]):
            _write(sink, epoch, _result(payload), keep=Keep.LATEST)
        socket, answers = await place.join("phone", place.enrol("phone"))
        data = _only(Data, answers)
        assert (data.first, data.gaps, data.payload, data.upto) == (0, (Gap(0, 2),), b"3 kg", 3)
        assert data.numbers() == [2]
        await socket.leave()

    _tell(tmp_path, story)


def test_more_results_follow_when_those_under_way_are_acknowledged(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        _write(_sink(tmp_path), 0, *[_result(b"%d" % n) for n in range(150)])
        socket, answers = await place.join("phone", place.enrol("phone"))
        got: list[Data] = []
        for _ in range(20):
            fresh = [frame for frame in answers if isinstance(frame, Data)]
            got += fresh
            if len(got) == 150:
                break
            assert 0 < len(fresh) <= 64
            socket.send(Ack((Mark(got[-1].stream, got[-1].epoch, got[-1].upto),)))
            answers = await socket.frames()
        assert [frame.payload for frame in got] == [b"%d" % n for n in range(150)]
        await socket.leave()

    _tell(tmp_path, story)


def test_a_device_that_asks_by_http_may_wait_for_its_results(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        sink, credential = _sink(tmp_path), place.enrol("phone")

        async def post(wait_s: int, nonce: bytes, token: bytes = b"", marks: tuple[Mark, ...] = ()) -> list[Frame]:
            body = encode_all([Hello("phone", credential, Epoch(1, b"epoch  1"), nonce, token, marks=marks)])
            messages = [{"type": "http.request", "body": body}]

            async def receive() -> dict[str, Any]:
                return messages.pop()

            scope = {"client": ("10.0.0.1", 1), "headers": [(b"prefer", b"wait=%d" % wait_s)]}
            return list(decode_all((await place.exchange.post(scope, receive)).body))

        token = _only(Welcome, await post(0, b"1")).token
        waiting = asyncio.create_task(post(40, b"2", token))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        _write(sink, 0, _result(b"a"))
        frames = await waiting
        data, token = _only(Data, frames), _only(Welcome, frames).token
        assert data.payload == b"a"
        held = (Mark(data.stream, data.epoch, data.upto),)
        in_vain = await post(1, b"3", token, held)
        assert [type(frame) for frame in in_vain] == [Welcome]
        waiting = asyncio.create_task(post(40, b"4", _only(Welcome, in_vain).token, held))
        await asyncio.sleep(0.1)
        socket, _ = await place.join("phone", credential)
        assert not [frame for frame in await waiting if isinstance(frame, Data)], "a newer connection took over"
        await socket.leave()

    _tell(tmp_path, story)


def test_a_plan_is_offered_once_and_a_published_one_when_it_is_there(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        plans, credential = place.service.stores.plans, place.enrol("phone")
        fingerprint = plans.publish("peir", b"plan 1")
        socket, answers = await place.join("phone", credential)
        assert _only(Welcome, answers).plan == fingerprint
        assert _only(PlanOffer, answers) == PlanOffer(fingerprint, payload=b"plan 1")
        second = plans.publish("peir", b"p" * (3 << 20))
        parts = [frame for frame in await socket.frames() if isinstance(frame, PlanOffer)]
        assert b"".join(part.payload for part in parts) == b"p" * (3 << 20)
        assert [(part.fingerprint, part.part, part.parts) for part in parts] == [(second, n, 3) for n in range(3)]
        await socket.leave()
        socket, answers = await place.join("phone", credential, plan=second)
        assert not [frame for frame in answers if isinstance(frame, PlanOffer)]
        await socket.leave()

    _tell(tmp_path, story)


def test_a_newer_connection_ends_the_older_and_absence_is_said_once(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        credential = place.enrol("phone")
        old, _ = await place.join("phone", credential)
        new, _ = await place.join("phone", credential)
        assert [type(frame) for frame in await old.frames()] == [Bye]
        assert await old.frames() == []
        assert place.service.presence.connected == 1
        await new.leave()
        place.now_us += LINGER_US
        await asyncio.sleep(1.2)
        assert place.presence() == [("phone", 1), ("phone", 0)]

    _tell(tmp_path, story)


def test_a_silent_connection_is_closed_and_a_mute_one_sooner(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        mute = Socket(place.exchange)
        silent, _ = await place.join("phone", place.enrol("phone"))
        place.now_us += 20 * SECOND
        assert [type(frame) for frame in await mute.frames()] == [Bye]
        assert await mute.frames() == []
        place.now_us += 200 * SECOND
        assert [type(frame) for frame in await silent.frames()] == [Bye]
        assert await silent.frames() == []

    _tell(tmp_path, story)


def test_a_device_that_takes_no_bytes_holds_nothing_up(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        sink = _sink(tmp_path)
        stuck, _ = await place.join("phone", place.enrol("phone"))
        fine, _ = await place.join("tablet", place.enrol("tablet"))
        stuck.takes.clear()
        _write(sink, 0, _result(b"a"))
        assert _only(Data, await fine.frames()).payload == b"a"
        fine.send(Data("peir/fixes", Epoch(2, b"epoch  2"), 0, 1, b"", "none"))
        assert _only(Ack, await fine.frames()).marks[0].upto == 1
        stuck.takes.set()
        for socket in (stuck, fine):
            await socket.leave()

    _tell(tmp_path, story)


def test_text_and_too_many_connections_are_refused(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        talker = Socket(place.exchange)
        talker.raw(type="websocket.receive", text="hello?")
        assert await talker.frames() == []
        first = Socket(place.exchange)
        await asyncio.sleep(0)
        second = Socket(place.exchange)
        assert await second.frames() == []
        assert place.service.metrics.refused.values[("G562",)] == 1
        await first.leave()

    _tell(tmp_path, story, limits=GatewayLimits(connections=1))


def test_a_device_is_sent_to_the_gateway_that_writes_its_partition(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        other = Place(tmp_path, name="two")
        other.now_us = place.now_us
        credentials = {name: place.enrol(name) for name in ("a", "b", "c", "d", "e")}
        sockets = {name: (await place.join(name, credential))[0] for name, credential in credentials.items()}
        partition_of = place.service.stores.log.partition_of
        theirs = {name for name in credentials if partition_of(name) == 1}
        assert 0 < len(theirs) < 5
        await other.service.start()
        for name in sockets:
            if name in theirs:
                moved = _only(Moved, await sockets[name].frames())
                assert moved.partition == 1 and moved.gateway in ("", "http://two")
                assert await sockets[name].frames() == []
        while 1 not in other.service.stores.log.writers:
            await asyncio.sleep(0.05)
        for name in sorted(theirs):
            _, answers = await place.join(name, credentials[name])
            assert _only(Moved, answers).gateway == "http://two"
            other.epochs = place.epochs
            socket, answers = await other.join(name, credentials[name])
            assert _only(Welcome, answers).gateway == "two"
            await socket.leave()
        for name in set(sockets) - theirs:
            sockets[name].send(
                Data("peir/fixes", Epoch(list(credentials).index(name) + 1, b"x" * 8), 0, 1, b"", "none")
            )
            assert not [frame for frame in await sockets[name].frames() if isinstance(frame, Moved | Error)]
            await sockets[name].leave()
        await other.service.stop()

    _tell(tmp_path, story)


def test_a_gateway_that_died_is_replaced_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        credential = place.enrol("phone")
        socket, _ = await place.join("phone", credential)
        socket.send(Data("peir/fixes", Epoch(1, b"epoch  1"), 0, 3, b"", "none", payload=b"abc"))
        assert _only(Ack, await socket.frames()).marks[0].upto == 3
        # It falls silent without a word; its lease and its sign of life run out.
        heir = Place(tmp_path, name="two")
        heir.now_us = place.now_us + lease.LEASE_US + SECOND
        heir.epochs = place.epochs
        await heir.service.start()
        assert sorted(heir.service.stores.log.writers) == [0, 1]
        there, answers = await heir.join("phone", credential)
        assert _only(Welcome, answers).marks == (Mark("peir/fixes", Epoch(1, b"epoch  1"), 3),)
        # The old one wakes up: it acknowledges nothing, and says who is asked now.
        socket.send(Data("peir/fixes", Epoch(1, b"epoch  1"), 3, 1, b"", "none"))
        frames = await socket.frames()
        assert not [frame for frame in frames if isinstance(frame, Ack)]
        assert _only(Moved, frames).gateway == "http://two"
        await there.leave()
        await heir.service.stop()

    _tell(tmp_path, story)
