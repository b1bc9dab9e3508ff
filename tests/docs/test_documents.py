"""Every python block of the documents runs, those of a page one after the other; links lead somewhere.

A block that begins with `>>>` prints what it shows. Any other is a script.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
RUNNING = [page for page in PAGES if BLOCK.search(page.read_text())]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUNNING, ids=_name)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    blocks = [match[1] for match in BLOCK.finditer(text)]
    if blocks[0].startswith(">>>"):
        parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
        results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed)
        assert results.attempted > 0
        assert results.failed == 0
        return
    # A file, so that classes and functions have source to be hashed, and errors the lines of the page.
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        first = text[: block.start(1)].count("\n")
        for offset, line in enumerate(block[1].splitlines()):
            lines[first + offset] = line
    script = tmp_path / f"{page.stem.replace('-', '_')}.py"
    script.write_text("\n".join(lines))
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


def test_the_pages_that_run_are_found() -> None:
    assert {"docs/tutorial/first-program.md", "docs/concepts/reliability.md"} <= {_name(page) for page in RUNNING}
