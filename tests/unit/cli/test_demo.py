"""What the demo refuses before it starts anything, and that each repair works as far as it goes without Spark."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from catchment.cli import main
from catchment.demo.certificate import check_whole
from catchment.demo.processes import Child
from catchment.demo.show import Show
from catchment.demo.stage import Stage, Wanted
from catchment.errors import PeerError, ProgramError

EXAMPLES = Path(__file__).parents[3] / "examples"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def test_a_folder_without_the_examples_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["demo", "--data", str(tmp_path / "demo"), "--examples", str(tmp_path), "--no-browser"]
    assert main(words) == 2
    said = capsys.readouterr()
    assert "E170" in said.err
    assert "[demo]" in said.out
    assert (EXAMPLES / "peir" / "demo.py").is_file(), "where it is looked for by default"


def test_a_port_that_is_taken_is_refused_and_another_is_not(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        stage = Stage(Wanted(tmp_path, EXAMPLES, port=taken.getsockname()[1]))
        with pytest.raises(PeerError, match=r"E172[\s\S]*PORT="):
            stage.open()
        stage.close()
    stage._check_port()


def test_a_second_demo_is_refused_with_the_address_of_the_first(tmp_path: Path) -> None:
    first = Stage(Wanted(tmp_path, EXAMPLES, port=free_port()))
    first._take_lock()
    second = Stage(Wanted(tmp_path, EXAMPLES, port=free_port()))
    with pytest.raises(ProgramError, match=rf"E171[\s\S]*process {os.getpid()}, at {first.wanted.address}"):
        second.open()
    second.close()
    first.close()
    second._take_lock()
    second.close()


def test_a_process_that_ends_by_itself_ends_the_demo_with_its_last_words(tmp_path: Path) -> None:
    stage = Stage(Wanted(tmp_path, EXAMPLES, port=free_port()))
    stage.cloud = Child("cloud", ["catchment", "explain", "nowhere.py"], tmp_path / "journals" / "cloud.log")
    stage.cloud.process.wait()
    with pytest.raises(PeerError, match=r"E173[\s\S]*there is no file nowhere.py"):
        Show(stage, say=lambda line: None)._watch(None)


def test_a_log_that_was_trimmed_is_not_certified() -> None:
    with pytest.raises(ProgramError, match="E174"):
        check_whole({0: 0, 1: 4096})
    check_whole({0: 0, 1: 0})


def test_beginning_anew_removes_only_what_a_demo_made(tmp_path: Path) -> None:
    stage = Stage(Wanted(tmp_path, EXAMPLES))
    (tmp_path / "devices" / "phone-000").mkdir(parents=True)
    (tmp_path / "thesis.txt").write_text("mine")
    stage._clear()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
