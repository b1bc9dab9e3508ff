"""The thread through the whole system: sensor, device, frames, log, Spark and back, each process killed in turn.

A device replays a recording; its good readings are summed per user on Spark; the sum comes back to the device. While
that goes on, every process is ended with kill -9, one after the other. At the end the device holds the exact sum.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.cloud.lease import held
from tests.thread.processes import CATCHMENT, Device, is_seamless, keep_log, wait_until

pytestmark = [pytest.mark.process, pytest.mark.spark]
PROGRAM = Path(__file__).with_name("program.py")
SPARK_S = 120.0  # a session starts in 3 s; on a machine that does three other things, in many times that
READINGS = 600


class Cloud:
    """`catchment run`: a supervisor, its gateway and its Spark."""

    def __init__(self, data: Path) -> None:
        self.data = data
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.said = data.with_suffix(".journal")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Cloud:
        with self.said.open("ab") as journal:
            self._process = subprocess.Popen(
                [*CATCHMENT, "run", str(PROGRAM), "--data", str(self.data), "--port", str(self.port), "--quick"],
                stdout=journal,
                stderr=journal,
            )
        return self

    def token(self) -> str:
        words = [*CATCHMENT, "gateway", "token", "--data", str(self.data), "--user", "ada", "--program", "thread"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def children(self, words: str) -> list[int]:
        """Processes that the supervisor started whose command line has these words."""
        found = []
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                parent = next(line for line in status.read_text().splitlines() if line.startswith("PPid:"))
                command = status.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
                if self._process is not None and int(parent.split()[1]) == self._process.pid and words in command:
                    found.append(int(status.parent.name))
        return found

    def kill_child(self, words: str) -> None:
        wait_until(lambda: bool(self.children(words)), SPARK_S)
        (child,) = self.children(words)
        os.kill(child, signal.SIGKILL)
        wait_until(lambda: child not in self.children(words), SPARK_S)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        wait_until(lambda: held(self.data / "programs" / "thread") is None)

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    running = Cloud(tmp_path / "cloud").start()
    yield running
    assert running.stop() == 0, running.said.read_text()[-3000:]


def recording(path: Path) -> tuple[int, int]:
    """Readings of ada's meter, twenty a second; the count and the sum of the good ones."""
    chance = random.Random(3)
    amounts = [chance.randint(-5, 20) for _ in range(READINGS)]
    start_us = 1_700_000_000_000_000
    lines = [f"{start_us + 50_000 * n},{amount}\n" for n, amount in enumerate(amounts)]
    path.write_text("at,amount\n" + "".join(lines))
    good = [amount for amount in amounts if amount >= 0]
    return len(good), sum(good)


class Total:
    """What has come back to the device."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def __call__(self) -> tuple[int, int]:
        words = [*CATCHMENT, "device", "results", "--data", str(self._data), "--stream", "totals"]
        lines = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
        rows = [json.loads(line)["row"] for line in lines]
        return (rows[-1]["count"], rows[-1]["total"]) if rows else (0, 0)

    def grows(self) -> None:
        """Wait until more has come back than there was."""
        before = self()[0]
        wait_until(lambda: self()[0] > before, SPARK_S)


def test_kill_9_anywhere_and_the_sum_is_still_right(tmp_path: Path, cloud: Cloud) -> None:
    expected = recording(tmp_path / "meter.csv")
    home = cloud.data / "programs" / "thread"
    wait_until(lambda: cloud.data.joinpath("enrolment.db").exists() and held(home) is not None, SPARK_S)
    keep_log(cloud.data)
    words = ["--gateway", f"http://127.0.0.1:{cloud.port}", "--name", "phone", "--token", cloud.token()]
    sensor = f"meter=replay:{tmp_path / 'meter.csv'},times=live"
    device = Device(tmp_path / "phone", *words, "--poll", "200ms", "--sensor", sensor).start()
    total = Total(tmp_path / "phone")
    total.grows()

    def kill_device() -> None:
        device.kill()
        device.start()

    def kill_supervisor() -> None:
        cloud.kill()
        cloud.start()

    victims: list[Callable[[], None]] = [
        kill_device,
        lambda: cloud.kill_child("gateway run"),
        lambda: cloud.kill_child("java"),
        kill_supervisor,
        kill_device,
    ]
    for kill in victims:
        kill()
        time.sleep(1.0)
    wait_until(lambda: total() == expected, SPARK_S)
    assert device.stop() == 0, device.said()
    assert total() == expected, "and it stays"
    assert is_seamless(cloud.data)
