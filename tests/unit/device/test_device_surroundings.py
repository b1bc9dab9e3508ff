"""What a program says of its device's surroundings rules its sensors; what a device has not, nobody waits for."""

from __future__ import annotations

from pathlib import Path

import catchment as cm
from tests.thread.program import thread
from tests.unit.device.device_world import BEGIN_US, MINUTE_US, SECOND_US, World, recording


class Cell(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    amount: cm.Field[int]


class Around(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    indoors: cm.Field[bool]


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


walls = cm.Program("walls")


@walls.stream(at=cm.DEVICE)
def around(device: cm.DeviceSite) -> cm.Stream[Around]:
    """Amounts below ten are heard through a wall."""
    return device.sensor(Cell, "gsm").select(Around, indoors=Cell.amount < 10).changes(Around.indoors)


@walls.stream(at=cm.DEVICE)
def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
    return device.sensor(Fix, "gps", every=cm.adaptive(cm.seconds(5)).unless(device.indoors))


@walls.stream(at=cm.CLOUD)
def known(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
    return fixes


walls.sink(around, "surroundings")
INSIDE_S, OUTSIDE_S = 60, 120


def heard(path: Path) -> Path:
    """Outdoors, a minute later indoors, and another minute later out again."""
    signals = [(0, 30), (INSIDE_S, 5), (OUTSIDE_S, 30), (10_000, 30)]
    path.write_text("at,amount\n" + "".join(f"{BEGIN_US + s * SECOND_US},{amount}\n" for s, amount in signals))
    return path


def read_while(path: Path, *, kill: bool) -> tuple[int, int, int]:
    """How often the GPS was read in each of three minutes."""
    world = World(walls, f"gsm=replay:{heard(path)}", "gps=generate")
    world.start()
    counts = []
    for _ in range(3):
        before = len(world.gateway.rows(world.plan, "fixes"))
        world.run(MINUTE_US // 2)
        if kill:
            world.kill()
            world.start()
        world.run(MINUTE_US // 2)
        counts.append(len(world.gateway.rows(world.plan, "fixes")) - before)
    first, second, third = counts
    return first, second, third


def test_a_sensor_rests_while_the_program_says_that_it_is_indoors(tmp_path: Path) -> None:
    first, second, third = read_while(tmp_path / "r.csv", kill=False)
    assert first >= 10
    assert second <= 2
    assert third >= 10


def test_what_the_program_said_is_remembered_over_a_restart(tmp_path: Path) -> None:
    assert read_while(tmp_path / "r.csv", kill=True)[1] <= 2


def test_a_sensor_that_a_device_does_not_have_keeps_nobody_waiting() -> None:
    world = World(thread, "meter=none")
    world.start()
    world.run(2 * MINUTE_US)
    assert world.gateway.rows(world.plan, "readings") == []
    assert world.gateway.promises("readings")[-1] > world.machine.true_us - MINUTE_US
    assert world.said("sensor failed") == []


def test_a_recording_that_is_played_promises_what_a_live_sensor_would(tmp_path: Path) -> None:
    path = recording(tmp_path / "r.csv", [BEGIN_US, BEGIN_US + 10_000 * SECOND_US])
    world = World(thread, f"meter=replay:{path},speed=10")
    world.start()
    world.run(5 * MINUTE_US)
    played_us = BEGIN_US + 10 * 5 * MINUTE_US
    promised_us = world.gateway.promises("readings")[-1]
    assert played_us - 10 * 2 * MINUTE_US <= promised_us <= played_us
