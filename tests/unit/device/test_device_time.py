"""Time on a device whose clocks cannot be trusted: reboots, sleep, clocks that jump, weeks without a gateway."""

from itertools import pairwise

from catchment.device.timekeeper import BRIDGE_ERROR_US, PATIENT_US, UNKNOWN_US, Timekeeper
from catchment.gateway.log.entry import NO_INSTANT
from catchment.sync.frame import Offset
from tests.thread.program import thread
from tests.unit.device.device_world import BEGIN_US, DAY_US, HOUR_US, MINUTE_US, SECOND_US, Machine, World

GENERATED = "meter=generate:seed=3,every=1s"
NEAR_US = 60_000
"""How long messages are on their way here, and so how well a gateway can know."""


def spacings(world: World) -> set[int]:
    moments = world.gateway.moments(world.plan, "readings")
    return {after - before for before, after in pairwise(moments)}


def test_spacing_is_exact_whatever_the_wall_clock_does() -> None:
    world = World(thread, GENERATED)
    world.start()
    for error_us in (0, 5 * HOUR_US, -7 * HOUR_US, 400 * DAY_US):
        world.machine.wall_error_us = error_us
        world.run(20 * SECOND_US)
    # The first reading came before the first answer, and is placed by the bridge until it is logged.
    assert spacings(world) <= {SECOND_US}
    assert abs(world.gateway.moments(world.plan, "readings")[0] - BEGIN_US) < NEAR_US


def test_a_machine_that_slept_does_not_make_up_readings_and_places_the_next_one_rightly() -> None:
    world = World(thread, GENERATED)
    world.start()
    world.run(10 * SECOND_US)
    world.machine.true_us += 8 * HOUR_US
    world.run(10 * SECOND_US)
    moments = world.gateway.moments(world.plan, "readings")
    gaps = [after - before for before, after in pairwise(moments)]
    assert [gap for gap in gaps if gap > 2 * SECOND_US] == [max(gaps)]
    assert 8 * HOUR_US <= max(gaps) <= 8 * HOUR_US + 2 * SECOND_US
    assert abs(moments[-1] - world.machine.true_us) < 2 * SECOND_US


def test_a_reboot_offline_is_bridged_by_what_the_wall_clock_was_found_to_be_wrong_by() -> None:
    world = World(thread, GENERATED, machine=Machine(wall_error_us=9 * HOUR_US))
    world.start()
    world.run(30 * SECOND_US)
    world.gateway.away = True
    world.run(10 * SECOND_US)
    world.kill()
    world.machine.reboot(off_us=2 * HOUR_US)
    agent = world.start()
    assert agent.keeper.bridged
    assert agent.keeper.error_us == BRIDGE_ERROR_US
    before_us = world.machine.true_us
    assert abs(agent.keeper.place(world.machine.reading_us()) - before_us) < NEAR_US
    world.run(MINUTE_US)
    world.gateway.away = False
    world.run(10 * MINUTE_US)
    assert not agent.keeper.bridged
    moments = world.gateway.moments(world.plan, "readings")
    assert moments == sorted(moments)
    assert len([at for at in moments if before_us - NEAR_US <= at < before_us + MINUTE_US]) >= 60
    assert not [at for at in moments if before_us - 2 * HOUR_US + NEAR_US < at < before_us - NEAR_US]


def test_a_boot_that_never_met_a_gateway_is_placed_by_its_wall_clock_once_a_later_one_does() -> None:
    world = World(thread, GENERATED, machine=Machine(wall_error_us=-2 * DAY_US))
    world.start()
    world.run(20 * SECOND_US)
    world.gateway.away = True
    world.kill()
    world.machine.reboot(off_us=HOUR_US)
    lonely_us = world.machine.true_us
    world.start()
    world.run(MINUTE_US)
    world.kill()
    world.machine.reboot(off_us=3 * HOUR_US)
    world.start()
    world.run(MINUTE_US)
    world.gateway.away = False
    world.run(10 * MINUTE_US)
    lonely = [
        (at, entry)
        for entry, rows in world.gateway.logged(world.plan, "readings")
        for at in [rows[0][1] + entry.shift_us]
        if lonely_us - MINUTE_US < at < lonely_us + 2 * MINUTE_US
    ]
    assert lonely, "the boot that met nobody is where it belongs, within a minute"
    assert all(entry.clock_error_us >= MINUTE_US for _, entry in lonely), "and the bound says that it was bridged"


def test_weeks_without_a_gateway_are_placed_to_the_second() -> None:
    # It sleeps, and wakes for a reading every six hours.
    world = World(thread, "meter=generate:seed=3,every=6h")
    world.start()
    world.run(10 * SECOND_US)
    world.gateway.away = True
    for _ in range(21 * 4):
        world.machine.true_us += 6 * HOUR_US - 10 * SECOND_US
        world.run(10 * SECOND_US)
    world.gateway.away = False
    world.run(15 * MINUTE_US)
    moments = world.gateway.moments(world.plan, "readings")
    assert len(moments) == 21 * 4 + 1
    assert spacings(world) == {6 * HOUR_US}
    assert abs(moments[-1] - BEGIN_US - 21 * DAY_US) < 2 * NEAR_US


def test_device_and_log_agree_to_the_microsecond_once_a_gateway_has_spoken() -> None:
    world = World(thread, GENERATED, machine=Machine(wall_error_us=HOUR_US))
    world.start()
    world.run(MINUTE_US)
    shifts = [entry.shift_us for entry, _ in world.gateway.logged(world.plan, "readings")]
    assert shifts[0] < -HOUR_US + MINUTE_US, "what was bridged is put right in the log"
    assert set(shifts[1:]) == {0}


