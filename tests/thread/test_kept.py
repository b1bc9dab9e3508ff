"""`catchment run` of a program with two sinks, killed at work: each result is kept exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.cli import main
from catchment.cloud.status import truth
from tests.thread.cloud import SPARK_S
from tests.thread.keeping import Keeping
from tests.thread.processes import wait_until

pytestmark = [pytest.mark.process, pytest.mark.spark]
START_S = 2 * SPARK_S  # a session, and the first batch that is not empty
PROGRAM = Path(__file__).with_name("beats.py")


class Beating(Keeping):
    """The program of beats, and what its function was told."""

    def __init__(self, folder: Path) -> None:
        self._notes = folder / "notes"
        self._notes.mkdir()
        super().__init__(folder, PROGRAM, {"CATCHMENT_TEST_NOTES": str(self._notes)})

    def numbers(self) -> list[int]:
        """What the files hold."""
        return sorted(row["number"] for row in self.kept())

    def noted(self) -> list[int]:
        """What the function was told, each mark once."""
        return sorted(int(line) for path in self._notes.iterdir() for line in path.read_text().splitlines())


@pytest.fixture
def beating(tmp_path: Path) -> Iterator[Beating]:
    running = Beating(tmp_path)
    yield running
    running.kill()


def test_kill_9_and_each_result_is_kept_once(
    beating: Beating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "data" / "programs" / "beats"
    beating.start()
    wait_until(lambda: bool(beating.kept()), START_S)
    beating.kill()
    beating.start()
    # A task of the first may outlive it and tell the function once more: what comes now is the second's.
    wait_until(lambda: truth(home).state == "running", START_S)
    before = len(beating.noted())
    wait_until(lambda: len(beating.noted()) > before, START_S)
    assert main(["status", "--data", str(tmp_path / "data")]) == 0
    assert "parquet_beaten/sink: " in capsys.readouterr().out
    beating.stop()
    assert "Python worker" not in beating.said(), "what says nothing is left out of its journal"
    for numbers in (beating.numbers(), beating.noted()):
        assert numbers == list(range(len(numbers)))
