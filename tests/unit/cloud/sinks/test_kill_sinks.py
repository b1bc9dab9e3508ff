"""kill -9 between every two effects of a publication: what is kept is there exactly once."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.cloud.tables import open_table
from tests.postgres import Postgres
from tests.unit.cloud.sinks.killed import TRIPS

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[4]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is to be had: a killed process loses nothing that it wrote, and syncs cost time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as made:
        yield Path(made)


def effects(kind: str, folder: Path, url: str = "") -> range:
    words = [sys.executable, "-m", "tests.unit.cloud.sinks.killed", kind, str(folder), url]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    return range(1, int(done.stdout) + 1)


def test_files_are_listed_once(folder: Path) -> None:
    for effect in effects("parquet", folder):
        table = open_table(folder / f"t{effect}" / "kept")
        kept = sorted(lasted // 60_000_000 for lasted in table.rows()["lasted"].to_pylist())
        assert kept == TRIPS, f"killed before effect {effect}"


def test_rows_are_committed_once(folder: Path, postgres: Postgres) -> None:
    for effect in effects("postgres", folder, postgres.url):
        rows = postgres.rows(f"SELECT extract(epoch FROM lasted)::int / 60 FROM t{effect} ORDER BY 1")
        assert [n for (n,) in rows] == TRIPS, f"killed before effect {effect}"


def test_a_function_that_remembers_marks_has_each_once(folder: Path) -> None:
    for effect in effects("callback", folder):
        files = (folder / f"t{effect}" / "remembered").iterdir()
        kept = sorted(int(line) for file in files for line in file.read_text().splitlines())
        assert kept == TRIPS, f"killed before effect {effect}"
