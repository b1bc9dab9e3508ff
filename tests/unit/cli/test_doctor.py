"""`catchment doctor`: each check in both its outcomes, and what is printed and answered for them."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

import pytest

from catchment.cli import doctor, main
from catchment.cli.doctor import examination
from catchment.cli.doctor.finding import Area, Finding, State
from catchment.cli.doctor.requirement import Requirement, parse, requirements
from catchment.errors import InternalError

GOOD = Finding(Area.CORE, "Python", State.OK, "3.11.7")
NO_SPARK = Finding(Area.CLOUD, "pyspark", State.MISSING, "not installed", "pip install 'catchment[cloud]'")
NO_CODEC = Finding(Area.CORE, "msgspec", State.MISSING, "not installed", "pip install catchment")


def doctor_finding(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    monkeypatch.setattr(doctor, "examine", lambda *_: list(findings))


def test_this_machine_is_examined_for_every_area(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["usable"] is True
    assert {finding["area"] for finding in answer["findings"]} == set(Area)
    assert {"Python", "sqlglot", "msgspec", "SQLite", "pyspark", "Java", "cores", "disk"} <= {
        finding["name"] for finding in answer["findings"]
    }


def test_a_missing_part_of_an_extra_is_said_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor_finding(monkeypatch, GOOD, NO_SPARK)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^  MISSING  pyspark  not installed$", shown, re.MULTILINE)
    assert re.search(r"^ +fix: pip install 'catchment\[cloud\]'$", shown, re.MULTILINE)
    assert shown.endswith("not yet what needs: cloud.\n")


def test_a_missing_part_of_the_core_answers_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor_finding(monkeypatch, GOOD, NO_CODEC)
    assert main(["doctor"]) == 1
    assert "cannot run here" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["usable"] is False


def test_what_was_found_stands_in_one_column() -> None:
    shown = doctor.text([GOOD, NO_SPARK], usable=True).splitlines()
    columns = {line.index(found) for line in shown for found in ("3.11.7", "not installed") if found in line}
    assert len(columns) == 1


@pytest.mark.parametrize(
    ("running", "state"),
    [
        ((3, 10, 9), State.MISSING),
        ((3, 11, 0), State.OK),
        ((3, 13, 4), State.OK),
        ((3, 14, 0), State.NOTE),
    ],
)
def test_python(running: tuple[int, int, int], state: State) -> None:
    assert examination.python(running).state is state


def test_a_package_that_is_not_there_says_which_extra_brings_it() -> None:
    found = examination.package(Requirement("no-such-package", (), "cloud"), Area.CLOUD)
    assert (found.state, found.fix) == (State.MISSING, "pip install --upgrade 'catchment[cloud]'")


def test_a_package_of_the_wrong_version_says_both_versions() -> None:
    found = examination.package(Requirement("msgspec", ((">=", (999,)),), None), Area.CORE)
    assert found.state is State.MISSING
    assert ">=999 is needed" in found.found
    assert found.fix == "pip install --upgrade catchment"


def test_a_package_that_cannot_be_imported_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(examination._MODULES, "msgspec", "catchment.no_such_module")
    found = examination.package(Requirement("msgspec", (), None), Area.CORE)
    assert found.state is State.MISSING
    assert "catchment.no_such_module" in found.found


def test_no_java_is_missing_with_the_reason_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    found = examination.java({"JAVA_HOME": "/nowhere", "PATH": ""})
    assert found.state is State.MISSING
    assert "/nowhere/bin/java" in found.found
    assert found.fix is not None
    assert "catchment[cloud]" in found.fix


def test_the_disk_is_that_of_the_nearest_directory_that_exists(tmp_path: Path) -> None:
    assert examination.disk(tmp_path / "not" / "yet", free_gb_min=0).found.endswith(str(tmp_path))


def test_a_full_disk_is_noted(tmp_path: Path) -> None:
    found = examination.disk(tmp_path, free_gb_min=1e9)
    assert (found.state, found.fix is not None) == (State.NOTE, True)


def test_a_directory_that_cannot_be_written_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # not by its mode: tests may run as root
    assert "cannot be written" in examination.disk(tmp_path, free_gb_min=0).found


def test_everything_missing_has_a_fix() -> None:
    assert all(finding.fix for finding in examination.examine({}, Path()) if finding.state is State.MISSING)


def test_what_the_product_asks_for_can_all_be_read() -> None:
    wanted = requirements()
    assert {each.name for each in wanted if each.extra is None} == {"sqlglot", "msgspec"}
    assert "pyspark" in {each.name for each in wanted if each.extra == "cloud"}


@pytest.mark.parametrize(
    ("line", "version", "allowed"),
    [
        ('pyspark==4.3.*; extra == "cloud"', "4.3.0", True),
        ('pyspark==4.3.*; extra == "cloud"', "4.30.0", False),
        ('pyspark==4.3.*; extra == "cloud"', "4.4.0", False),
        ("pandas>=2.2,<3", "2.10", True),
        ("pandas>=2.2,<3", "2.1.9", False),
        ("pandas>=2.2,<3", "3.0.1", False),
        ("sqlglot>=30", "30.30.0", True),
        ("pyright[nodejs]>=1.1.400; extra == 'dev'", "1.1.1000", True),
        ("types-PyYAML", "6.0.12.20261113", True),
        ("numpy>=2", "2.5.0rc1", True),
    ],
)
def test_bounds(line: str, version: str, allowed: bool) -> None:
    assert parse(line).allows(version) is allowed


def test_a_form_that_is_not_known_is_our_error() -> None:
    with pytest.raises(InternalError, match="E020"):
        parse("numpy~=2.0")


def test_arguments_have_defaults() -> None:
    parser = argparse.ArgumentParser()
    doctor.configure(parser)
    assert parser.parse_args([]).directory == Path()
