"""Bad programs: each mistake is refused with its code, line, cause and repair, and the repair builds.

A fixture in tests/fixtures/bad_programs is an author's file with one mistake (`# here` marks its line), all that the
error says of it, and the file repaired as the error says.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from catchment.errors import ProgramError
from catchment.plan.build import build
from catchment.plan.document import encoded, read
from tests.unit.plan.authors import programs, ran, run

FOLDER = Path(__file__).parents[2] / "fixtures" / "bad_programs"
FIXTURES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}


def built(name: str, text: str) -> list[Any]:
    with ran(name, text) as module:
        run(module, text)
        return [build(program) for program in programs(module)]


@pytest.mark.parametrize("name", FIXTURES)
def test_a_bad_program_is_refused(name: str) -> None:
    bad = FIXTURES[name]["bad"]
    with pytest.raises(ProgramError) as refused:
        built(name, bad)
    assert f"{refused.value}\n" == FIXTURES[name]["says"]
    (marked,) = [number for number, line in enumerate(bad.splitlines(), start=1) if line.endswith("# here")]
    assert refused.value.at is not None
    assert (refused.value.at.file, refused.value.at.line) == (f"{name}.py", marked)


@pytest.mark.parametrize("name", FIXTURES)
def test_its_repair_builds(name: str) -> None:
    fixture = FIXTURES[name]
    assert fixture["repaired"] != fixture["bad"]
    for plan in built(name, fixture["repaired"]):
        assert read(encoded(plan)) == plan


def test_they_are_many_and_different() -> None:
    codes = Counter(re.findall(r"^\w+\[([A-Z]\d{3})\]", fixture["says"])[0] for fixture in FIXTURES.values())
    assert len(codes) >= 100
    assert len(FIXTURES) >= 120


@pytest.mark.parametrize("name", FIXTURES)
def test_its_error_reads_well(name: str) -> None:
    says = FIXTURES[name]["says"]
    assert re.fullmatch(r"\w+Error\[[A-Z]\d{3}\] \w+\.py:\d+: .+\n  why: .+\n  fix: .+\n", says)
    assert not re.search(r"0x[0-9a-f]{6}|<class|FieldRef|  +\S.*\n\n| an? None\b", says)
    assert max(map(len, says.splitlines())) <= 200
