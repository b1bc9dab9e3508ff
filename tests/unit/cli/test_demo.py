"""The demo prints paces of every walker, and ends when it should."""

from __future__ import annotations

import pytest

from catchment.cli import demo, main


def test_the_demo_prints_live_results(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"ns": 0}

    def pass_time(seconds: float) -> None:
        now["ns"] += round(seconds * 1e9)

    monkeypatch.setattr("time.sleep", pass_time)
    monkeypatch.setattr("time.time_ns", lambda: now["ns"])
    monkeypatch.setattr("time.monotonic", lambda: now["ns"] / 1e9)
    assert main(["demo", "--seconds", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    paces = [line.split() for line in lines if line.strip().startswith("00:00:")]
    assert {pace[1] for pace in paces} == set(demo.WALKERS)
    assert len(paces) == 3 * 10, "one for each walker every two seconds"
    assert [pace[0] for pace in paces] == sorted(pace[0] for pace in paces)
