"""A program's quarantine stays within its bounds; the newest is kept."""

from __future__ import annotations

import os
from pathlib import Path

from catchment.cloud.quarantine import Bounds, trim

DAY_S = 86_400


def test_a_year_of_rubbish_fills_no_disk(tmp_path: Path) -> None:
    folder = tmp_path / "part@cloud"
    folder.mkdir()
    for day in range(365):
        path = folder / f"{day:012d}-0000.jsonl"
        path.write_text("x" * 100)
        os.utime(path, (day * DAY_S, day * DAY_S))
        trim(tmp_path, now_s=day * DAY_S, bounds=Bounds(days=30, files=20, bytes=1500))
        assert len(list(folder.iterdir())) <= 15
    assert sorted(path.name[:12] for path in folder.iterdir()) == [f"{day:012d}" for day in range(350, 365)]


def test_each_bound_holds_by_itself(tmp_path: Path) -> None:
    for number in range(10):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("x" * 10)
        os.utime(path, (number * DAY_S, number * DAY_S))
    assert trim(tmp_path, now_s=9 * DAY_S, bounds=Bounds(days=6.5)) == 3
    assert trim(tmp_path, now_s=9 * DAY_S, bounds=Bounds(files=5)) == 2
    assert trim(tmp_path, now_s=9 * DAY_S, bounds=Bounds(bytes=25)) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"8.jsonl", "9.jsonl"}
