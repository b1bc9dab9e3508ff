"""Runs the benchmarks that stand beside Sonora's section 5, and writes one report of them.

    python -m bench.sonora [--quick] [--report-only]

The report is `bench/results/sonora/report.html`, and `report.md` with its plots beside it. A benchmark that did not run
is said to be missing, with its command. The exit code is 0 when every bar of every one held.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench.__main__ import BENCH
from bench.__main__ import main as run_benchmarks
from bench.sonora.items import ITEMS, LEAD, TITLE, Item, Missing, Results
from bench.sonora.page import Block, Figure, Section, Text, html, markdown

RESULTS = BENCH / "results"


def read(names: list[str], *, quick: bool, results: Path) -> Results:
    """What was measured last, of those that were."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        kept = results / f"{name}{'.quick' if quick else ''}.json"
        if kept.exists():
            found[name] = json.loads(kept.read_text(encoding="utf-8"))
    return Results(found)


def section(item: Item, results: Results) -> Section:
    """Theirs, ours, what differs, and the command."""
    blocks: list[Block] = [Text(f"**Theirs.** {item.theirs}")]
    try:
        blocks += item.ours(results)
    except Missing as missing:
        blocks.append(Text(f"**Ours.** Not measured on this machine yet: `make bench NAME={missing.name}`."))
    blocks.append(Text(f"**What differs.** {item.differs}"))
    if item.benchmarks:
        commands = ", ".join(f"`make bench NAME={name}`" for name in item.benchmarks)
        blocks.append(Text(f"Made by {commands}."))
    return Section(item.title, blocks)


def write(results: Results, folder: Path, lead: str) -> Path:
    """The report, both ways. Returns the HTML file."""
    sections = [section(item, results) for item in ITEMS]
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (block for each in sections for block in each.blocks if isinstance(block, Figure)):
        (folder / f"{figure.name}.svg").write_text(figure.standing_alone(), encoding="utf-8")
    (folder / "report.md").write_text(markdown(TITLE, lead, sections), encoding="utf-8")
    page = folder / "report.html"
    page.write_text(html(TITLE, lead, sections), encoding="utf-8")
    return page


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sonora", description="Write the report on Sonora's section 5."
    )
    parser.add_argument("--quick", action="store_true", help="smaller inputs; the report says so")
    parser.add_argument("--report-only", action="store_true", help="of what was measured before")
    chosen = parser.parse_args()
    names = sorted({name for item in ITEMS for name in item.benchmarks})
    status = 0 if chosen.report_only else run_benchmarks([*(["--quick"] if chosen.quick else []), *names])
    results = read(names, quick=chosen.quick, results=RESULTS)
    page = write(results, RESULTS / "sonora", f"{LEAD} {results.machine}{QUICK if chosen.quick else ''}")
    print(f"[bench] the report is in {page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page}")
    return status


QUICK = " **These are quick runs on small inputs: they show that it works, and no more.**"

if __name__ == "__main__":
    sys.exit(main())
