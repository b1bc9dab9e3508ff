"""Somebody is forgotten while their program runs: afterwards nothing of theirs is anywhere, and the others' goes on.

Real processes: a gateway, Spark, two devices, a PostgreSQL server. What lies compressed (the log's payloads, the state
and its changes, files of tables) is read as what it holds.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from catchment.cloud.tables import open_table
from catchment.errors import CatchmentError
from catchment.gateway.log.entry import Kind
from catchment.gateway.stores import open_plans
from catchment.plan import document
from catchment.sync.codecs import codec
from tests.postgres import Postgres
from tests.thread.cloud import SPARK_S
from tests.thread.processes import CATCHMENT, Device, logged, wait_until

pytestmark = [pytest.mark.process, pytest.mark.spark]
PROGRAM = Path(__file__).with_name("stays.py")
START_S = 2 * SPARK_S
GONE_S = 2 * SPARK_S
ADA, BEN = b"ada-", b"ben-"
"""How their names begin, and those of all places where they were."""
SETTINGS = """
spark.sql.streaming.stateStore.rocksdb.compression none
spark.sql.streaming.stateStore.compression.codec zstd
spark.sql.streaming.minBatchesToRetain 4
spark.sql.streaming.stateStore.minDeltasForSnapshot 2
spark.sql.streaming.stateStore.maintenanceInterval 2s
"""
"""State that can be read, and whose old versions go within seconds: by default Spark keeps a hundred batches, and looks
for what may go once a minute."""


class Staying:
    """The program, in a directory of its own."""

    def __init__(self, folder: Path, postgres: Postgres) -> None:
        self.folder = folder
        self.data = folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = folder / "settings"
        settings.mkdir()
        (settings / "spark-defaults.conf").write_text(SETTINGS)
        environment = {**os.environ, "STAYS_DATABASE": postgres.url, "SPARK_CONF_DIR": str(settings)}
        self._environment = environment
        words = [*CATCHMENT, "run", str(PROGRAM), "--data", "data", "--port", str(self.port), "--quick"]
        with (folder / "journal").open("ab") as journal:
            self._process = subprocess.Popen(words, cwd=folder, env=environment, stdout=journal, stderr=journal)

    def device(self, name: str, rows: int) -> Device:
        """Somebody's, which plays so many stays, twenty a second."""
        wait_until((self.data / "enrolment.db").exists, SPARK_S)
        words = ["gateway", "token", "--data", str(self.data), "--user", f"{name}-user", "--program", "stays"]
        token = subprocess.run([*CATCHMENT, *words], check=True, capture_output=True, text=True).stdout.strip()
        begin_us = 1_700_000_000_000_000
        lines = [f"{begin_us + 50_000 * n},{name}-place-{n}\n" for n in range(rows)]
        (self.folder / f"{name}.csv").write_text("at,place\n" + "".join(lines))
        words = ["--gateway", f"http://127.0.0.1:{self.port}", "--name", f"{name}-phone", "--token", token]
        sensor = f"places=replay:{self.folder / name}.csv,times=live"
        return Device(self.folder / f"{name}-phone", *words, "--poll", "300ms", "--sensor", sensor).start()

    def forget(self, user: str) -> str:
        """`catchment forget`; what it said."""
        words = [*CATCHMENT, "forget", "--user", user, "--data", str(self.data)]
        done = subprocess.run(
            words, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kept(self, user: str) -> list[int]:
        """How often the user stayed somewhere, by each row of the files."""
        try:
            rows = open_table(self.folder / "kept").rows().to_pylist()
        except CatchmentError:
            return []
        return sorted(row["stays"] for row in rows if row["user"] == user)

    def stop(self) -> int:
        """End it in good order."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(SPARK_S)
        finally:
            self._process.kill()


def held(staying: Staying, name: bytes) -> set[str]:
    """Where something of that name is kept: in a path, in bytes, or in what lies compressed."""
    found = set()
    for root in (staying.data, staying.folder / "kept"):
        for path in root.rglob("*"):
            place = str(path.relative_to(staying.folder))
            if name in place.encode() or (path.is_file() and any(name in part for part in _read(path))):
                found.add(place)
    plan = document.read(open_plans(staying.data).plan("stays").body)
    schema = plan.schemas[plan.sync("seen").schema]
    for entry in logged(staying.data):
        rows = codec(entry.codec).decode(schema, bytes(entry.payload)) if entry.kind == Kind.DATA else []
        if any(name in str(row).encode() for row in rows):
            found.add("log, payload")
    return found


def _read(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and what they unpack to."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return  # Spark's maintenance has just deleted it
    yield data
    if path.suffix == ".changelog":
        yield zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    if path.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(data)) as inside:
            yield from (inside.read(one) for one in inside.namelist())


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres().start()
    yield server
    server.stop()


@pytest.fixture
def staying(tmp_path: Path, postgres: Postgres) -> Iterator[Staying]:
    running = Staying(tmp_path, postgres)
    try:
        yield running
    finally:
        code = running.stop()
    assert code == 0, (tmp_path / "journal").read_text()[-3000:]


def test_a_user_is_forgotten_while_the_program_runs(staying: Staying, postgres: Postgres) -> None:
    ada, ben = staying.device("ada", 60), staying.device("ben", 20_000)
    try:
        wait_until(lambda: len(staying.kept("ada-user")) == 60 and bool(staying.kept("ben-user")), START_S)
        wait_until(lambda: len(postgres.rows("SELECT * FROM stay WHERE \"user\" = 'ada-user'")) == 60, START_S)
        ada.stop()
        before = held(staying, ADA)
        for place in ("log", "downlink.db", "enrolment.db", "/state/", "kept/"):
            assert any(place in one for one in before), (place, before)
        assert "log, payload" in before
        bens = staying.kept("ben-user")
        said = staying.forget("ada-user")
        assert "forgotten: ada-phone of ada-user" in said
        wait_until(lambda: not held(staying, ADA), GONE_S)
        assert postgres.rows("SELECT * FROM stay WHERE \"user\" = 'ada-user'") == []
        # The other's results are all there, each once, and go on.
        reached = staying.kept("ben-user")
        assert reached[: len(bens)] == bens
        wait_until(lambda: len(staying.kept("ben-user")) > len(reached), START_S)
        numbers = staying.kept("ben-user")
        assert numbers == list(range(1, len(numbers) + 1))
        assert held(staying, BEN)
    finally:
        ada.kill()
        ben.kill()
