"""The thread through the whole system: sensor, device, frames, log, Spark and back, each process killed in turn.

A device replays a recording; its good readings are summed per user on Spark; the sum comes back to the device. While
that goes on, every process is ended with kill -9, one after the other. At the end the device holds the exact sum.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.cli import main
from catchment.cloud.cluster import Cluster
from catchment.cloud.readers import drop, readings
from catchment.errors import ProgramError
from tests.thread.cloud import SPARK_S, Cloud, Received, recording
from tests.thread.processes import Device, is_seamless, keep_log, wait_until

pytestmark = [pytest.mark.process, pytest.mark.spark]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    running = Cloud(tmp_path / "cloud").start()
    yield running
    assert running.stop() == 0, running.said.read_text()[-3000:]
    assert running.truth().state == "stopped"


def sending(folder: Path, cloud: Cloud) -> tuple[Device, Received]:
    """A device that replays a recording to the cloud, and what comes back."""
    expected = recording(folder / "meter.csv")
    wait_until(cloud.data.joinpath("enrolment.db").exists, SPARK_S)
    keep_log(cloud.data)
    words = ["--gateway", f"http://127.0.0.1:{cloud.port}", "--name", "phone", "--token", cloud.token()]
    sensor = f"meter=replay:{folder / 'meter.csv'},times=live"
    device = Device(folder / "phone", *words, "--poll", "200ms", "--sensor", sensor).start()
    return device, Received(folder / "phone", expected)


def test_kill_9_anywhere_and_the_sum_is_still_right(
    tmp_path: Path, cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    device, total = sending(tmp_path, cloud)
    cloud.stand_by()
    total.grows()
    assert main(["status", "--data", str(cloud.data)]) == 0
    assert "stands by, to take over" in capsys.readouterr().out

    def kill_device() -> None:
        device.kill()
        device.start()

    victims: list[Callable[[], None]] = [
        kill_device,
        lambda: cloud.kill_child("gateway run"),
        lambda: cloud.kill_child("java"),
        cloud.fall_over,
        kill_device,
    ]
    for kill in victims:
        kill()
        time.sleep(1.0)
    wait_until(lambda: cloud.truth().state == "running", SPARK_S)
    assert cloud.truth().generation >= 2, "the standby has taken over"
    with cloud.full_disk():
        wait_until(lambda: cloud.truth().queries != {"totals@cloud": "running"}, SPARK_S)
    total.comes()
    assert device.stop() == 0, device.said()
    assert total() == total.expected, "and it stays"
    assert is_seamless(cloud.data)
    assert cloud.backfilled(tmp_path / "again") == total.expected, "beside what runs, from the same log"
    assert {one.reader: one.running for one in readings(cloud.data / "log")} == {
        "thread.totals.cloud": True,  # and the backfill has let go
        "witness": False,
    }
    with pytest.raises(ProgramError, match="E058"):
        drop(cloud.data / "log", "thread.totals.cloud")
    count, amount = total.expected
    known = {"totals/running": [[["ada"], {"count": count, "total": amount}]]}
    wait_until(lambda: json.loads(cloud.state("ada")) == known, SPARK_S)  # results come before their batch's last note


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "spark", workers=2, cores=1, memory_mb=1024) as running:
        yield running


def test_executors_and_workers_of_a_cluster_are_killed_or_leave_and_the_sum_is_still_right(
    tmp_path: Path, cluster: Cluster
) -> None:
    cloud = Cloud(tmp_path / "cloud", "--master", cluster.url, "--executors", "2:2").start()
    try:
        device, total = sending(tmp_path, cloud)
        total.grows()
        (executor,) = cluster.workers[0].executors()
        os.kill(executor, signal.SIGKILL)
        total.grows()
        cluster.workers[1].kill()
        total.grows()
        cluster.add_worker()
        total.grows()
        cluster.workers[0].leave()
        wait_until(lambda: not cluster.workers[0].executors(), SPARK_S)
        assert cluster.workers[2].executors(), "what it did goes on there"
        total.comes()
        assert device.stop() == 0, device.said()
    finally:
        ended = cloud.stop("--drain")
    assert ended == 0, cloud.said.read_text()[-3000:]
    assert cloud.truth().state == "stopped"
    assert is_seamless(cloud.data)
