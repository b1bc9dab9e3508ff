"""`catchment explain`: text, Mermaid and JSON of a program, before and after each rewrite, with reasons."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import catchment as cm
from catchment.cli import main
from catchment.plan.explain import explain, listing, mermaid, text
from catchment.plan.explain import json as as_json
from catchment.plan.graph import graph_of
from catchment.plan.rewrites import REWRITES
from tests.unit.plan.programs import everything, peir

SOURCE = """
import catchment as cm
from tests.unit.plan.programs import {name}

program = {name}()
"""

NODE = re.compile(r'    s\d+\["[^"]*"\]')
ARROW = re.compile(r'  s\d+ (?:-->|==>|-\.->)(?:\|"[^"]*"\|)? s\d+')
GROUP = re.compile(r'  subgraph \w+\["[^"]*"\]')


def valid_mermaid(diagram: str) -> bool:
    """A flowchart of boxes within subgraphs and arrows, each label quoted, as Mermaid's grammar has them."""
    first, *lines = diagram.splitlines()
    inside = False
    boxes: set[str] = set()
    for line in lines:
        if GROUP.fullmatch(line) and not inside:
            inside = True
        elif line == "  end" and inside:
            inside = False
        elif NODE.fullmatch(line) and inside:
            boxes.add(line.split("[")[0].strip())
        elif not (ARROW.fullmatch(line) and not inside and set(re.findall(r"\bs\d+\b(?=$| [-=])", line)) <= boxes):
            return False
    return first == "flowchart LR" and not inside


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of author's files, and nothing of it left in Python afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "explained.py"
    path.write_text(SOURCE.format(name="everything"))
    return path


def test_text_says_what_each_rewrite_did_and_why() -> None:
    said = text(explain(graph_of(peir())), every_stage=False)
    assert "rewrite panes\n  footprint/aggregated aggregates each slide once and combines 12 panes\n" in said
    assert "    because an element is in 12 windows, and is added to one pane\n" in said
    assert "sync fixes: fixes@device to trips@cloud: batches of 100 records or 1 min" in said
    assert "trips says how its input arrives" in said
    assert "as written" not in said


def test_text_with_rewrites_shows_the_graph_before_and_after() -> None:
    said = text(explain(graph_of(peir())), every_stage=True)
    before, after = said.split("rewrite panes", maxsplit=1)
    assert "as written\n  fixes/sensor " in before
    assert ", by panes" not in before
    assert ", by panes" in after


def test_the_columns_of_a_listing_are_aligned() -> None:
    lines = listing(graph_of(everything()))
    places = {line.index("  < ") for line in lines if "  < " in line}
    assert len(places) == 1
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("program", [peir, everything])
@pytest.mark.parametrize("every_stage", [False, True])
def test_mermaid_is_valid(program: Callable[[], cm.Program], every_stage: bool) -> None:
    page = mermaid(explain(graph_of(program())), every_stage=every_stage)
    diagrams = re.findall(r"```mermaid\n(.*?)```", page, flags=re.DOTALL) if every_stage else [page]
    assert len(diagrams) > every_stage
    assert [d for d in diagrams if not valid_mermaid(d)] == []


def test_what_is_not_mermaid_is_told_apart() -> None:
    assert not valid_mermaid('flowchart LR\n  subgraph p0["a"]\n    s0["say "hello""]\n  end\n')
    assert not valid_mermaid('flowchart LR\n  subgraph p0["a"]\n    s0["x"]\n  end\n  s0 --> s1\n')


def test_json_holds_the_reasons_and_the_plan() -> None:
    whole = json.loads(as_json(explain(graph_of(peir())), every_stage=True))
    assert [stage["rewrite"] for stage in whole["rewrites"]] == [name for name, _ in REWRITES]
    assert whole["plan"]["format"] == "catchment-plan"
    assert whole["rewrites"][-1]["changes"][0]["step"] == "footprint/aggregated"
    assert len(whole["before"]["vertices"]) == len(whole["rewrites"][-1]["after"]["vertices"])


def test_the_command_prints_each_format(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, begins in (
        ([], "program everything"),
        (["--format", "mermaid"], "flowchart LR"),
        (["--format", "json"], "{"),
        (["--rewrites"], "program everything"),
    ):
        assert main(["explain", str(file), *arguments]) == 0
        assert capsys.readouterr().out.startswith(begins)


def test_a_rewrite_can_be_left_out(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(file)]) == 0
    assert ", by panes" in capsys.readouterr().out
    assert main(["explain", str(file), "--without", "panes"]) == 0
    assert ", by panes" not in capsys.readouterr().out


def test_the_command_tells_every_mistake(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "mistaken.py"
    path.write_text(
        SOURCE.format(name="peir")
        + "loop = program.loop(cm.Beat, 'again')\n"
        + "program.streams['trips'].where('carbon_g > 1')\n"
    )
    assert main(["explain", str(path)]) == 2
    said = capsys.readouterr().err
    assert "ProgramError[C249] mistaken.py:6" in said
    assert "ProgramError[C240] mistaken.py:7" in said
