"""The shape of a module: it says its idea first, stays small, and has nothing unfinished in it."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

import pytest

from tests.tidy.source import ROOT, Module, assert_none, module, product, tracked

LINES_MAX = 400
# A file that is longer, with the reason why it is one idea all the same.
LONG: dict[str, str] = {}

# In two halves, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK|NotImplemented" + r"Error)\b")
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "misc", "common"}


def misshapen(each: Module) -> list[str]:
    """What is wrong with one module, one line each."""
    found = []
    if not ast.get_docstring(each.tree):
        found.append(f"{each.path}: opens with no docstring; say what it promises, knows and must not know")
    if set(PurePosixPath(each.path).with_suffix("").parts) & EMPTY_NAMES:
        found.append(f"{each.path}: a name that says nothing; name the idea")
    found.extend(
        f"{each.path}:{node.lineno}: {node.name}: name what it is, not that it manages"
        for node in each.nodes
        if isinstance(node, ast.ClassDef) and node.name.endswith("Manager")
    )
    return found


def unfinished(path: str, text: str) -> list[str]:
    lines = enumerate(text.splitlines(), start=1)
    return [f"{path}:{number}: {hit.group()}" for number, line in lines if (hit := UNFINISHED.search(line))]


def code() -> list[tuple[str, str]]:
    """Every tracked file of ours that is run: its path and its text."""
    wanted = [path for path in tracked() if path.suffix in {".py", ".sh"} or path.name in {"Makefile", "run"}]
    return [(path.as_posix(), (ROOT / path).read_text(encoding="utf-8")) for path in wanted]


def test_every_module_says_its_idea_and_has_a_name() -> None:
    assert_none(line for each in product() for line in misshapen(each))


def test_every_tracked_file_of_python_says_its_idea() -> None:
    ours = [(path, text) for path, text in code() if path.endswith(".py") and text.strip()]
    assert_none(f"{path}: opens with no docstring" for path, text in ours if not ast.get_docstring(ast.parse(text)))


def test_no_file_is_long_without_a_reason() -> None:
    lines = {path: text.count("\n") for path, text in code() if path.endswith(".py")}
    long = {path for path, count in lines.items() if count > LINES_MAX}
    too_long = f"lines, over {LINES_MAX}: look for the second idea, or give in LONG the reason why it is one"
    assert_none(f"{path}: {lines[path]} {too_long}" for path in sorted(long - LONG.keys()))
    assert_none(f"{path}: is not long any more; take it out of LONG" for path in sorted(LONG.keys() - long))


def test_nothing_is_unfinished() -> None:
    assert_none(line for path, text in code() for line in unfinished(path, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("catchment.plan.x", "import json"),
        ("catchment.plan.utils", '"""Things."""'),
        ("catchment.plan.x", '"""Things."""\nclass WindowManager: ...'),
    ],
)
def test_a_misshapen_module_is_found(name: str, text: str) -> None:
    assert len(misshapen(module(name, text))) == 1


def test_something_unfinished_is_found() -> None:
    text = "x = 1  # TO" + "DO: later\nraise NotImplemented" + "Error\n"
    assert [line.partition(": ")[0] for line in unfinished("x.py", text)] == ["x.py:1", "x.py:2"]
