"""The gateway's small parts: quarantine, plans, limits, metrics."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.errors import InternalError, PeerError
from catchment.gateway.limits import Bucket, GatewayLimits, Rates
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.metrics import GatewayMetrics
from catchment.gateway.plans import Plans
from catchment.gateway.quarantine import SAMPLE_BYTES_MAX, Quarantine

DAY_US = 86_400_000_000


def _keep(quarantine: Quarantine, body: bytes, *, device: str = "phone", now_us: int = 0) -> bool:
    return quarantine.keep(
        body, code="S405", why="its checksum is wrong", device=device, peer="10.0.0.1", now_us=now_us
    )


def test_quarantine_keeps_the_offending_bytes_with_their_reason(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path, gateway="one")
    assert _keep(quarantine, b"\xffbad")
    (file,) = tmp_path.iterdir()
    kept = json.loads(file.read_text())
    assert file.name == "1970-01-01.one.jsonl"
    assert base64.b64decode(kept["sample"]) == b"\xffbad"
    assert (kept["code"], kept["device"], kept["why"]) == ("S405", "phone", "its checksum is wrong")


def test_quarantine_is_bounded_in_all_and_per_device(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path, gateway="one", bytes_max=80_000)
    kept = [_keep(quarantine, bytes(1000), device="hostile") for _ in range(100)]
    assert 0 < sum(kept) < 10
    assert _keep(quarantine, b"x", device="honest")
    for other in range(100):
        _keep(quarantine, bytes(1000), device=f"hostile-{other}")
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 80_000
    again = Quarantine(tmp_path, gateway="one", bytes_max=80_000)
    assert not _keep(again, bytes(3000)), "the space that is used up stays used up after a restart"


def test_quarantine_of_a_huge_input_keeps_its_beginning_size_and_hash(tmp_path: Path) -> None:
    _keep(Quarantine(tmp_path, gateway="one"), bytes(SAMPLE_BYTES_MAX * 3))
    kept = json.loads(next(tmp_path.iterdir()).read_text())
    assert kept["size_bytes"] == SAMPLE_BYTES_MAX * 3 and len(base64.b64decode(kept["sample"])) == SAMPLE_BYTES_MAX


def test_quarantine_lets_go_of_old_days(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path, gateway="one")
    _keep(quarantine, b"old", now_us=0)
    _keep(quarantine, b"new", now_us=40 * DAY_US)
    quarantine.trim(before_us=10 * DAY_US)
    assert [file.name[:10] for file in tmp_path.iterdir()] == ["1970-02-10"]


def test_a_published_plan_is_the_current_one_in_every_process(tmp_path: Path) -> None:
    plans, other = Plans(LocalDisk(tmp_path)), Plans(LocalDisk(tmp_path))
    first = plans.publish("peir", b"plan 1")
    assert other.plan("peir") == (first, b"plan 1")
    second = plans.publish("peir", b"plan 2")
    assert other.current("peir") == second != first and other.plan("peir").body == b"plan 2"


def test_a_missing_or_damaged_plan_says_so(tmp_path: Path) -> None:
    plans = Plans(LocalDisk(tmp_path))
    with pytest.raises(PeerError, match="G541"):
        plans.plan("peir")
    with pytest.raises(PeerError, match="G541"):
        plans.plan("../../etc")
    with pytest.raises(PeerError, match="G540"):
        plans.publish("../peir", b"")
    fingerprint = plans.publish("peir", b"plan")
    (tmp_path / "plans" / "peir" / f"{fingerprint}.plan").write_bytes(b"harm")
    with pytest.raises(InternalError, match="G542"):
        Plans(LocalDisk(tmp_path)).plan("peir")


@given(st.lists(st.tuples(st.integers(0, 500_000), st.integers(1, 200)), max_size=60))
def test_a_bucket_never_gives_more_than_burst_and_rate(asks: list[tuple[int, int]]) -> None:
    bucket = Bucket(rate_per_s=100, burst=150, level=150, at_us=0)
    now, taken = 0, 0
    for wait_us, amount in asks:
        now += wait_us
        retry_us = bucket.take(amount, now_us=now)
        if retry_us == 0:
            taken += amount
        else:
            assert bucket.take(amount, now_us=now + retry_us + 1) == 0, "what it promised is there then"
            now += retry_us + 1
            taken += amount
    assert taken <= 150 + 100 * now / 1e6 + 200


def test_devices_are_limited_one_by_one_and_forgotten_when_quiet() -> None:
    rates = Rates(GatewayLimits(device_bytes_per_s=1000, device_burst_bytes=1000))
    assert rates.take("a", 1000, now_us=0) == 0
    assert rates.take("a", 500, now_us=0) == 500_000
    assert rates.take("b", 500, now_us=0) == 0
    rates.tidy(now_us=10_000_000)
    assert rates.take("a", 1000, now_us=10_000_000) == 0


def test_metrics_are_prometheus_text() -> None:
    metrics = GatewayMetrics()
    metrics.refused.add('a"b\\c\n')
    metrics.acknowledge.observe(0.003)
    metrics.acknowledge.observe(99)
    metrics.gauge("connections", "Open connections.", (), lambda: {(): 3})
    lines = metrics.text().splitlines()
    assert 'catchment_gateway_refused_total{code="a\\"b\\\\c\\n"} 1' in lines
    assert 'catchment_gateway_acknowledge_seconds_bucket{le="0.0025"} 0' in lines
    assert 'catchment_gateway_acknowledge_seconds_bucket{le="0.005"} 1' in lines
    assert 'catchment_gateway_acknowledge_seconds_bucket{le="+Inf"} 2' in lines
    assert "catchment_gateway_connections 3" in lines
    assert "catchment_gateway_uploads_total 0" in lines
    assert all(line.startswith(("#", "catchment_gateway_")) for line in lines)
