"""Each rewrite alone, on a program that it is for: the graph before, what it says that it does, the graph after.

A fixture in tests/fixtures/rewrites is an author's text with what `catchment explain` says of it.
`python -m tests.unit.plan.test_rewrites_fixtures` writes that anew, to be read before it is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from catchment.plan.build import checked
from catchment.plan.check import mistakes
from catchment.plan.explain import listing
from catchment.plan.place import place
from catchment.plan.rewrites import REWRITES, stages
from tests.unit.plan.authors import programs, ran, run

FOLDER = Path(__file__).parents[2] / "fixtures" / "rewrites"
FIXTURES = sorted(FOLDER.glob("*/*.yaml"))
NAMES = [name for name, _ in REWRITES]


def told(path: Path, text: str) -> dict[str, Any]:
    """What the rewrite that the folder is named for makes of the program."""
    name = path.stem
    with ran(name, text) as module:
        run(module, text)
        (program,) = programs(module)
        before = checked(program)
        (stage,) = stages(before, without=[other for other in NAMES if other != path.parent.name])
        assert [str(mistake) for mistake in mistakes(stage.graph)] == []
        plan = place(stage.graph)
    changes = [
        f"{'' if change.done else 'not done: '}{change.step} {change.what}, because {change.why}"
        for change in stage.changes
    ]
    return {
        "before": "".join(f"{line}\n" for line in listing(before)),
        "changes": changes,
        "after": "".join(f"{line}\n" for line in listing(stage.graph)),
        "sent": [f"{s.name}: {', '.join(plan.schemas[s.schema].names)}" for s in plan.syncs],
    }


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_rewrite_does_what_its_fixture_says(path: Path) -> None:
    fixture = yaml.safe_load(path.read_text())
    found = told(path, fixture["program"])
    assert {key: fixture[key] for key in found} == found


def test_every_rewrite_has_fixtures_of_what_it_does_and_what_it_leaves() -> None:
    for name in NAMES:
        fixtures = [yaml.safe_load(path.read_text()) for path in FIXTURES if path.parent.name == name]
        assert any(fixture["before"] != fixture["after"] for fixture in fixtures), name
        assert any(fixture["before"] == fixture["after"] for fixture in fixtures), name


class _Lines(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Lines.add_representer(str, _text)


def write(path: Path) -> None:
    """Write anew what a fixture expects."""
    fixture = yaml.safe_load(path.read_text())
    fixture = {"about": fixture["about"], "program": fixture["program"]} | told(path, fixture["program"])
    path.write_text(yaml.dump(fixture, Dumper=_Lines, sort_keys=False, width=10_000, allow_unicode=True))


if __name__ == "__main__":
    for each in sorted(FOLDER.glob(sys.argv[1] if len(sys.argv) > 1 else "*/*.yaml")):
        write(each)
