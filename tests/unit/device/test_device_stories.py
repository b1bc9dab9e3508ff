"""Stories of a device on a clock that jumps: what was read arrives once, in order, at its place in time."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catchment as cm
from catchment.device.remembered import StoredPlan
from catchment.plan import document
from catchment.sync.frame import Pressure
from tests.thread.device_program import carried
from tests.thread.program import Reading, Total, thread
from tests.unit.device.device_world import BEGIN_US, HOUR_US, MINUTE_US, SECOND_US, Machine, World, recording

GENERATED = "meter=generate:seed=3,every=1s"
gathering = cm.Program("gathering")


@gathering.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=1000, within=cm.minutes(1))))
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    return device.sensor(Reading, "meter")


@gathering.stream(at=cm.CLOUD)
def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
    return readings.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))


gathering.deliver(totals, by=Total.user)


def test_what_is_read_is_logged_once_and_in_order() -> None:
    world = World(thread, GENERATED)
    world.start()
    world.run(MINUTE_US)
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) >= 58


def test_a_device_that_is_away_gathers_and_then_sends_everything() -> None:
    world = World(thread, GENERATED)
    world.start()
    world.run(10 * SECOND_US)
    world.gateway.away = True
    world.run(20 * MINUTE_US)
    before = len(world.gateway.rows(world.plan, "readings"))
    world.gateway.away = False
    world.run(10 * MINUTE_US)
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert before <= 11
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 1500


def test_answers_that_are_lost_make_no_element_come_twice() -> None:
    world = World(thread, GENERATED)
    world.start()
    for _ in range(5):
        world.run(7 * SECOND_US)
        world.gateway.deaf = True
        world.run(11 * SECOND_US)
        world.gateway.deaf = False
    world.run(5 * MINUTE_US)
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 300


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9_000_000), st.sampled_from(["kill", "reboot", "away", "deaf", "back"]))))
def test_whatever_happens_every_recorded_reading_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[int, str]]
) -> None:
    count = 60
    path = tmp_path_factory.mktemp("story") / "r.csv"
    recording(path, [BEGIN_US + n * SECOND_US for n in range(count)])
    world = World(carried, f"meter=replay:{path},speed=4,then=done")
    world.start()
    for for_us, what in story:
        world.run(for_us)
        match what:
            case "kill" | "reboot":
                world.kill()
                if what == "reboot":
                    world.machine.reboot(off_us=for_us)
                world.start()
            case "away":
                world.gateway.away = True
            case "deaf":
                world.gateway.deaf = True
            case _:
                world.gateway.away = world.gateway.deaf = False
    world.gateway.away = world.gateway.deaf = False
    world.run_until(lambda: len(world.gateway.rows(world.plan, "sums")) >= count)
    world.run(5 * SECOND_US)
    counted = [row[2] for row in world.gateway.rows(world.plan, "sums")]
    assert counted == list(range(1, count + 1))


def test_a_batch_gathers_on_though_the_device_asks_for_results_in_between() -> None:
    world = World(gathering, "meter=generate:seed=3,every=1s", poll_s=7)
    world.start()
    world.run(10 * MINUTE_US)
    uploads = [entry.count for entry, _ in world.gateway.logged(world.plan, "readings")]
    assert sum(uploads) >= 520
    # The first goes when the connection comes; after that, one a minute.
    assert len(uploads) <= 11


def test_results_enter_the_program_and_stay_to_be_looked_at() -> None:
    world = World(carried, GENERATED, poll_s=5)
    agent = world.start()
    world.gateway.give(world.plan, "totals", [("ada", BEGIN_US, 1, 10), ("ada", BEGIN_US, 2, 20)])
    world.run(10 * SECOND_US)
    world.gateway.give(world.plan, "totals", [("ada", BEGIN_US, 3, 30)])
    world.run(10 * SECOND_US)
    rows = [result.row for result in agent.outbox_results("carried/totals", 0)]
    assert [row[2] for row in rows] == [1, 2, 3]
    context = agent.running.parts.snapshot()["deliver_totals@device"]["time_context"]
    (delivered,) = [name for name in context if name.endswith("/deliver")]
    assert context[delivered]["in"] == [3]
    assert world.gateway.held == {"carried/totals": 3}


def test_a_result_enters_the_program_once_although_the_device_dies() -> None:
    world = World(carried, GENERATED, poll_s=5)
    world.start()
    for number in range(6):
        world.gateway.give(world.plan, "totals", [("ada", BEGIN_US, number, number)])
        world.run(3 * SECOND_US)
        world.kill()
        world.start()
    world.run(20 * SECOND_US)
    assert world.agent is not None
    context = world.agent.running.parts.snapshot()["deliver_totals@device"]["time_context"]
    (delivered,) = [name for name in context if name.endswith("/deliver")]
    assert context[delivered]["in"] == [6]
    assert [r.row[2] for r in world.agent.outbox_results("carried/totals", 0)] == list(range(6))


def test_pressure_slows_adaptive_sensors_down_and_no_others() -> None:
    world = World(thread, GENERATED)
    agent = world.start()
    world.gateway.pressure = Pressure(lag_us=5 * SECOND_US, slow_down=4.0)
    world.run(10 * SECOND_US)
    assert agent.around.slow_down == 4.0
    assert agent.around.row()[5] == 0.75
    # The thread's sensor has a fixed interval, which is its author's word.
    assert agent.taken >= 10


def test_a_plan_that_the_gateway_has_is_followed_without_losing_a_reading(tmp_path: Path) -> None:
    count = 40
    path = recording(tmp_path / "r.csv", [BEGIN_US + n * SECOND_US for n in range(count)])
    world = World(carried, f"meter=replay:{path},speed=2,then=done", poll_s=2)
    world.start()
    world.run(5 * SECOND_US)
    world.gateway.plan = StoredPlan(document.write(world.plan), "second")
    world.run(10 * SECOND_US)
    assert world.agent is not None
    assert world.agent.correspondent is not None
    assert world.agent.correspondent.plan_tag == "second"
    world.kill()
    world.start()
    world.run(5 * MINUTE_US)
    assert world.agent.correspondent.plan_tag == "second"
    assert [row[2] for row in world.gateway.rows(world.plan, "sums")] == list(range(1, count + 1))


def test_a_plan_that_cannot_run_here_is_refused_and_the_old_one_goes_on() -> None:
    world = World(thread, GENERATED)
    world.start()
    world.run(SECOND_US)
    world.gateway.plan = StoredPlan(b"{}", "broken")
    world.run(MINUTE_US)
    assert world.said("plan refused")
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 50


def test_a_machine_whose_wall_clock_lies_places_its_readings_where_they_belong() -> None:
    world = World(thread, GENERATED, machine=Machine(wall_error_us=-3 * HOUR_US))
    world.start()
    world.run(MINUTE_US)
    moments = world.gateway.moments(world.plan, "readings")
    # The gateway's offset holds the way there as an error, and nothing else.
    assert all(abs(at - (BEGIN_US + n * SECOND_US)) <= 50_000 for n, at in enumerate(moments))
