"""The sync endpoint, in process: durable before it is acknowledged, and refused with a code where it should not be."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from catchment.gateway.devices import Link
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.faults import FailingDisk
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from catchment.sync.frame import (
    Ack,
    Beat,
    Bye,
    Data,
    Error,
    Frame,
    Hello,
    Moved,
    Welcome,
    decode_all,
    encode,
    encode_all,
)
from catchment.sync.parts import Clock, Epoch, Gap, Lost, Mark, Offset, Promise

SECOND = 1_000_000
BOOT = b"one boot"
NOW = 1_800_000_000 * SECOND
F = TypeVar("F")


class Place:
    """A gateway in a directory, with a clock that only the test moves."""

    def __init__(self, root: Path, *, name: str = "one", limits: GatewayLimits | None = None) -> None:
        self.now_us = NOW
        self.disk = FailingDisk(root / "log")
        options = Options(
            root,
            name=name,
            address=f"http://{name}",
            partitions=2,
            log=Limits(reserve_bytes=0),
            limits=limits or GatewayLimits(),
        )
        self.service = Service(options, clock_us=lambda: self.now_us, log_disk=self.disk)
        self.exchange = Exchange(self.service)

    def phone(self, name: str = "phone", *, user: str = "ada") -> Phone:
        enrolment = self.service.stores.enrolment
        token = enrolment.token(user=user, program="peir", now_us=self.now_us, valid_us=SECOND)
        given = enrolment.enrol(token, device=name, now_us=self.now_us)
        return Phone(self, given.device, given.credential)

    def logged(self, kind: Kind = Kind.DATA) -> list[Entry]:
        reader = LogReader(LocalDisk(self.disk.root))
        entries = [entry for number in range(reader.partitions) for _, entry in reader.read(number, 0)]
        return [entry for entry in entries if entry.kind == kind]

    def aside(self) -> list[dict[str, Any]]:
        files = sorted((self.disk.root.parent / "quarantine").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class Phone:
    """A device that says what it is told to, keeps its nonce until it is welcomed, and brings the token back."""

    def __init__(self, place: Place, name: str, credential: str) -> None:
        self.place = place
        self.name = name
        self.credential = credential
        self.epoch = Epoch(1, b"epoch  1")
        self.token = b""
        self.reading_us = 0
        self.greetings = 0
        self.link = Link("10.0.0.1", now_us=place.now_us)

    def hello(self, **changes: Any) -> Hello:
        fields: dict[str, Any] = {
            "device": self.name,
            "credential": self.credential,
            "epoch": self.epoch,
            "nonce": b"nonce %d" % self.greetings,
            "token": self.token,
            "session": BOOT,
            "reading_us": self.reading_us,
        }
        return Hello(**{**fields, **changes})

    def data(self, first: int, count: int = 1, *, stream: str = "peir/fixes", **changes: Any) -> Data:
        fields: dict[str, Any] = {"epoch": self.epoch, "schema": b"\x00" * 8, "codec": "none", "payload": b"rows"}
        return Data(stream, first=first, count=count, **{**fields, **changes})

    async def send(self, *frames: Frame) -> list[Frame]:
        """A message on the phone's connection, and its answer."""
        reply = await self.place.exchange.turn(self.link, encode_all(frames))
        answers = list(decode_all(encode_all(reply.frames)))
        for answer in answers:
            if isinstance(answer, Welcome) and not answer.challenge:
                self.token = answer.token
                self.greetings += 1
        return answers

    async def post(self, *frames: Frame, **changes: Any) -> list[Frame]:
        """A message of its own, as by HTTP; a challenge is answered."""
        self.link = Link("10.0.0.1", now_us=self.place.now_us)
        answers = await self.send(self.hello(**changes), *frames)
        if answers and isinstance(answers[0], Welcome) and answers[0].challenge:
            self.link = Link("10.0.0.1", now_us=self.place.now_us)
            answers = await self.send(self.hello(**{**changes, "token": answers[0].challenge}), *frames)
        return answers


