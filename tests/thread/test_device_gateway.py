"""A real device and a real gateway, killed at any moment: everything that was read is in the log once and in order."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.gateway.downlink import Keep, Mark, Result, to_user
from catchment.gateway.log import Kind
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.plan.build import build
from catchment.plan.physical import Plan
from catchment.program.program import Program
from catchment.program.types import Row
from catchment.sync.codecs import codec
from tests.thread.device_program import carried
from tests.thread.processes import Device, Gateway, is_seamless, logged, rows_of, wait_until
from tests.thread.program import thread

pytestmark = pytest.mark.process
BEGIN_US = 1_700_000_000_000_000


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    running = Gateway(tmp_path / "gateway").start()
    yield running
    running.stop()


def recording(path: Path, count: int) -> list[Row]:
    """A reading a second, some of them bad; returns the good ones."""
    chance = random.Random(7)
    rows = [("ada", BEGIN_US + n * 1_000_000, chance.randint(-3, 20)) for n in range(count)]
    path.write_text("at,amount\n" + "".join(f"{at},{amount}\n" for _, at, amount in rows))
    return [row for row in rows if row[2] >= 0]


def device_of(tmp_path: Path, gateway: Gateway, program: Program, *arguments: str) -> tuple[Device, Plan]:
    plan = build(program)
    (tmp_path / "plan.json").write_bytes(document.write(plan))
    words = ["--gateway", gateway.url, "--token", gateway.token(program=program.name), "--name", "phone"]
    return Device(tmp_path / "phone", *words, "--plan", str(tmp_path / "plan.json"), *arguments), plan


def kill_again_and_again(device: Device, moments: random.Random) -> None:
    """At any moment of its start, and at any moment of its work."""
    for number in range(8):
        begun = len(device.events("started")) if number else 0
        device.start()
        if number % 4:
            device.wait_for("started", begun + 1)
        time.sleep(moments.uniform(0.0, 0.5))
        device.kill()


def test_a_device_killed_again_and_again_sends_each_reading_once(tmp_path: Path, gateway: Gateway) -> None:
    good = recording(tmp_path / "r.csv", 4000)
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=1000"
    device, plan = device_of(tmp_path, gateway, thread, "--sensor", sensor)
    kill_again_and_again(device, random.Random(11))
    device.finish()
    assert rows_of(gateway.data, plan, "readings") == good
    assert is_seamless(gateway.data)
    epochs = {entry.epoch_counter for entry in logged(gateway.data) if entry.kind == Kind.DATA}
    assert len(epochs) > 2, "it was killed in between"


def test_state_on_a_device_that_is_killed_counts_each_reading_once(tmp_path: Path, gateway: Gateway) -> None:
    good = recording(tmp_path / "r.csv", 3000)
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=1000,then=done"
    device, plan = device_of(tmp_path, gateway, carried, "--sensor", sensor)
    kill_again_and_again(device, random.Random(5))
    device.finish()
    total = 0
    expected = []
    for count, (user, at, amount) in enumerate(good, start=1):
        total += amount
        expected.append((user, at, count, total))
    assert rows_of(gateway.data, plan, "sums") == expected
    assert is_seamless(gateway.data)


def test_a_gateway_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path, gateway: Gateway) -> None:
    good = recording(tmp_path / "r.csv", 4000)
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=1000"
    device, plan = device_of(tmp_path, gateway, thread, "--sensor", sensor)
    device.start()
    moments = random.Random(3)
    for _ in range(3):
        time.sleep(moments.uniform(0.4, 1.0))
        gateway.kill()
        time.sleep(moments.uniform(0.0, 0.3))
        gateway.start()
    assert device.stop() == 0
    device.finish()
    assert rows_of(gateway.data, plan, "readings") == good
    assert is_seamless(gateway.data)


def append_results(data: Path, plan: Plan, rows: list[Row], epoch: int) -> None:
    """As a sink in the cloud appends."""
    stream = plan.sync("totals")
    payload = codec("msgpack").encode(plan.schemas[stream.schema], rows)
    store = open_downlink(data)
    try:
        store.append(
            Mark(plan.program, "totals/0", 1, epoch, str(epoch)),
            [
                Result(
                    to_user("ada"),
                    f"{plan.program}/totals",
                    bytes.fromhex(stream.schema),
                    "msgpack",
                    payload,
                    len(rows),
                )
            ],
            keep=Keep.ALL,
            now_us=epoch,
        )
    finally:
        store.close()


def test_results_reach_a_device_that_is_killed_each_once(tmp_path: Path, gateway: Gateway) -> None:
    recording(tmp_path / "r.csv", 50)
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=max"
    device, plan = device_of(tmp_path, gateway, carried, "--sensor", sensor, "--poll", "50ms")
    moments = random.Random(2)
    sent: list[Row] = []
    for epoch in range(1, 9):
        device.start()
        for part in range(5):
            rows = [("ada", BEGIN_US + epoch, epoch * 10 + part, n) for n in range(3)]
            append_results(gateway.data, plan, rows, epoch * 10 + part)
            sent += rows
            time.sleep(moments.uniform(0.0, 0.15))
        device.kill()
    device.start()
    device.wait_for_start()
    wait_until(lambda: len(results_of(device)) >= len(sent))
    assert device.stop() == 0
    assert [tuple(row.values()) for row in results_of(device)] == sent


def results_of(device: Device) -> list[dict[str, object]]:
    import json

    from tests.thread.processes import CATCHMENT

    words = [*CATCHMENT, "device", "results", "--data", str(device.data)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    return [json.loads(line)["row"] for line in ran.stdout.splitlines()]


def test_a_device_that_is_told_to_stop_sends_what_it_has(tmp_path: Path, gateway: Gateway) -> None:
    good = recording(tmp_path / "r.csv", 500)
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=max"
    device, plan = device_of(tmp_path, gateway, thread, "--sensor", sensor)
    device.start()
    wait_until(lambda: device.journal.exists() and "started" in device.said())
    wait_until(lambda: any(entry.kind == Kind.DATA for entry in logged(gateway.data)))
    assert device.stop() == 0
    assert rows_of(gateway.data, plan, "readings") == good
    (stopped,) = device.events("stopped")
    assert stopped["backlog"] == 0


def test_a_device_that_is_told_to_stop_waits_no_longer_for_a_gateway_that_is_mute(
    tmp_path: Path, gateway: Gateway
) -> None:
    recording(tmp_path / "r.csv", 4000)
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=100"
    device, _ = device_of(tmp_path, gateway, thread, "--sensor", sensor, "--stop-within", "2s")
    device.start()
    device.wait_for_start()
    gateway.stop()
    with socket.create_server(("127.0.0.1", gateway.port)) as mute:
        mute.settimeout(30)
        heard, _ = mute.accept()
        with heard:
            assert device.stop(within_s=20) == 0


def test_a_device_gets_its_plan_from_the_gateway_and_keeps_it_for_starts_without_one(
    tmp_path: Path, gateway: Gateway
) -> None:
    from catchment.gateway.stores import open_plans

    good = recording(tmp_path / "r.csv", 200)
    plan = build(thread)
    open_plans(gateway.data).publish("thread", document.write(plan))
    words = ["--gateway", gateway.url, "--token", gateway.token(), "--name", "phone"]
    sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=20000"
    device = Device(tmp_path / "phone", *words, "--sensor", sensor)
    device.start()
    wait_until(lambda: "started" in device.said())
    device.kill()
    gateway.kill()
    device.start()
    device.wait_for("started", 2)
    device.kill()
    gateway.start()
    device.finish()
    assert rows_of(gateway.data, plan, "readings") == good


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_over_tls_a_device_speaks_only_to_a_gateway_that_it_trusts(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    words += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run(words.split(), check=True, capture_output=True)
    gateway = Gateway(tmp_path / "gateway", "--certificate", str(certificate), "--key", str(key)).start()
    try:
        good = recording(tmp_path / "r.csv", 100)
        sensor = f"meter=replay:{tmp_path / 'r.csv'},speed=max"
        device, plan = device_of(tmp_path, gateway, thread, "--sensor", sensor)
        device.start()
        wait_until(lambda: "enrolment waits" in device.said())
        device.kill()
        device.arguments = (*device.arguments, "--ca", str(certificate))
        device.finish()
        assert rows_of(gateway.data, plan, "readings") == good
    finally:
        gateway.stop()
