"""`catchment run` of a program with two sinks, killed at work: each result is kept exactly once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.cli import main
from catchment.cloud.tables import open_table
from catchment.errors import ProgramError
from tests.thread.cloud import SPARK_S
from tests.thread.processes import CATCHMENT, wait_until

pytestmark = [pytest.mark.process, pytest.mark.spark]
START_S = 2 * SPARK_S  # a session, and the first batch that is not empty
PROGRAM = Path(__file__).with_name("beats.py")


class Beating:
    """The program, in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [*CATCHMENT, "run", str(PROGRAM), "--data", "data", "--port", str(self.port), "--quick"]
        environment = {**os.environ, "CATCHMENT_TEST_NOTES": str(self.notes)}
        with (self.folder / "journal").open("ab") as journal:
            self._process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=journal, stderr=journal)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(SPARK_S) == 0, (self.folder / "journal").read_text()[-3000:]

    def kept(self) -> list[int]:
        """What the files hold, by their list."""
        try:
            numbers: list[int] = open_table(self.folder / "kept").rows()["number"].to_pylist()
        except ProgramError:
            return []
        return sorted(numbers)

    def noted(self) -> list[int]:
        """What the function was told, each mark once."""
        return sorted(int(line) for path in self.notes.iterdir() for line in path.read_text().splitlines())


@pytest.fixture
def beating(tmp_path: Path) -> Iterator[Beating]:
    running = Beating(tmp_path)
    yield running
    running.kill()


def test_kill_9_and_each_result_is_kept_once(
    beating: Beating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beating.start()
    wait_until(lambda: bool(beating.kept()), START_S)
    beating.kill()
    before = len(beating.noted())
    beating.start()
    wait_until(lambda: len(beating.noted()) > before, START_S)
    assert main(["status", "--data", str(tmp_path / "data")]) == 0
    assert "parquet_beaten/sink: " in capsys.readouterr().out
    beating.stop()
    for numbers in (beating.kept(), beating.noted()):
        assert numbers == list(range(len(numbers)))
