"""Many real devices and a real gateway, killed, cut off and filled up at random: every element is in the log once.

`make soak MINUTES=10` runs 200 devices for that long; without it, it is six devices and a few seconds. A device's meter
counts, so its amounts in the log must be 0, 1, 2, … without a hole, and nothing may be left in its outbox.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.gateway.log import Kind
from catchment.plan import document
from catchment.plan.build import build
from catchment.sync.codecs import codec
from tests.thread.processes import Device, Gateway, is_seamless, logged, wait_until
from tests.thread.program import thread

pytestmark = [pytest.mark.soak, pytest.mark.process]
MINUTES = float(os.environ.get("CATCHMENT_SOAK_MINUTES", "0"))
DEVICES = 200 if MINUTES else 4
SECONDS = MINUTES * 60 or 8.0
SEED = int(os.environ.get("CATCHMENT_SOAK_SEED", "1"))
SETTLE_S = 60.0 + 2.0 * DEVICES


class Fleet:
    """The processes, and what may happen to them."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.chance = chance
        self.gateway = Gateway(home / "gateway").start()
        plan = build(thread)
        self.schema = plan.schemas[plan.sync("readings").schema]
        (home / "plan.json").write_bytes(document.write(plan))
        self.devices: list[Device] = []
        self.happened: Counter[str] = Counter()
        pace = "500ms" if MINUTES else "100ms"
        for number in range(DEVICES):
            words = ["--gateway", self.gateway.url, "--token", self.gateway.token(user=f"user{number}")]
            words += ["--name", f"device{number}", "--plan", str(home / "plan.json")]
            words += ["--sensor", f"meter=generate:every={pace}", "--poll", "1s", "--stop-within", "60s"]
            self.devices.append(Device(home / f"device{number}", *words).start())

    def kill_device(self) -> None:
        device = self.chance.choice(self.devices)
        device.kill()
        device.start()

    def kill_gateway(self) -> None:
        self.gateway.kill()
        time.sleep(self.chance.uniform(0.0, 1.0))
        self.gateway.start()

    def disconnect(self) -> None:
        """For the devices a gateway that is gone for a while and a link that is down are the same."""
        self.gateway.stop()
        time.sleep(self.chance.uniform(0.5, 2.0 if not MINUTES else 10.0))
        self.gateway.start()

    def fill_the_disk(self) -> None:
        """The gateway must refuse before its disk is full: leave less than it keeps in reserve, then free it."""
        free_mb = shutil.disk_usage(self.gateway.data).free // (1 << 20)
        self.gateway.stop()
        reserve = self.gateway.arguments
        self.gateway.arguments = ("--reserve-mb", str(free_mb + 1000))
        # It is never ready once an upload came before this asks.
        self.gateway.start(until="/health")
        time.sleep(self.chance.uniform(0.5, 2.0))
        self.gateway.stop()
        self.gateway.arguments = reserve
        self.gateway.start()

    def amounts(self) -> dict[str, list[int]]:
        """What the log holds of each device, in its order."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for entry in logged(self.gateway.data):
            if entry.kind == Kind.DATA and entry.count:
                rows = codec(entry.codec).decode(self.schema, bytes(entry.payload))
                found[entry.device] += [row[2] for row in rows]
        return dict(found)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    running = Fleet(tmp_path, random.Random(SEED))
    yield running
    for device in running.devices:
        device.kill()
    running.gateway.kill()


def test_every_element_is_in_the_log_once(fleet: Fleet) -> None:
    chance = fleet.chance
    # Devices die often, the rest now and then.
    events: list[Callable[[], None]] = [fleet.kill_device] * 12
    events += [fleet.kill_gateway] * 2 + [fleet.disconnect, fleet.fill_the_disk]
    must: list[Callable[[], None]] = [fleet.fill_the_disk, fleet.kill_gateway, fleet.disconnect, fleet.kill_device]
    started = said = time.monotonic()
    while must or time.monotonic() < started + SECONDS:
        event = must.pop() if must else chance.choice(events)
        event()
        fleet.happened[event.__name__] += 1
        time.sleep(chance.uniform(0.1, 0.6))
        if time.monotonic() > said + 30:
            said = time.monotonic()
            print(f"[soak] {said - started:.0f} s of {SECONDS:.0f} s: {dict(fleet.happened)}", flush=True)

    wait_until(lambda: len(fleet.amounts()) == DEVICES, SETTLE_S)
    statuses = [device.stop(SETTLE_S) for device in fleet.devices]
    assert statuses == [0] * DEVICES
    found = fleet.amounts()
    assert is_seamless(fleet.gateway.data)
    for device in fleet.devices:
        name = device.data.name
        (last,) = device.events("stopped")[-1:]
        assert last["backlog"] == 0, f"{name} still had {last['backlog']}"
        assert found[name] == list(range(len(found[name]))), f"{name} lost or repeated something"
    print(f"[soak] {sum(map(len, found.values()))} elements of {DEVICES} devices, once each: {dict(fleet.happened)}")
