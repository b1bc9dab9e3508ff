"""The figures of the paper, each in our words, print what stands beside them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FIGURES = sorted((Path(__file__).parents[2] / "examples" / "figures").glob("figure_*.py"))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_a_figure_prints_what_stands_beside_it(figure: Path) -> None:
    ran = subprocess.run([sys.executable, str(figure)], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == figure.with_suffix(".txt").read_text()


def test_all_three_are_here() -> None:
    assert [path.stem for path in FIGURES] == ["figure_1", "figure_13", "figure_2"]