def test_a_promise_is_never_ahead_of_an_element_that_follows() -> None:
    world = World(thread, "meter=generate:seed=3,every=7s", machine=Machine(wall_error_us=HOUR_US))
    world.start()
    world.run(5 * MINUTE_US)
    promised = NO_INSTANT
    elements = 0
    for entry, rows in world.gateway.logged(world.plan, "readings"):
        moments = [row[1] + entry.shift_us for row in rows]
        assert all(at >= promised for at in moments)
        elements += len(moments)
        promised = max(promised, entry.promise_us)
    assert elements >= 40
    assert world.machine.true_us - max(world.gateway.promises("readings")) < 3 * MINUTE_US


def test_a_quiet_stream_goes_on_promising() -> None:
    # Nothing passes `amount >= 0` of a sensor that has nothing to say.
    world = World(thread, "meter=generate:seed=3,every=1s,count=3")
    world.start()
    world.run(20 * MINUTE_US)
    assert len(world.gateway.rows(world.plan, "readings")) == 3
    promises = world.gateway.promises("readings")
    assert promises == sorted(promises)
    assert world.machine.true_us - promises[-1] < 4 * MINUTE_US


# -- the keeper alone -------------------------------------------------------------------------------------------------


def keeper(memory: bytes = b"", *, boot: bytes = b"one", reading_us: int = 0, wall_us: int = BEGIN_US) -> Timekeeper:
    return Timekeeper(memory, boot=boot, reading_us=reading_us, wall_us=wall_us)


def test_a_first_boot_knows_nothing_but_its_wall_clock_and_says_so() -> None:
    first = keeper()
    assert first.place(5) == BEGIN_US + 5
    assert first.bridged
    assert first.error_us == UNKNOWN_US
    assert first.stamp().offset_us == BEGIN_US
    assert first.stamp(recorded=True).offset_us is None


def test_a_restart_within_a_boot_goes_on_with_the_same_session_and_offset() -> None:
    first = keeper()
    first.learn(Offset(first.session, 0, BEGIN_US + 77, 9), reading_us=10, wall_us=BEGIN_US + 10)
    first.place(20)
    again = keeper(first.memory(), reading_us=30, wall_us=BEGIN_US + HOUR_US)
    assert again.session == first.session
    assert (again.place(40), again.error_us, again.bridged) == (BEGIN_US + 117, 9, False)


def test_another_boot_is_another_session_and_never_before_the_last() -> None:
    first = keeper()
    last_us = first.place(DAY_US)
    # The clock has no battery: it begins in 1970.
    second = keeper(first.memory(), boot=b"two", reading_us=3, wall_us=3)
    assert second.session != first.session
    assert second.place(3) >= last_us


def test_a_boot_clock_that_went_back_within_a_boot_is_another_session() -> None:
    first = keeper(reading_us=HOUR_US)
    first.place(2 * HOUR_US)
    restored = keeper(first.memory(), reading_us=HOUR_US, wall_us=BEGIN_US + DAY_US)
    assert restored.session != first.session
    again = keeper(restored.memory(), reading_us=HOUR_US + 1, wall_us=BEGIN_US + DAY_US)
    assert again.session == restored.session


def test_an_offset_of_another_session_or_an_older_segment_is_no_news() -> None:
    kept = keeper()
    assert not kept.learn(Offset(b"another", 0, 1, 1), reading_us=0, wall_us=0)
    assert kept.learn(Offset(kept.session, 3, BEGIN_US, 1), reading_us=0, wall_us=BEGIN_US)
    assert not kept.learn(Offset(kept.session, 3, 1, 1), reading_us=0, wall_us=BEGIN_US)
    assert not kept.learn(Offset(kept.session, 2, 1, 1), reading_us=0, wall_us=BEGIN_US)


def test_a_slightly_smaller_offset_waits_until_no_promise_would_be_broken() -> None:
    kept = keeper()
    kept.learn(Offset(kept.session, 0, BEGIN_US, 1), reading_us=0, wall_us=BEGIN_US)
    promised_us = kept.place(SECOND_US)
    kept.learn(Offset(kept.session, 1, BEGIN_US - 300_000, 1), reading_us=SECOND_US, wall_us=BEGIN_US)
    assert kept.place(SECOND_US + 200_000) == promised_us + 200_000
    assert kept.place(SECOND_US + 600_000) == promised_us + 300_000
    assert kept.offset_us == BEGIN_US - 300_000


def test_a_large_correction_is_made_at_once() -> None:
    kept = keeper(wall_us=BEGIN_US + DAY_US)
    kept.place(SECOND_US)
    kept.learn(Offset(kept.session, 0, BEGIN_US, 1), reading_us=SECOND_US, wall_us=BEGIN_US + DAY_US)
    assert kept.place(2 * SECOND_US) == BEGIN_US + 2 * SECOND_US
    assert PATIENT_US < DAY_US


def test_the_wall_clocks_claim_is_noted_anew_only_when_it_moved() -> None:
    kept = keeper()
    before = kept.stamp()
    kept.look(reading_us=SECOND_US, wall_us=BEGIN_US + SECOND_US + 500_000)
    assert kept.stamp() == before
    kept.look(reading_us=SECOND_US, wall_us=BEGIN_US + HOUR_US)
    assert kept.stamp().wall_us == BEGIN_US + HOUR_US - SECOND_US
