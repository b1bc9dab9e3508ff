"""A program from its file, and what is said when there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from catchment.errors import ProgramError
from catchment.program_file import load_program

ONE = "import catchment as cm\n{name} = cm.Program({name!r})\n"


@pytest.fixture(autouse=True)
def clean_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_file_with_one_program_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "only_one.py"
    path.write_text(ONE.format(name="walks"))
    assert load_program(str(path)).name == "walks"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"E031.*nowhere\.py"):
        load_program(str(tmp_path / "nowhere.py"))


def test_a_name_that_means_another_module_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "json.py"
    path.write_text(ONE.format(name="walks"))
    with pytest.raises(ProgramError, match="E032"):
        load_program(str(path))
    path.rename(tmp_path / "json_program.py")
    assert load_program(str(tmp_path / "json_program.py")).name == "walks"


def test_of_two_programs_one_must_be_said(tmp_path: Path) -> None:
    path = tmp_path / "two_programs.py"
    path.write_text(ONE.format(name="walks") + "rides = cm.Program('rides')\n")
    with pytest.raises(ProgramError, match="E033") as refused:
        load_program(str(path))
    assert refused.value.fix.endswith("two_programs.py:walks")
    assert load_program(f"{path}:rides").name == "rides"
