"""A standalone Spark cluster of processes on this machine, from the package that pip installed: master and workers.

For trying on one machine what a cluster does: workers that are killed, that leave in good order, that come. Everything
listens on loopback and ends with the process that started it. `graceful` and `elastic` are the settings with which a
session hands over what a leaving worker holds, and takes executors by its load. Knows processes; nothing of programs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from catchment.cloud.children import end_with_parent
from catchment.engines.spark.java import use_java
from catchment.errors import PeerError

START_S_MAX = 90.0
STOP_S_MAX = 15.0
_EXECUTOR = "CoarseGrainedExecutorBackend"


def graceful() -> dict[str, str]:
    """Settings of a session: a worker that is told to leave first hands its blocks to others.

    Unless told otherwise, Spark looks every 30 seconds for what is still to be handed over, and the worker stays.
    """
    return {
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.replicationReattemptInterval": "2s",
    }


def for_master(master: str) -> dict[str, str]:
    """Settings of a session by its master: on a standalone cluster, workers may leave in good order.

    >>> for_master("local[*]"), for_master("spark://host:7077") == graceful()
    ({}, True)
    """
    return graceful() if master.startswith("spark://") else {}


def elastic(least: int, most: int, *, idle_s: int = 20) -> dict[str, str]:
    """Settings of a session: so many executors, by how many tasks wait; one that has nothing to do goes."""
    return {
        **graceful(),
        "spark.dynamicAllocation.enabled": "true",
        # There is no shuffle service in the package: executors that hold a live shuffle are kept instead.
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least),
        "spark.dynamicAllocation.maxExecutors": str(most),
        "spark.dynamicAllocation.executorIdleTimeout": f"{idle_s}s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    }


@dataclass
class Worker:
    """A worker's process."""

    process: subprocess.Popen[bytes]
    log: Path

    def executors(self) -> list[int]:
        """The processes that run its executors."""
        return children(self.process.pid, _EXECUTOR)

    def kill(self) -> None:
        """End it and its executors at once, as a power cut would."""
        executors = self.executors()
        self.process.kill()
        for executor in executors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(executor, signal.SIGKILL)
        self.process.wait()

    def leave(self) -> None:
        """Ask it to leave in good order: it takes no more tasks, hands over what it holds, and its executors end."""
        self.process.send_signal(signal.SIGPWR)


class Cluster:
    """A master and its workers, from `with` to its end."""

    def __init__(self, home: Path, *, workers: int = 2, cores: int = 1, memory_mb: int = 1024) -> None:
        self._home = home
        self._workers_wanted, self._cores, self._memory_mb = workers, cores, memory_mb
        self._master: subprocess.Popen[bytes] | None = None
        self._page = ""
        self.url = ""
        """What a session takes as its master."""
        self.workers: list[Worker] = []

    def __enter__(self) -> Cluster:
        try:
            self._start_master()
            for _ in range(self._workers_wanted):
                self.add_worker()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_worker(self) -> Worker:
        """One more; it is there when this returns."""
        number = len(self.workers)
        known = self.alive()
        words = ["--host", "127.0.0.1", "--cores", str(self._cores), "--memory", f"{self._memory_mb}m"]
        words += ["--webui-port", "0", "--work-dir", str(self._home / f"worker{number}"), self.url]
        log = self._home / f"worker{number}.log"
        worker = Worker(self._start("org.apache.spark.deploy.worker.Worker", words, log), log)
        self.workers.append(worker)
        wait_for(worker.process, log, lambda: self.alive() > known, "Spark's worker")
        return worker

    def alive(self) -> int:
        """The workers that the master counts on."""
        return sum(worker["state"] == "ALIVE" for worker in self.state()["workers"])

    def state(self) -> dict[str, Any]:
        """What the master says of itself, its workers and its applications."""
        with urllib.request.urlopen(f"{self._page}/json/", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def close(self) -> None:
        """End all of it."""
        processes = [worker.process for worker in self.workers] + ([self._master] if self._master else [])
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_master(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        log = self._home / "master.log"
        words = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._master = self._start("org.apache.spark.deploy.master.Master", words, log)
        found: dict[str, str] = {}

        def ready() -> bool:
            said = log.read_text(errors="replace")
            for name, pattern in (("url", r"Spark master at (spark://\S+)"), ("page", r"MasterWebUI.* (http://\S+)")):
                match = re.search(pattern, said)
                if match:
                    found[name] = match[1]
            port = re.search(r"service 'MasterUI' on port (\d+)", said)
            if port:
                found["page"] = f"http://127.0.0.1:{port[1]}"
            return len(found) == 2 and "I have been elected leader" in said

        wait_for(self._master, log, ready, "Spark's master")
        self.url, self._page = found["url"], found["page"]

    def _start(self, kind: str, words: list[str], log: Path) -> subprocess.Popen[bytes]:
        use_java()
        home = spark_home()
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self._home / "local"),
            # Without it a worker that is told to leave does not know how to.
            "SPARK_WORKER_OPTS": "-Dspark.decommission.enabled=true",
            "SPARK_CONF_DIR": str(_configuration(self._home)),
        }
        with log.open("wb") as file:
            return subprocess.Popen(
                [str(home / "bin" / "spark-class"), kind, *words],
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent,
                start_new_session=True,
            )


def spark_home() -> Path:
    """Where pip put Spark."""
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def children(parent: int, words: str) -> list[int]:
    """Processes whose parent is that one and whose command line has these words."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, StopIteration):
            line = next(line for line in status.read_text().splitlines() if line.startswith("PPid:"))
            if int(line.split()[1]) == parent and words.encode() in status.with_name("cmdline").read_bytes():
                found.append(int(status.parent.name))
    return sorted(found)


def _configuration(home: Path) -> Path:
    """Master and workers say what they do only where they are asked to; who started them reads it."""
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "log4j2.properties").write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stdout.ref = console\nappender.console.type = Console\n"
        "appender.console.name = console\nappender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex\n"
    )
    return conf


def wait_for(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool], who: str) -> None:
    """Until it is ready; an error with what it said last, if it ends or takes too long."""
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            if ready():
                return
        time.sleep(0.05)
    said = log.read_text(errors="replace").strip().splitlines()
    raise PeerError(
        "E110",
        f"{who} did not start",
        why=said[-1] if said else "it said nothing",
        fix=f"look into {log}, and run `catchment doctor` to see whether Java is there",
    )
