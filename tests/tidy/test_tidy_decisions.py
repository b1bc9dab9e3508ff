"""A decision that is spoken of exists, and each has a number of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Set

import pytest

from tests.tidy.source import ROOT, assert_none, tracked

DECISIONS = "docs/decisions"
# "decisions/0052", "decision 0041", "decisions 0170 to 0172", and a decision's file by its name.
SPOKEN = re.compile(
    r"\bdecisions?[ /]+(\d{4}(?:(?:,| to| and| or) \d{4})*)(?!\d)|\b(\d{4})-[a-z][a-z-]*\.md\b", re.IGNORECASE
)


def numbers(text: str) -> Iterator[str]:
    """The decisions that a text speaks of."""
    for listed, named in SPOKEN.findall(text):
        yield from re.findall(r"\d{4}", listed or named)


def dangling(text: str, known: Set[str]) -> list[str]:
    """Those that are not there."""
    return [number for number in numbers(text) if number not in known]


def known() -> list[str]:
    return [path.name[:4] for path in (ROOT / DECISIONS).glob("*.md")]


def test_what_is_spoken_of_exists() -> None:
    there = set(known())
    found = []
    for path in tracked():
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ""}:
            text = (ROOT / path).read_text(encoding="utf-8", errors="ignore")
            found += [f"{path}: decision {number} does not exist" for number in dangling(text, there)]
    assert_none(found)


def test_each_number_is_one_decision_and_its_title_says_it() -> None:
    assert_none(f"decision {number} is there {times} times" for number, times in Counter(known()).items() if times > 1)
    for path in (ROOT / DECISIONS).glob("*.md"):
        assert path.read_text(encoding="utf-8").startswith(f"# {path.name[:4]}"), path.name


@pytest.mark.parametrize(
    "text",
    ["docs/decisions/99" + "98.", "see decision 99" + "98", "decisions 0001 to 99" + "98", "(99" + "98-a-file.md)"],
)
def test_a_reference_to_none_is_found(text: str) -> None:
    assert dangling(text, {"0001"}) == ["9998"]
