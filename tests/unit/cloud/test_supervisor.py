"""What a supervisor refuses before it starts anything, and what status and stop say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

import catchment as cm
from catchment.cli import main
from catchment.cloud.children import GatewayProcess
from catchment.cloud.lease import take
from catchment.cloud.status import Status
from catchment.cloud.supervisor import Options, Supervisor, check_runs
from catchment.errors import PeerError, ProgramError
from catchment.plan.physical import Plan


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float]


def program(at: cm.Site = cm.CLOUD, faster_than: float = 1.0) -> cm.Program:
    walks = cm.Program("walks")

    @walks.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    @walks.stream(at=at)
    def fast(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        return fixes.where(Fix.speed_mps > faster_than)

    return walks


def test_a_region_is_planned_and_not_run() -> None:
    with pytest.raises(ProgramError, match="E035"):
        check_runs(cm.build(program(cm.REGION)))
    check_runs(cm.build(program(cm.CLOUD)))


def test_a_source_that_cannot_be_run_is_refused_before_anything_starts() -> None:
    walks = program()

    @walks.stream(at=cm.CLOUD)
    def bought(cloud: cm.CloudSite) -> cm.Stream[Fix]:
        return cloud.read(Fix, "postgres", table="fixes")

    with pytest.raises(ProgramError, match="E036"):
        check_runs(cm.build(walks))


@pytest.mark.parametrize("a_timer", [True, False])
def test_a_source_that_nothing_feeds_in_the_cloud_is_refused_and_runs_on_a_device(a_timer: bool) -> None:
    def plan(at: cm.Site) -> Plan:
        walks = cm.Program("walks")

        def fed(place: Any) -> Any:
            return place.timer(cm.seconds(30)) if a_timer else place.source(Fix)

        fed.__annotations__["place"] = cm.CloudSite if at == cm.CLOUD else cm.DeviceSite
        walks.stream(at=at)(fed)

        @walks.stream(at=cm.CLOUD)
        def counted(fed: cm.Stream[Any]) -> cm.Stream[Any]:
            return fed.state(n=cm.count(), order="arrival")

        return cm.build(walks)

    with pytest.raises(ProgramError, match="E059") as refused:
        check_runs(plan(cm.CLOUD))
    assert refused.value.at is not None
    assert refused.value.at.file == "test_supervisor.py"
    check_runs(plan(cm.DEVICE))


class Best(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    found: cm.Field[float | None]


def keeping(*, slowest: bool = False, faster_than: float = 1.0) -> cm.Program:
    walks = program(faster_than=faster_than)

    @walks.stream(at=cm.CLOUD)
    def best(fast: cm.Stream[Fix]) -> cm.Stream[Best]:
        found = cm.min(Fix.speed_mps) if slowest else cm.max(Fix.speed_mps)
        return fast.key_by(Fix.user).state(Best, found=found)

    return walks


def test_state_of_another_program_is_not_taken_up(tmp_path: Path) -> None:
    home = tmp_path / "programs" / "walks"
    home.mkdir(parents=True)
    options = Options(tmp_path, port=1)
    Supervisor(cm.build(keeping()), options, stopping=lambda: True)._settle()
    changed = Supervisor(cm.build(keeping(slowest=True)), options, stopping=lambda: True)
    with pytest.raises(ProgramError, match="E034"):
        changed._settle()
    Supervisor(cm.build(keeping(faster_than=2.0)), options, stopping=lambda: True)._settle()


def test_a_gateway_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    gateway = GatewayProcess(blocked, "127.0.0.1", 1)
    gateway.start()
    with pytest.raises(PeerError, match="E037"):
        gateway.wait_ready()
    gateway.stop()


def test_a_gateway_is_given_its_certificate_and_asked_over_tls(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path, "127.0.0.1", 1, ["--certificate", "chain.pem", "--key", "key.pem"])
    assert gateway.address == "https://127.0.0.1:1"
    gateway.start()
    with pytest.raises(PeerError, match="E037"):
        gateway.wait_ready()  # there is no such file
    gateway.stop()


def said(home: Path, state: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    status = Status("walks", "00", 1, os.getpid(), state, {"fast@cloud": "running"}, {"fast@cloud/fast": 3})
    (home / "status.json").write_bytes(msgspec.json.encode(status))


def test_status_believes_the_lock_and_not_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--data", str(tmp_path)]) == 2
    assert "E038" in capsys.readouterr().err
    home = tmp_path / "programs" / "walks"
    said(home, "running")
    assert main(["status", "--data", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("walks: died")
    assert "fast@cloud: not running" in out
    lease = take(home, "walks")
    assert main(["status", "--data", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "running"
    lease.release()


def test_stop_names_what_does_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "walks", "--data", str(tmp_path)]) == 2
    assert "E039" in capsys.readouterr().err


def test_a_backfill_goes_beside_and_begins_somewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["backfill", "walks.py", "--data", str(tmp_path), "--into"]
    assert main([*words, str(tmp_path)]) == 2
    assert "E134" in capsys.readouterr().err
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "log.json").touch()
    assert main([*words, str(tmp_path / "beside"), "--from", "yesterday"]) == 2
    assert "E135" in capsys.readouterr().err
