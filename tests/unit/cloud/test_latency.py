"""What a query's reports say of delays, in status, on the page of metrics and on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.cli import main
from catchment.cloud.flow import Standing
from catchment.cloud.latency import Delay, Latency, Spread, batch_of
from catchment.cloud.lease import take
from catchment.cloud.status import Status
from catchment.gateway.programs import gauges


def report(number: int, given: dict[str, int | None], *, uploads: int = 10, age_ms: int = 100) -> dict[str, Any]:
    """As Spark reports a batch that began at one second past 1970 and lasted 550 ms, 50 of them for its own note."""
    received = [1_000_000 - age_ms * 1000 - 10_000 * n for n in range(11)]
    return {
        "batchId": number,
        "timestamp": "1970-01-01T00:00:01.000Z",
        "durationMs": {"triggerExecution": 550, "commitOffsets": 50},
        "sources": [],
        "observedMetrics": {
            "catchment_uploads": {"samples": [json.dumps([uploads, [], received])]},
            "catchment_results": given,
        },
    }


def delays(*reports: dict[str, Any]) -> dict[str, Delay]:
    latency = Latency()
    for one in reports:
        batch = batch_of(one)
        assert batch is not None
        latency.add(batch)
    return latency.outputs()


def test_delays_are_of_outputs_that_gave_something() -> None:
    found = delays(report(0, {"totals": 3, "trips": None}), report(1, {"totals": 2, "trips": 1}, age_ms=1100))
    assert found["totals"] == Delay(5, None, Spread(p50=700, p95=1690, p99=1700))
    assert found["trips"] == Delay(1, None, Spread(p50=1650, p95=1700, p99=1700)), "nothing of the first batch was its"


def test_batches_weigh_as_much_as_they_took() -> None:
    found = delays(report(0, {"t": 1}, uploads=10_000), report(1, {"t": 1}, uploads=1, age_ms=60_000))
    assert found["t"].received_ms == Spread(p50=650, p95=700, p99=700)


def test_stretches_of_a_batch_weigh_as_much_as_they_held() -> None:
    one = report(0, {"t": 1}, uploads=10_000)
    one["observedMetrics"]["catchment_uploads"]["samples"].append(json.dumps([1, [], [-60_000_000] * 11]))
    assert delays(one)["t"].received_ms == Spread(p50=650, p95=700, p99=700)


def test_a_report_of_nothing_is_no_batch() -> None:
    assert batch_of({"batchId": 1, "observedMetrics": {}}) is None


@pytest.fixture
def data(tmp_path: Path) -> Path:
    home = tmp_path / "programs" / "walks"
    home.mkdir(parents=True)
    status = Status(
        "walks", "00", 1, os.getpid(), "running", {"all@cloud": "running"}, {"all@cloud/fast": 3, "all@cloud/new": 0}
    )
    status.latency = {"all@cloud/fast": Delay(3, Spread(1500, 2500, 3500), Spread(100, 200, 300))}
    status.flow = {"all@cloud": Standing(behind_bytes=7_000, batch_bytes=1_000, batch_ms=250)}
    (home / "status.json").write_bytes(msgspec.json.encode(status))
    return tmp_path


def test_the_page_of_metrics_shows_what_runs(data: Path) -> None:
    lines = [line for gauge in gauges(data) for line in gauge.lines() if not line.startswith("#")]
    labels = 'program="walks",output="all@cloud/fast"'
    assert f'catchment_cloud_latency_seconds{{{labels},since="append",quantile="0.95"}} 2.5' in lines
    assert f'catchment_cloud_latency_seconds{{{labels},since="received",quantile="0.5"}} 0.1' in lines
    assert f"catchment_cloud_results{{{labels}}} 3" in lines
    assert 'catchment_cloud_behind_bytes{program="walks",query="all@cloud"} 7000' in lines
    assert 'catchment_cloud_batch_seconds{program="walks",query="all@cloud"} 0.25' in lines
    (data / "programs" / "walks" / "status.json").write_bytes(b"{")
    assert not [line for gauge in gauges(data) for line in gauge.lines() if not line.startswith("#")]


def test_status_says_how_old_results_are(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lease = take(data / "programs" / "walks", "walks")
    assert main(["status", "--data", str(data)]) == 0
    lease.release()
    said = capsys.readouterr().out
    assert "all@cloud: 7000 bytes behind; its last batch took 1000 bytes and 250 ms" in said
    assert (
        "all@cloud/fast: 3 results since its start, 1500 ms after the append (2500 ms at 95 %, 3500 ms at 99 %)"
        " and 100 ms after the upload (200 ms at 95 %, 300 ms at 99 %)"
    ) in said
    assert said.endswith("all@cloud/new: 0 results since its start\n")
