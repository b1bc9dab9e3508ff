"""Disks that are full, damaged or read-only, streams that are full, elements that cannot be computed."""

import sqlite3
from pathlib import Path

import pytest

import catchment as cm
from catchment.program.sync import Bound
from catchment.sync.outbox import Health, Outbox
from tests.thread.device_program import carried
from tests.thread.program import Reading, thread
from tests.unit.device.device_world import BEGIN_US, MINUTE_US, SECOND_US, Disk, World, recording

GENERATED = "meter=generate:seed=3,every=1s"


class SmallDisk(Disk):
    """A disk that can be made full, and wide again."""

    def __init__(self) -> None:
        super().__init__()
        self.connection: sqlite3.Connection | None = None

    def connect(self) -> sqlite3.Connection:
        self.connection = super().connect()
        return self.connection

    def fill(self) -> None:
        assert self.connection is not None
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count={pages}")

    def clear(self) -> None:
        assert self.connection is not None
        self.connection.execute("PRAGMA max_page_count=1000000")


def test_a_full_disk_holds_nothing_up_and_loses_nothing_when_it_clears() -> None:
    world = World(carried, "meter=generate:seed=3,every=1s,count=400")
    world.disk = disk = SmallDisk()
    agent = world.start()
    world.run(20 * SECOND_US)
    world.gateway.away = True
    world.run(30 * SECOND_US)
    disk.fill()
    world.run(3 * MINUTE_US)
    assert agent.outbox.health.value == "disk full"
    assert agent.ledger.records > 60, "what the disk does not take waits"
    taken = agent.taken
    disk.clear()
    world.gateway.away = False
    world.run(15 * MINUTE_US)
    counted = [row[2] for row in world.gateway.rows(world.plan, "sums")]
    assert agent.taken > taken
    assert agent.outbox.health.value == "working"
    # State waits for progress, which stands a second behind.
    assert counted == list(range(1, len(counted) + 1))
    assert len(counted) >= 399
    assert world.said("outbox")


def test_what_cannot_wait_any_longer_is_given_up_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catchment.device.ledger.WAITING_MAX", 1000)
    world = World(thread, "meter=generate:seed=3,every=10ms")
    world.disk = disk = SmallDisk()
    agent = world.start()
    world.run(SECOND_US)
    world.gateway.away = True
    disk.fill()
    world.run(30 * SECOND_US)
    assert agent.ledger.records <= 1100
    given_up = agent.ledger.given_up
    assert given_up > 0
    disk.clear()
    world.gateway.away = False
    world.run(MINUTE_US)
    logged = len(world.gateway.rows(world.plan, "readings"))
    (lost,) = {entry.lost_refused for entry, _ in world.gateway.logged(world.plan, "readings")[-1:]}
    assert lost == given_up
    assert logged + lost + agent.backlog() == agent.taken


bounded = cm.Program("bounded")


@bounded.stream(at=cm.DEVICE, sync=cm.Sync(outbox=Bound(records=100)))
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """All of them."""
    return device.sensor(Reading, "meter")


@bounded.stream(at=cm.CLOUD)
def kept(readings: cm.Stream[Reading]) -> cm.Stream[Reading]:
    """Somebody reads them."""
    return readings.where(Reading.amount >= 0)


def test_a_recording_without_a_pace_waits_for_room_instead_of_being_refused(tmp_path: Path) -> None:
    path = recording(tmp_path / "r.csv", [BEGIN_US + n for n in range(2_000)])
    world = World(bounded, f"meter=replay:{path},speed=max")
    agent = world.start()
    world.gateway.away = True
    world.run(MINUTE_US)
    assert 50 < agent.taken <= 100
    world.gateway.away = False
    world.run_until(lambda: len(world.gateway.rows(world.plan, "readings")) >= 2_000)
    assert agent.ledger.refused == 0


def test_a_damaged_outbox_is_set_aside_and_the_device_goes_on(tmp_path: Path) -> None:
    world = World(carried, "meter=generate:seed=3,every=1s,count=200")
    path = tmp_path / "outbox.db"

    class Real(Disk):
        def open(self) -> Outbox:
            return Outbox.open(path, fresh_nonce=self.nonce)

    world.disk = Real()
    agent = world.start()
    world.run(30 * SECOND_US)
    agent.outbox.close()
    before = len(world.gateway.rows(world.plan, "sums"))
    body = bytearray(path.read_bytes())
    body[8192:12288] = b"\xff" * 4096
    path.write_bytes(body)
    again = world.start()
    world.run(MINUTE_US)
    assert again.outbox.salvaged is not None
    assert (tmp_path / again.outbox.salvaged.set_aside).exists()
    assert again.outbox.health is Health.WORKING
    assert len(world.gateway.rows(world.plan, "sums")) > before + 50


failing = cm.Program("failing")


@failing.stream(at=cm.DEVICE)
def shares(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """A hundredth part, which the third reading of a generator has: 1 / (n - 2)."""
    return device.sensor(Reading, "meter").select(Reading, amount=(Reading.amount + 100) // (Reading.amount - 2))


@failing.stream(at=cm.CLOUD)
def read(shares: cm.Stream[Reading]) -> cm.Stream[Reading]:
    """Somebody reads them."""
    return shares.where(Reading.amount >= 0)


def test_an_element_that_cannot_be_computed_is_told_and_the_others_go_on() -> None:
    world = World(failing, GENERATED)
    agent = world.start()
    world.run(2 * MINUTE_US)
    assert agent.quarantined == 1
    (told,) = world.said("element quarantined")
    assert "division by zero" in str(told["reason"])
    assert len(world.gateway.rows(world.plan, "shares")) >= 100
