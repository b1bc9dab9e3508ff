"""The command line itself: what it imports, what it prints when something goes wrong, its exit codes."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import catchment.cli
from catchment.cli import COMMANDS, main
from catchment.errors import ProgramError


def modules_of_commands() -> set[str]:
    return {module.name.replace("_", "-") for module in pkgutil.iter_modules(catchment.cli.__path__)}


def test_every_command_has_one_module_and_every_module_is_a_command() -> None:
    assert modules_of_commands() == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_offers_its_arguments_and_a_way_to_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = importlib.import_module(f"catchment.cli.{name.replace('-', '_')}")
    command.configure(argparse.ArgumentParser())
    assert callable(command.run)
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: catchment {name}" in capsys.readouterr().out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"    {name}" in shown for name in COMMANDS)


def test_help_and_version_import_no_command() -> None:
    script = (
        "import sys\n"
        "from catchment.cli import main\n"
        "main(['--version'])\n"
        "print([name for name in sys.modules if name.startswith('catchment.cli.')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    version, imported = ran.stdout.splitlines()
    assert version.startswith("catchment 0.")
    assert imported == "[]"


def test_an_unknown_command_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["docter"])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert "docter" in shown
    assert "doctor" in shown


def standing_in(monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> None:
    """A command `trip` that raises."""

    def run(_: argparse.Namespace) -> int:
        raise raised

    module = ModuleType("catchment.cli.trip")
    vars(module).update(configure=lambda _: None, run=run)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "trip", "stands in")


def test_our_errors_are_printed_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ProgramError("E010", "no Java", why="there is none", fix="install one")
    standing_in(monkeypatch, error)
    assert main(["trip"]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"{error}\n"
    assert shown.out == ""


def test_an_interruption_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    standing_in(monkeypatch, KeyboardInterrupt())
    assert main(["trip"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_any_other_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    standing_in(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["trip"])


def test_a_reader_that_has_enough_is_no_error() -> None:
    script = (
        "import sys, types, catchment.cli as cli\n"
        "talk = types.ModuleType('catchment.cli.talk')\n"
        "talk.configure = lambda parser: None\n"
        "talk.run = lambda arguments: print('x' * 1_000_000) or 0\n"
        "sys.modules[talk.__name__] = talk\n"
        "cli.COMMANDS['talk'] = 'talks'\n"
        "sys.exit(cli.main(['talk']))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), complaint) == (0, b"")