def _tell(root: Path, story: Callable[[Place], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        place = Place(root, **options)
        await place.service.start()
        try:
            await story(place)
        finally:
            await place.service.stop()

    asyncio.run(whole())


def _only(kind: type[F], frames: list[Frame]) -> F:
    (found,) = [frame for frame in frames if isinstance(frame, kind)]
    return found


def test_an_upload_is_in_the_log_when_it_is_acknowledged(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        answers = await phone.post(phone.data(0, 3, gaps=(Gap(1, 2),), lost=Lost(dropped=2)), phone.data(5, 2))
        assert [type(answer) for answer in answers] == [Welcome, Ack]
        assert _only(Ack, answers).marks == (Mark("peir/fixes", phone.epoch, 7),)
        one, two = place.logged()
        assert (one.device, one.user, one.stream, one.first, one.count, one.upto) == (
            "phone",
            "ada",
            "peir/fixes",
            0,
            3,
            5,
        )
        assert (one.gaps, one.lost_dropped, one.payload, one.received_us) == ("[[1,2,1]]", 2, b"rows", NOW)
        assert (two.first, two.upto, two.epoch) == (5, 7, 0)
        assert [entry.user for entry in place.logged(Kind.JOINED)] == ["ada"]

    _tell(tmp_path, story)


def test_what_was_sent_before_is_acknowledged_again_and_kept_once_also_after_a_restart(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 3))
        answers = await phone.post(phone.data(0, 3), phone.data(3, 1))
        assert _only(Ack, answers).marks[0].upto == 4
        _phones.append(phone)

    async def later(place: Place) -> None:
        (phone,) = _phones
        phone.place = place
        answers = await phone.post(phone.data(0, 3), phone.data(3, 1), phone.data(4, 1))
        assert _only(Welcome, answers).marks == (Mark("peir/fixes", phone.epoch, 5),)
        assert [(entry.first, entry.upto) for entry in place.logged()] == [(0, 3), (3, 4), (4, 5)]

    _phones: list[Phone] = []
    _tell(tmp_path, story)
    _tell(tmp_path, later)


def test_a_missing_frame_is_asked_for(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 3))
        error = _only(Error, await phone.send(phone.data(4, 1)))
        assert (error.code, error.mark, error.retry_after_us) == ("S410", Mark("peir/fixes", phone.epoch, 3), 0)
        assert _only(Ack, await phone.send(phone.data(3, 2))).marks[0].upto == 5

    _tell(tmp_path, story)


@pytest.mark.parametrize("failing", ["full", "broken"])
def test_what_the_disk_did_not_take_is_not_acknowledged_and_taken_once_when_sent_again(
    tmp_path: Path, failing: str
) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 3))
        if failing == "full":
            place.disk.write_error = errno.ENOSPC
        else:
            place.disk.sync_error = errno.EIO
        beat = Beat(BOOT, 5, promises=(Promise("peir/fixes", 9 * SECOND),))
        answers = await phone.send(beat, phone.data(3, 1), phone.data(4, 1))
        error = _only(Error, answers)
        assert error.code == ("G506" if failing == "full" else "G507")
        assert error.mark == Mark("peir/fixes", phone.epoch, 3) and error.retry_after_us
        place.disk.write_error = place.disk.sync_error = None
        place.now_us += 2 * SECOND
        assert _only(Ack, await phone.send(phone.data(3, 1), phone.data(4, 1))).marks[0].upto == 5
        assert [entry.first for entry in place.logged()] == [0, 3, 4]

    _tell(tmp_path, story)


