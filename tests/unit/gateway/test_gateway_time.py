"""Time at the sync endpoint: offsets, promises and presence are decided once, and logged."""

from __future__ import annotations

from pathlib import Path

from catchment.gateway.log import Kind
from catchment.sync.frame import Ack, Beat, Bye, Welcome
from catchment.sync.parts import Clock, Offset, Promise
from tests.unit.gateway.kit import BOOT, NOW, SECOND, Place, only, tell


def test_event_time_is_fixed_by_the_offset_that_the_log_holds(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        phone.reading_us = 50 * SECOND
        # Bridged: the device placed readings by a wall clock that is an hour ahead.
        bridge = NOW - 50 * SECOND + 3600 * SECOND
        early = Clock(BOOT, 10 * SECOND, 5 * SECOND, bridge, bridge)
        answers = await phone.post(phone.data(0, 2, clock=early, promise_us=15 * SECOND + bridge))
        offset = only(Welcome, answers).offset
        assert offset is not None
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

    tell(tmp_path, story)


def test_a_better_offset_is_a_new_segment_and_the_old_one_still_counts_for_what_used_it(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.now_us = NOW + 3 * SECOND
        first = only(Welcome, await phone.post()).offset
        assert first is not None
        # This message took three seconds less on its way.
        place.now_us = NOW + 10 * SECOND
        ack = only(Ack, await phone.send(Beat(BOOT, 10 * SECOND)))
        assert ack.offset == Offset(BOOT, 1, NOW, SECOND)
        await phone.send(phone.data(0, clock=Clock(BOOT, 5 * SECOND, 0, first.offset_us)))
        (entry,) = place.logged()
        assert (entry.shift_us, entry.clock_segment, entry.base_us) == (0, 0, NOW + 8 * SECOND)

    tell(tmp_path, story)


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

    tell(tmp_path, story)


def test_presence_is_logged_when_a_device_comes_and_when_it_stays_away(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        phone = place.phone()
        place.service.note(place.service.presence.connect("phone", "ada", now_us=place.now_us))
        await phone.post(phone.data(0), Bye("asleep", sleep_us=SECOND))
        await phone.post(phone.data(1))
        assert [entry.count for entry in place.logged(Kind.PRESENCE)] == [1]

    tell(tmp_path, story)
