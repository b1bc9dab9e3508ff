"""The page on reliability runs: each fenced python block prints what it shows, one after the other."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "reliability.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_shows() -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    page = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(page)
    assert len(blocks) >= 4
    assert results.attempted >= 15
    assert results.failed == 0


def test_the_page_links_to_what_is_there() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