def test_a_hello_that_could_not_be_logged_is_not_welcomed(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.disk.write_error = errno.ENOSPC
        error = _only(Error, await phone.post(phone.data(0)))
        assert (error.code, error.nonce) == ("G506", b"nonce 0") and error.retry_after_us
        place.disk.write_error = None
        assert [type(answer) for answer in await phone.post(phone.data(0))] == [Welcome, Ack]

    _tell(tmp_path, story)


def test_a_turn_that_nobody_waited_for_is_asked_of_the_log(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        upload = asyncio.create_task(phone.send(phone.data(1)))
        await asyncio.sleep(0)
        upload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upload
        await phone.send(phone.data(1))
        assert [entry.first for entry in place.logged()] == [0, 1]

    _tell(tmp_path, story)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"device": "tablet"}, "G570"),
        ({"stream": "peir/fixes 2"}, "G571"),
        ({"epoch": Epoch(9, b"epoch  9")}, "S412"),
    ],
)
def test_uploads_that_cannot_be_are_refused_and_put_aside_and_the_rest_goes_on(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        bad = phone.data(1, **change) if "stream" not in change else phone.data(0, stream=change["stream"])
        answers = await phone.post(phone.data(0), bad, phone.data(1))
        assert _only(Error, answers).code == code
        assert _only(Ack, answers).marks[0].upto == 2
        (kept,) = place.aside()
        assert (kept["code"], kept["device"], kept["peer"]) == (code, "phone", "10.0.0.1")
        assert place.service.metrics.refused.values[(code,)] == 1
        assert [entry.first for entry in place.logged()] == [0, 1]

    _tell(tmp_path, story, limits=GatewayLimits(device_streams=1))


def test_only_streams_and_schemas_that_a_plan_had_are_taken(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        plans = place.service.stores.plans
        phone = place.phone()
        await phone.post(phone.data(0))
        plans.publish("peir", b"plan 1", schemas={"peir/fixes": ["00" * 8]})
        plans.publish("peir", b"plan 2", schemas={"peir/fixes": ["11" * 8]})
        answers = await phone.send(
            phone.data(1),
            phone.data(2, schema=b"\x11" * 8),
            phone.data(3, schema=b"\x22" * 8),
            phone.data(0, stream="peir/secrets"),
        )
        assert [answer.code for answer in answers if isinstance(answer, Error)] == ["G573", "G572"]
        assert _only(Ack, answers).marks[0].upto == 3

    _tell(tmp_path, story)


def test_strangers_and_the_revoked_are_refused(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        stranger = Phone(place, "phone", "guess")
        error = _only(Error, await stranger.post(stranger.data(0)))
        assert (error.code, error.retry_after_us) == ("G523", None)
        assert _only(Error, await Phone(place, "phone", "").send(phone.data(0))).code == "G575"
        assert _only(Error, await phone.post(versions=(99,))).code == "G577"
        await phone.post(phone.data(0))
        place.service.stores.enrolment.revoke("phone", now_us=place.now_us)
        assert _only(Error, await phone.send(phone.data(1))).code == "G524"
        assert _only(Error, await phone.post(phone.data(1))).code == "G524"
        assert [entry.first for entry in place.logged()] == [0]

    _tell(tmp_path, story)


def test_bytes_that_are_no_frame_end_the_conversation_after_what_was_sound(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        good, bad = encode(phone.data(0)), bytearray(encode(phone.data(1)))
        bad[-3] ^= 1
        reply = await place.exchange.turn(phone.link, encode(phone.hello()) + good + bytes(bad))
        assert [type(frame) for frame in reply.frames] == [Welcome, Ack, Error] and reply.over
        assert _only(Error, reply.frames).code == "S405"
        assert place.aside()[0]["size_bytes"] == len(bad)

    _tell(tmp_path, story)


def test_frames_that_only_a_gateway_sends_end_the_conversation(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        reply = await place.exchange.turn(
            phone.link, encode_all([phone.hello(), phone.data(0), Moved("http://evil"), phone.data(1)])
        )
        assert reply.over and _only(Error, reply.frames).code == "G576"
        assert _only(Ack, reply.frames).marks[0].upto == 1

    _tell(tmp_path, story)


def test_a_device_that_sends_too_fast_or_to_a_busy_gateway_keeps_its_data(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        error = _only(Error, await phone.send(phone.data(1, payload=bytes(5000))))
        assert error.code == "G557" and error.retry_after_us
        place.now_us += 10 * SECOND
        assert _only(Ack, await phone.send(phone.data(1, payload=bytes(5000)))).marks[0].upto == 2

    _tell(tmp_path, story, limits=GatewayLimits(device_bytes_per_s=1000, device_burst_bytes=5200))

    async def busy(place: Place) -> None:
        phone = place.phone("other")
        assert _only(Error, await phone.post(phone.data(0))).code == "G556"

    _tell(tmp_path, busy, limits=GatewayLimits(pending_bytes=-1))


def test_a_new_start_answers_a_challenge_and_goes_on_in_its_own_epoch(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 2))
        phone.epoch, phone.token = Epoch(2, b"epoch  2"), b""
        challenged = await phone.send(phone.hello(), phone.data(0))
        assert _only(Welcome, challenged).challenge
        assert [type(answer) for answer in await phone.post(phone.data(0))] == [Welcome, Ack]
        assert [(entry.epoch, entry.first) for entry in place.logged()] == [(0, 0), (1, 0)]

    _tell(tmp_path, story)


def test_two_live_copies_are_held_back_until_somebody_decides(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        clone = Phone(place, phone.name, phone.credential)
        clone.token, clone.greetings = phone.token, phone.greetings
        await phone.post(phone.data(1))
        assert _only(Error, await clone.post(clone.data(1), nonce=b"clone's")).code == "S417"
        assert _only(Error, await phone.post(phone.data(2))).code == "S417"
        enrolment = place.service.stores.enrolment
        found = enrolment.find("phone")
        assert found is not None and found.quarantined_us == place.now_us
        enrolment.quarantine("phone", now_us=None)
        assert _only(Ack, await phone.post(phone.data(2))).marks[0].upto == 3

    _tell(tmp_path, story)


def test_a_newer_connection_displaces_the_older(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        old = phone.link
        await phone.post(phone.data(1))
        phone.link = old
        assert _only(Error, await phone.send(phone.data(2))).code == "G575"
        assert len(place.logged()) == 2

    _tell(tmp_path, story)


def test_event_time_is_fixed_by_the_offset_that_the_log_holds(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        phone.reading_us = 50 * SECOND
        # Bridged: the device placed readings by a wall clock that is an hour ahead.
        bridge = NOW - 50 * SECOND + 3600 * SECOND
        early = Clock(BOOT, 10 * SECOND, 5 * SECOND, bridge, bridge)
        answers = await phone.post(phone.data(0, 2, clock=early, promise_us=15 * SECOND + bridge))
        offset = _only(Welcome, answers).offset
        assert offset == Offset(BOOT, 0, NOW - 50 * SECOND, SECOND)
        # From now on it uses the offset that it was told, so both sides agree without a shift.
        place.now_us += 11 * SECOND
        known = Clock(BOOT, 60 * SECOND, 0, offset.offset_us)
        await phone.send(Beat(BOOT, 61 * SECOND), phone.data(2, clock=known, promise_us=60 * SECOND + offset.offset_us))
        own = Clock(BOOT, 60 * SECOND, 0, None)
        await phone.send(phone.data(3, clock=own))
        first, second, third = place.logged()
        assert (first.shift_us, first.base_us, first.span_us) == (-3600 * SECOND, NOW - 40 * SECOND, 5 * SECOND)
        assert first.promise_us == NOW - 35 * SECOND
        assert (second.shift_us, second.base_us, second.promise_us) == (0, NOW + 10 * SECOND, NOW + 10 * SECOND)
        assert third.shift_us == 0
        (clock,) = place.logged(Kind.CLOCK)
        assert (clock.session, clock.clock_offset_us) == (BOOT.hex(), NOW - 50 * SECOND)

    _tell(tmp_path, story)


def test_a_better_offset_is_a_new_segment_and_the_old_one_still_counts_for_what_used_it(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.now_us = NOW + 3 * SECOND
        first = _only(Welcome, await phone.post()).offset
        assert first is not None
        # This message took three seconds less on its way.
        place.now_us = NOW + 10 * SECOND
        ack = _only(Ack, await phone.send(Beat(BOOT, 10 * SECOND)))
        assert ack.offset == Offset(BOOT, 1, NOW, SECOND)
        await phone.send(phone.data(0, clock=Clock(BOOT, 5 * SECOND, 0, first.offset_us)))
        (entry,) = place.logged()
        assert (entry.shift_us, entry.clock_segment, entry.base_us) == (0, 0, NOW + 8 * SECOND)

    _tell(tmp_path, story)


def test_promises_without_data_reach_the_log_when_they_have_advanced(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post()

        async def beat(until_us: int) -> None:
            place.now_us = NOW + until_us
            promises = (Promise("peir/fixes", NOW + until_us, NOW),)
            await phone.send(Beat(BOOT, until_us, promises=promises))

        for until_us in (5 * SECOND, 5 * SECOND + 10, 7 * SECOND, 3 * SECOND):
            await beat(until_us)
        assert [entry.promise_us for entry in place.logged(Kind.PROMISE)] == [NOW + 5 * SECOND, NOW + 7 * SECOND]

    _tell(tmp_path, story)


def test_presence_is_logged_when_a_device_comes_and_when_it_stays_away(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.service.note(place.service.presence.connect("phone", "ada", now_us=place.now_us))
        await phone.post(phone.data(0), Bye("asleep", sleep_us=SECOND))
        await phone.post(phone.data(1))
        assert [entry.count for entry in place.logged(Kind.PRESENCE)] == [1]

    _tell(tmp_path, story)
