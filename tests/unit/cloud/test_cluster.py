"""A cluster that does not start says why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from catchment.cloud.cluster import elastic, graceful, wait_for
from catchment.errors import PeerError


def test_a_process_that_ends_instead_of_starting_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "master.log"
    with log.open("wb") as said:
        process = subprocess.Popen(["sh", "-c", "echo first; echo no port is free; exit 1"], stdout=said)
    with pytest.raises(PeerError, match="E110") as refused:
        wait_for(process, log, lambda: False, "Spark's master")
    assert "no port is free" in str(refused.value)
    process.wait()


def test_what_takes_executors_by_load_lets_them_leave_in_good_order() -> None:
    assert graceful().items() <= elastic(1, 4).items()
