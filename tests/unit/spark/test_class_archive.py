"""The archive of Spark's classes: used where it is, done without where it is not, one per Java."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from catchment.engines.spark.class_archive import archive, using
from catchment.engines.spark.java import JavaRuntime


def test_an_archive_is_used_by_the_java_that_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    older = JavaRuntime(tmp_path / "17", 17, "17.0.15", "JAVA_HOME")
    newer = JavaRuntime(tmp_path / "25", 25, "25.0.2", "JAVA_HOME")
    assert archive(older) != archive(newer)
    assert using(older) == using(newer) == []
    for runtime in (older, newer):
        archive(runtime).parent.mkdir(parents=True, exist_ok=True)
        archive(runtime).write_bytes(b"classes")
    assert f"-XX:SharedArchiveFile={archive(older)}" in using(older)
    assert f"-XX:AOTCache={archive(newer)}" in using(newer)
