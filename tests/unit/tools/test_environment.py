"""The set-up behind every `make` target: when it does nothing, when it continues, and where pip comes from.

Nothing is downloaded: what would install is replaced by a note that it was asked to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools import environment


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a pyproject.toml and nothing else."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["environment.py", ".venv"])
    return tmp_path


@pytest.fixture
def done(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the set-up did, in order. An environment here leads to this Python."""
    steps: list[str] = []

    def create(where: Path) -> None:
        steps.append("create")
        (where / "bin").mkdir(parents=True)
        python = where / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)

    monkeypatch.setattr(environment, "create", create)
    monkeypatch.setattr(environment, "install", lambda _: steps.append("install"))
    return steps


def test_a_bare_checkout_is_set_up_and_the_second_time_nothing_is_done(done: list[str]) -> None:
    environment.main()
    assert done == ["create", "install"]
    environment.main()
    assert done == ["create", "install"]


def test_a_changed_project_is_installed_again_into_the_same_environment(done: list[str], project: Path) -> None:
    environment.main()
    (project / "pyproject.toml").write_text("[project]\ndependencies = ['msgspec']\n")
    environment.main()
    assert done == ["create", "install", "install"]


def test_an_interrupted_installation_is_continued(
    done: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr(environment, "install", interrupted)
        environment.main()
    environment.main()
    assert done == ["create", "install"]
    assert (project / ".venv" / ".ready").exists()


def test_an_environment_whose_python_is_gone_is_made_again(done: list[str], project: Path) -> None:
    environment.main()
    (project / ".venv" / "bin" / "python").unlink()
    (project / ".venv" / "bin").rmdir()
    environment.main()
    assert done == ["create", "install", "create", "install"]


def test_the_fingerprint_knows_the_project_and_the_python() -> None:
    prints = {environment.fingerprint(project, python) for project in (b"a", b"b") for python in ("/x", "/y")}
    assert len(prints) == 4


def answering(monkeypatch: pytest.MonkeyPatch, *succeed: str) -> list[str]:
    """`runs` succeeds for commands that hold one of these words; returns the commands that were tried."""
    tried: list[str] = []

    def runs(*command: str | Path) -> bool:
        tried.append(" ".join(map(str, command)))
        return any(word in tried[-1] for word in succeed)

    monkeypatch.setattr(environment, "runs", runs)
    return tried


def test_pip_comes_from_the_standard_library_when_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = answering(monkeypatch, "ensurepip")
    environment.create(tmp_path / "env")
    assert os.access(tmp_path / "env" / "bin" / "python", os.X_OK)
    assert len(tried) == 1


def test_without_it_pip_comes_from_this_python_then_from_debian(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_pip_of_this_python", lambda _: ["own-pip"])
    monkeypatch.setattr(environment, "_pip_from_debian", lambda _: ["debian-pip"])
    tried = answering(monkeypatch, "debian-pip")
    environment.create(tmp_path / "env")
    assert [line.split()[0] for line in tried[1:]] == ["own-pip", "debian-pip"]
    assert tried[-1].endswith(f"--python {tmp_path}/env/bin/python install --quiet pip")


def test_with_no_pip_anywhere_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "_pip_of_this_python", lambda _: [])
    monkeypatch.setattr(environment, "_pip_from_debian", lambda _: [])
    answering(monkeypatch)
    with pytest.raises(SystemExit):
        environment.create(tmp_path / "env")
    assert "fix: apt-get install python3-venv" in capsys.readouterr().out
    assert not (tmp_path / "env").exists()


def test_debian_that_cannot_be_asked_gives_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment._pip_from_debian(tmp_path) == []


def test_a_command_that_is_not_there_does_not_run(tmp_path: Path) -> None:
    assert not environment.runs(tmp_path / "nothing")
    assert environment.runs(sys.executable, "-c", "")
    assert not environment.runs(sys.executable, "-c", "raise SystemExit(3)")
