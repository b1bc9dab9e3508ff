"""The sync endpoint, in process: durable before it is acknowledged, and refused with a code where it should not be."""

from __future__ import annotations

import asyncio
import base64
import errno
from pathlib import Path
from typing import Any

import pytest

from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log import Kind
from catchment.sync.frame import Ack, Beat, Error, Moved, Welcome, encode, encode_all
from catchment.sync.parts import Epoch, Gap, Lost, Mark, Promise
from tests.unit.gateway.kit import BOOT, NOW, SECOND, Phone, Place, only, tell


def test_an_upload_is_in_the_log_when_it_is_acknowledged(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        answers = await phone.post(phone.data(0, 3, gaps=(Gap(1, 2),), lost=Lost(dropped=2)), phone.data(5, 2))
        assert [type(answer) for answer in answers] == [Welcome, Ack]
        assert only(Ack, answers).marks == (Mark("peir/fixes", phone.epoch, 7),)
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

    tell(tmp_path, story)


def test_what_was_sent_before_is_acknowledged_again_and_kept_once_also_after_a_restart(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 3))
        answers = await phone.post(phone.data(0, 3), phone.data(3, 1))
        assert only(Ack, answers).marks[0].upto == 4
        _phones.append(phone)

    async def later(place: Place) -> None:
        (phone,) = _phones
        phone.place = place
        answers = await phone.post(phone.data(0, 3), phone.data(3, 1), phone.data(4, 1))
        assert only(Welcome, answers).marks == (Mark("peir/fixes", phone.epoch, 5),)
        assert [(entry.first, entry.upto) for entry in place.logged()] == [(0, 3), (3, 4), (4, 5)]

    _phones: list[Phone] = []
    tell(tmp_path, story)
    tell(tmp_path, later)


def test_a_missing_frame_is_asked_for(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 3))
        error = only(Error, await phone.send(phone.data(4, 1)))
        assert (error.code, error.mark, error.retry_after_us) == ("S410", Mark("peir/fixes", phone.epoch, 3), 0)
        assert only(Ack, await phone.send(phone.data(3, 2))).marks[0].upto == 5

    tell(tmp_path, story)


def test_new_numbers_of_an_epoch_that_is_over_are_refused_with_where_it_ended(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 3))
        before, phone.epoch = phone.epoch, Epoch(2, b"restored")
        await phone.post(phone.data(0, 1))
        error = only(Error, await phone.send(phone.data(3, 1, epoch=before)))
        assert (error.code, error.mark, error.retry_after_us) == ("S411", Mark("peir/fixes", before, 3), 0)

    tell(tmp_path, story)


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
        error = only(Error, answers)
        assert error.code == ("G506" if failing == "full" else "G507")
        assert error.mark == Mark("peir/fixes", phone.epoch, 3) and error.retry_after_us
        place.disk.write_error = place.disk.sync_error = None
        place.now_us += 2 * SECOND
        assert only(Ack, await phone.send(phone.data(3, 1), phone.data(4, 1))).marks[0].upto == 5
        assert [entry.first for entry in place.logged()] == [0, 3, 4]

    tell(tmp_path, story)


