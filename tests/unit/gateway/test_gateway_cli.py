"""`catchment gateway`: what it says, what it refuses, and that each repair works."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.cli import main
from catchment.gateway.run import Listen, bind
from catchment.gateway.stores import open_enrolment


def _enrol(data: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["gateway", "token", "--data", str(data), "--user", "ada", "--program", "peir", "--kind", "bus"]) == 0
    token = capsys.readouterr().out.strip()
    store = open_enrolment(data)
    credential = store.enrol(token, device="bus-7", now_us=0).credential
    store.close()
    return credential


def test_a_device_is_listed_revoked_and_enrolled_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _enrol(tmp_path, capsys)
    assert main(["gateway", "devices", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "bus-7\tada\tpeir\tbus\tenrolled\n"
    assert main(["gateway", "revoke", "--data", str(tmp_path), "bus-7"]) == 0
    assert main(["gateway", "revoke", "--data", str(tmp_path), "bus-7"]) == 1
    capsys.readouterr()
    main(["gateway", "devices", "--data", str(tmp_path), "--user", "ada"])
    assert capsys.readouterr().out.endswith("revoked\n")
    _enrol(tmp_path, capsys)
    main(["gateway", "devices", "--data", str(tmp_path), "--user", "bob"])
    assert capsys.readouterr().out == ""


def test_a_device_of_which_two_copies_lived_is_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _enrol(tmp_path, capsys)
    assert main(["gateway", "release", "--data", str(tmp_path), "bus-7"]) == 1
    store = open_enrolment(tmp_path)
    store.quarantine("bus-7", now_us=5)
    store.close()
    main(["gateway", "devices", "--data", str(tmp_path)])
    assert "two copies" in capsys.readouterr().out
    assert main(["gateway", "release", "--data", str(tmp_path), "bus-7"]) == 0


def test_a_directory_without_a_gateway_is_refused_and_the_repair_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", "devices", "--data", str(tmp_path / "elsewhere")]) == 2
    assert "G563" in capsys.readouterr().err
    _enrol(tmp_path, capsys)
    assert main(["gateway", "devices", "--data", str(tmp_path)]) == 0


def test_a_port_in_use_is_refused_and_another_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["gateway", "run", "--data", str(tmp_path), "--port", str(port)]) == 2
        assert "G561" in capsys.readouterr().err
        with bind(Listen(port=0)) as listening:
            assert listening.getsockname()[1] != port
            assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.process
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_gateway_stops_cleanly_when_it_is_told_to(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "catchment", "gateway", "run", "--data", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
        while '"event":"started"' not in process.stderr.readline():
            pass
        process.send_signal(how)
        rest = process.stderr.read()
        assert process.wait(20) == 0
    assert '"event":"stopped"' in rest and "Traceback" not in rest
    assert b'"holder":""' in (tmp_path / "log" / "p0000" / "lease").read_bytes()


@pytest.mark.process
def test_a_gateway_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "log.json").write_text('{"format":99,"partitions":1}')
    command = [sys.executable, "-m", "catchment", "gateway", "run", "--data", str(tmp_path), "--port", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 2 and "G515" in ran.stderr
