"""Real processes of a gateway and of devices, for tests that kill them; and what the log holds afterwards."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from catchment.gateway.log import Kind
from catchment.gateway.log.entry import Entry
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.stores import open_enrolment
from catchment.plan.physical import Plan
from catchment.program.types import Row
from catchment.sync.codecs import codec

CATCHMENT = (sys.executable, "-m", "catchment")
PROMPT_S = 60.0


class Gateway:
    """A gateway process, which keeps its port when it is started again."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        self.port = 0
        self.arguments = arguments
        self.scheme = "https" if "--certificate" in arguments else "http"
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def start(self, until: str = "/ready") -> Gateway:
        """Ends when that path answers well."""
        command = [*CATCHMENT, "gateway", "run", "--data", str(self.data), "--port", str(self.port)]
        command += ["--reserve-mb", "1", "--partitions", "1", "--tick", "0.2", *self.arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r":(\d+),", line)
        assert found, line
        self.port = int(found[1])
        wait_until((lambda: self._answers(until)) if self.scheme == "http" else (self.data / "enrolment.db").exists)
        return self

    def token(self, user: str = "ada", program: str = "thread") -> str:
        store = open_enrolment(self.data)
        try:
            now_us = time.time_ns() // 1000
            return store.token(user=user, program=program, now_us=now_us, valid_us=3_600_000_000)
        finally:
            store.close()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.url + path, timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class Device:
    """A device process, which goes on where it was when it is started again."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        self.arguments = arguments
        self.journal = data.with_suffix(".journal")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> Device:
        with self.journal.open("ab") as journal:
            self.process = subprocess.Popen(
                [*CATCHMENT, "device", "run", "--data", str(self.data), *self.arguments, *more], stderr=journal
            )
        return self

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def finish(self, within_s: float = PROMPT_S) -> None:
        """Let it run until all is played and sent."""
        self.start("--until-idle")
        assert self.process is not None
        try:
            assert self.process.wait(within_s) == 0, self.said()
        finally:
            self.process.kill()
            self.process.wait()

    def stop(self, within_s: float = PROMPT_S) -> int:
        """Once it has started: until then a signal ends it as it would end any process."""
        self.wait_for_start()
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def wait_for_start(self) -> None:
        process = self.process
        assert process is not None
        wait_until(lambda: any(line["pid"] == process.pid for line in self.events("started")))

    def said(self) -> str:
        return self.journal.read_text() if self.journal.exists() else ""

    def events(self, name: str) -> list[dict[str, object]]:
        whole = self.said().rpartition("\n")[0]
        lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if line["event"] == name]

    def wait_for(self, event: str, times: int = 1) -> None:
        """Until it has said so that often, in all its starts."""
        wait_until(lambda: len(self.events(event)) >= times)


def wait_until(what: Callable[[], bool], within_s: float = PROMPT_S) -> None:
    """Ask again and again."""
    until = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def keep_log(data: Path) -> None:
    """Stand as a reader that has finished with nothing, so that retention leaves the whole log to look at."""
    wait_until((data / "log" / "log.json").exists)
    reader = open_log(data / "log")
    for partition in range(reader.partitions):
        reader.confirm("witness", partition, 0)


def logged(data: Path) -> Iterator[Entry]:
    """Every entry of the log that is there: what every reader has confirmed may be gone."""
    reader = open_log(data / "log")
    for partition in range(reader.partitions):
        for _, entry in reader.read(partition, reader.start(partition)):
            yield entry


def rows_of(data: Path, plan: Plan, stream: str) -> list[Row]:
    """The elements of a stream in the log, in its order."""
    schema = plan.schemas[plan.sync(stream).schema]
    found: list[Row] = []
    for entry in logged(data):
        if entry.kind == Kind.DATA and entry.stream == f"{plan.program}/{stream}":
            found += codec(entry.codec).decode(schema, bytes(entry.payload)) if entry.count else []
    return found


def is_seamless(data: Path) -> bool:
    """Whether each epoch's numbers begin at 0 and follow one another, and no element was given up."""
    ends: dict[tuple[str, str, int, int], int] = {}
    for entry in logged(data):
        if entry.kind != Kind.DATA:
            continue
        key = (entry.device, entry.stream, entry.epoch_counter, entry.epoch_nonce)
        if entry.first != ends.get(key, 0) or entry.upto - entry.first != entry.count or entry.lost_refused:
            return False
        ends[key] = entry.upto
    return bool(ends)