def test_what_a_device_said_of_itself_holds_on_after_the_disk_failed(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        place.disk.sync_error = errno.EIO
        assert only(Error, await phone.send(phone.data(1))).code == "G507"
        place.disk.sync_error = None
        place.now_us += 2 * SECOND
        early = phone.data(0, epoch=Epoch(2, b"too soon"))
        assert only(Error, await phone.send(early)).code == "S412"
        # Taken, it would have ended the epoch that goes on here.
        assert only(Ack, await phone.send(phone.data(1))).marks[0].upto == 2
        assert [entry.first for entry in place.logged()] == [0, 1]

    tell(tmp_path, story)


def test_a_hello_that_could_not_be_logged_is_not_welcomed(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.disk.write_error = errno.ENOSPC
        error = only(Error, await phone.post(phone.data(0)))
        assert (error.code, error.nonce) == ("G506", b"nonce 0") and error.retry_after_us
        place.disk.write_error = None
        assert [type(answer) for answer in await phone.post(phone.data(0))] == [Welcome, Ack]

    tell(tmp_path, story)


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

    tell(tmp_path, story)


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
        assert only(Error, answers).code == code
        assert only(Ack, answers).marks[0].upto == 2
        (kept,) = place.aside()
        assert (kept["code"], kept["device"], kept["peer"]) == (code, "phone", "10.0.0.1")
        assert place.service.metrics.refused.values[(code,)] == 1
        assert [entry.first for entry in place.logged()] == [0, 1]

    tell(tmp_path, story, limits=GatewayLimits(device_streams=1))


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
        assert only(Ack, answers).marks[0].upto == 3

    tell(tmp_path, story)


def test_strangers_and_the_revoked_are_refused(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        stranger = Phone(place, "phone", "guess")
        error = only(Error, await stranger.post(stranger.data(0)))
        assert (error.code, error.retry_after_us) == ("G523", None)
        assert only(Error, await Phone(place, "phone", "").send(phone.data(0))).code == "G575"
        assert only(Error, await phone.post(versions=(99,))).code == "G577"
        await phone.post(phone.data(0))
        place.service.stores.enrolment.revoke("phone", now_us=place.now_us)
        assert only(Error, await phone.send(phone.data(1))).code == "G524"
        assert only(Error, await phone.post(phone.data(1))).code == "G524"
        assert [entry.first for entry in place.logged()] == [0]

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("an unknown device", "G523"),
        ("a revoked credential", "G524"),
        ("a wrong schema", "G573"),
        ("a frame of an epoch that is over, played again", "S411"),
        ("a frame from the future", "S412"),
        ("an oversized frame", "S407"),
    ],
)
def test_what_is_refused_is_answered_with_its_code_counted_and_kept_aside(tmp_path: Path, what: str, code: str) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.service.stores.plans.publish("peir", b"plan", schemas={"peir/fixes": ["00" * 8]})
        await phone.post(phone.data(0))
        offending = phone.data(1, payload=b"whose bytes are looked at")
        match what:
            case "an unknown device":
                phone = Phone(place, "nobody", "a guess")
            case "a revoked credential":
                place.service.stores.enrolment.revoke("phone", now_us=place.now_us)
            case "a wrong schema":
                offending = phone.data(1, schema=b"another!", payload=b"whose bytes are looked at")
            case "a frame of an epoch that is over, played again":
                ended, phone.epoch = phone.epoch, Epoch(2, b"epoch  2")
                await phone.post(phone.data(0))
                offending = phone.data(1, epoch=ended, payload=b"whose bytes are looked at")
            case "a frame from the future":
                offending = phone.data(0, epoch=Epoch(9, b"epoch  9"), payload=b"whose bytes are looked at")
            case _:
                offending = phone.data(1, payload=b"whose bytes are looked at" * 1000)
        before = len(place.logged())
        answers = await phone.post(offending)
        assert only(Error, answers).code == code
        assert place.service.metrics.refused.values[(code,)] == 1
        (kept,) = place.aside()
        sample = base64.b64decode(kept["sample"])
        assert kept["code"] == code and b"whose bytes are looked at" in sample
        # A credential may be somebody's: it is kept for nobody to read.
        assert phone.credential.encode() not in sample
        assert len(place.logged()) == before

    tell(tmp_path, story, limits=GatewayLimits(frame_bytes=10_000))


def test_bytes_that_are_no_frame_end_the_conversation_after_what_was_sound(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        good, bad = encode(phone.data(0)), bytearray(encode(phone.data(1)))
        bad[-3] ^= 1
        reply = await place.exchange.turn(phone.link, encode(phone.hello()) + good + bytes(bad))
        assert [type(frame) for frame in reply.frames] == [Welcome, Ack, Error] and reply.over
        assert only(Error, reply.frames).code == "S405"
        assert place.aside()[0]["size_bytes"] == len(bad)

    tell(tmp_path, story)


def test_frames_that_only_a_gateway_sends_end_the_conversation(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        reply = await place.exchange.turn(
            phone.link, encode_all([phone.hello(), phone.data(0), Moved("http://evil"), phone.data(1)])
        )
        assert reply.over and only(Error, reply.frames).code == "G576"
        assert only(Ack, reply.frames).marks[0].upto == 1

    tell(tmp_path, story)


def test_a_device_that_sends_too_fast_or_to_a_busy_gateway_keeps_its_data(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        error = only(Error, await phone.send(phone.data(1, payload=bytes(5000))))
        assert error.code == "G557" and error.retry_after_us
        place.now_us += 10 * SECOND
        assert only(Ack, await phone.send(phone.data(1, payload=bytes(5000)))).marks[0].upto == 2

    tell(tmp_path, story, limits=GatewayLimits(device_bytes_per_s=1000, device_burst_bytes=5200))

    async def busy(place: Place) -> None:
        phone = place.phone("other")
        assert only(Error, await phone.post(phone.data(0))).code == "G556"

    tell(tmp_path, busy, limits=GatewayLimits(pending_bytes=-1))


def test_a_new_start_answers_a_challenge_and_goes_on_in_its_own_epoch(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0, 2))
        phone.epoch, phone.token = Epoch(2, b"epoch  2"), b""
        challenged = await phone.send(phone.hello(), phone.data(0))
        assert only(Welcome, challenged).challenge
        assert [type(answer) for answer in await phone.post(phone.data(0))] == [Welcome, Ack]
        assert [(entry.epoch, entry.first) for entry in place.logged()] == [(0, 0), (1, 0)]

    tell(tmp_path, story)


def test_two_live_copies_are_held_back_until_somebody_decides(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        clone = Phone(place, phone.name, phone.credential)
        clone.token, clone.greetings = phone.token, phone.greetings
        await phone.post(phone.data(1))
        assert only(Error, await clone.post(clone.data(1), nonce=b"clone's")).code == "S417"
        assert only(Error, await phone.post(phone.data(2))).code == "S417"
        enrolment = place.service.stores.enrolment
        found = enrolment.find("phone")
        assert found is not None and found.quarantined_us == place.now_us
        enrolment.quarantine("phone", now_us=None)
        assert only(Ack, await phone.post(phone.data(2))).marks[0].upto == 3

    tell(tmp_path, story)


def test_a_newer_connection_displaces_the_older(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        await phone.post(phone.data(0))
        old = phone.link
        await phone.post(phone.data(1))
        phone.link = old
        assert only(Error, await phone.send(phone.data(2))).code == "G575"
        assert len(place.logged()) == 2

    tell(tmp_path, story)
