"""The cloud side as real processes, for tests that kill them: supervisors, their gateway and Spark; a device's view."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from catchment.cloud.status import Status, truth
from catchment.gateway.stores import open_downlink
from catchment.sync.codecs.codec import codec
from tests.thread.processes import CATCHMENT, wait_until
from tests.thread.program import Total

PROGRAM = Path(__file__).with_name("program.py")
SPARK_S = 120.0  # a session starts in 3 s; on a machine that does three other things, in many times that
READINGS = 600


class Cloud:
    """`catchment run`: a supervisor, its gateway and its Spark."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        self.arguments = arguments
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.said = data.with_suffix(".journal")
        self._process: subprocess.Popen[bytes] | None = None
        self._standby: subprocess.Popen[bytes] | None = None

    def start(self) -> Cloud:
        self._process = self._run()
        return self

    def stand_by(self) -> None:
        """Start another supervisor, which waits."""
        self._standby = self._run("--standby")
        wait_until(lambda: self._standby is not None and self.truth().standbys == [self._standby.pid])

    def fall_over(self) -> None:
        """End the supervisor with kill -9, and go on with the one that stands by."""
        assert self._process is not None and self._standby is not None
        self._process.kill()
        self._process.wait()
        self._process, self._standby = self._standby, None

    def state(self, key: str) -> str:
        """What `catchment state` says of a key."""
        words = [*CATCHMENT, "state", "thread", key, "--data", str(self.data)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def backfilled(self, into: Path) -> tuple[int, int]:
        """What `catchment backfill` computes anew: count and sum."""
        words = [*CATCHMENT, "backfill", str(PROGRAM), "--data", str(self.data), "--into", str(into), "--quick"]
        subprocess.run(words, check=True, capture_output=True)
        downlink = open_downlink(into)
        (last,) = downlink.pending("phone", "ada", {}, bytes_max=1 << 20)
        downlink.close()
        ((_, _, count, total),) = codec(last.codec).decode(Total.schema, last.payload)
        return count, total

    def truth(self) -> Status:
        """What `catchment status` says of the program."""
        return truth(self.data / "programs" / "thread")

    def _run(self, *more: str) -> subprocess.Popen[bytes]:
        words = ["run", str(PROGRAM), "--data", str(self.data), "--port", str(self.port), "--quick"]
        with self.said.open("ab") as journal:
            return subprocess.Popen([*CATCHMENT, *words, *self.arguments, *more], stdout=journal, stderr=journal)

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

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """Spark can write no byte more, as on a full disk."""
        (java,) = self.children("java")
        resource.prlimit(java, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        yield
        resource.prlimit(java, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def stop(self, *words: str) -> int:
        """`catchment stop`; what the supervisor ended with."""
        assert self._process is not None
        subprocess.run([*CATCHMENT, "stop", "--data", str(self.data), "--within", "120", *words], check=True)
        return self._process.wait(60)


def recording(path: Path) -> tuple[int, int]:
    """Half a minute of ada's meter, twenty readings a second; the count and the sum of the good ones."""
    chance = random.Random(3)
    amounts = [chance.randint(-5, 20) for _ in range(READINGS)]
    start_us = 1_700_000_000_000_000
    lines = [f"{start_us + 50_000 * n},{amount}\n" for n, amount in enumerate(amounts)]
    path.write_text("at,amount\n" + "".join(lines))
    good = [amount for amount in amounts if amount >= 0]
    return len(good), sum(good)


class Received:
    """What has come back to the device."""

    def __init__(self, data: Path, expected: tuple[int, int]) -> None:
        self._data = data
        self.expected = expected

    def __call__(self) -> tuple[int, int]:
        words = [*CATCHMENT, "device", "results", "--data", str(self._data), "--stream", "totals"]
        lines = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
        rows = [json.loads(line)["row"] for line in lines]
        return (rows[-1]["count"], rows[-1]["total"]) if rows else (0, 0)

    def grows(self) -> None:
        """Wait until more has come back than there was, if there is more to come."""
        before = self()[0]
        wait_until(lambda: self()[0] > before or self() == self.expected, SPARK_S)

    def comes(self) -> None:
        """Wait until all has come back."""
        wait_until(lambda: self() == self.expected, SPARK_S)
