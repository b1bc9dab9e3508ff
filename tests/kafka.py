"""A Kafka broker of a test's own: the real server, on loopback, alone, in a folder of its own.

Its jars are fetched once, into `.build`, as Spark's for Kafka are: where they cannot be, the test fails and says why.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from catchment.engines.spark.jars import Wanted, fetch
from catchment.engines.spark.java import use_java

RELEASE = "4.1.0"
_JARS = Path(__file__).resolve().parents[1] / ".build" / f"kafka-server-{RELEASE}"
_CLUSTER = "4L6g3nShT-eMCtK--X86sw"
START_S_MAX = 60.0


class Kafka:
    """A broker that runs from `start` to `stop`."""

    def __init__(self, partitions: int = 2) -> None:
        # The second lets it say why it does not start.
        server = [Wanted("org.apache.kafka", "kafka_2.13", RELEASE), Wanted("org.slf4j", "slf4j-simple", "1.7.36")]
        self._jars = fetch("Kafka's server", server, _JARS)
        self._folder = Path(tempfile.mkdtemp(prefix="catchment-kafka-"))
        self._process: subprocess.Popen[bytes] | None = None
        port, among_themselves = _free(2)
        self.servers = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{among_themselves}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{among_themselves}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": f"{self._folder}/data",
            "num.partitions": str(partitions),
            # By the times that tests give, all messages are old.
            "log.retention.ms": "-1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        self._settings = self._folder / "server.properties"
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def start(self) -> Kafka:
        """Format its disk, start it, and wait until it answers."""
        self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings)).wait(START_S_MAX)
        self._process = self._java("kafka.Kafka", str(self._settings))
        until = time.monotonic() + START_S_MAX
        while "Kafka Server started" not in self._said():
            assert self._process.poll() is None, self._said()
            assert time.monotonic() < until, self._said()
            time.sleep(0.05)
        return self

    def send(self, topic: str, messages: Iterable[tuple[int, bytes | None, bytes | None]]) -> None:
        """Messages as (partition, key, value), each acknowledged when this returns."""
        # Here, where a test can say what it thinks of the warnings that importing it gives.
        from kafka import KafkaProducer  # type: ignore[import-untyped]

        producer = KafkaProducer(bootstrap_servers=self.servers)
        for partition, key, value in messages:
            producer.send(topic, value, key=key, partition=partition, timestamp_ms=1_000_000)
        producer.flush(START_S_MAX)
        producer.close()

    def stop(self) -> None:
        """End it and delete what it had."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)
        shutil.rmtree(self._folder)

    def _said(self) -> str:
        return (self._folder / "said").read_text(errors="replace")

    def _java(self, main: str, *words: str) -> subprocess.Popen[bytes]:
        java = str(use_java().home / "bin" / "java")
        quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
        path = ":".join(str(jar) for jar in self._jars)
        with (self._folder / "said").open("ab") as said:
            return subprocess.Popen([java, *quick, "-cp", path, main, *words], stdout=said, stderr=said)


def _free(count: int) -> list[int]:
    """So many free ports."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
