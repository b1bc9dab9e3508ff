"""`python -m bench`: which files are benchmarks, what is kept of a run, and when the whole run is good."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main

GOOD = """
import json, sys
def main():
    print("a table")
    print(json.dumps({"name": "good", "quick": "--quick" in sys.argv, "bars": {"fast": True}}))
    return 0
sys.exit(main())
"""
SLOW = """
import json, sys
def main():
    print(json.dumps({"name": "slow", "bars": {"fast": False, "small": True}}))
    return 1
sys.exit(main())
"""
SILENT = "def main(): ...\n"
CRASHES_LATE = GOOD.replace("return 0", "return 1")


def a_directory(tmp_path: Path, **files: str) -> Path:
    directory = tmp_path / "measured"
    directory.mkdir()
    (directory / "shared.py").write_text("def not_a_benchmark(): ...\n")
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    return directory


def test_a_benchmark_is_a_file_with_a_main(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = a_directory(tmp_path, slow=SLOW, good=GOOD)
    assert main(["--list"], directory=directory) == 0
    assert capsys.readouterr().out.split() == ["good", "slow"]


def test_what_it_prints_is_shown_and_its_result_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    directory = a_directory(tmp_path, good=GOOD)
    assert main(["good"], directory=directory) == 0
    assert "a table\n" in capfd.readouterr().out
    kept = json.loads((directory / "results" / "good.json").read_text())
    assert (kept["bars"], kept["quick"]) == ({"fast": True}, False)
    assert kept["took_s"] >= 0


def test_a_quick_run_does_not_replace_the_result_of_a_full_one(tmp_path: Path) -> None:
    directory = a_directory(tmp_path, good=GOOD)
    assert main(["--quick", "good"], directory=directory) == 0
    assert [path.name for path in (directory / "results").iterdir()] == ["good.quick.json"]
    assert json.loads((directory / "results" / "good.quick.json").read_text())["quick"] is True


def test_one_bar_that_does_not_hold_fails_the_run_and_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = a_directory(tmp_path, good=GOOD, slow=SLOW)
    assert main([], directory=directory) == 1
    shown = capfd.readouterr().out.splitlines()
    assert shown[-2].split()[:3] == ["ok", "good", "1/1"]
    assert shown[-1].split()[:3] == ["FAILED", "slow", "1/2"]
    assert shown[-1].endswith("fast")


@pytest.mark.parametrize("text", [SILENT, CRASHES_LATE])
def test_a_benchmark_without_a_result_or_with_a_bad_end_fails_the_run(tmp_path: Path, text: str) -> None:
    assert main(["it"], directory=a_directory(tmp_path, it=text)) == 1


def test_a_name_that_is_none_is_refused_with_those_that_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["shared"], directory=a_directory(tmp_path, good=GOOD))
    assert "no benchmark is called shared; there are: good" in capsys.readouterr().err
