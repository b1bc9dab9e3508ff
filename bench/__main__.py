"""Runs benchmarks, each in a process of its own, shows what they print, and keeps their closing lines.

    python -m bench [--quick] [--list] [NAME …]

Results go to `bench/results/NAME.json` (of a quick run: `NAME.quick.json`, so that it never replaces a full one).
The exit code is 0 when every bar of every benchmark held.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.harness import table

BENCH = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one benchmark ended. `bars` is empty when it printed no result."""

    name: str
    exit_code: int
    bars: dict[str, bool]
    took_s: float

    @property
    def good(self) -> bool:
        return self.exit_code == 0 and bool(self.bars) and all(self.bars.values())


def benchmarks(directory: Path) -> list[str]:
    """The files that are benchmarks: those with a `main`. None is imported to find out."""
    return sorted(path.stem for path in directory.glob("[!_]*.py") if _has_main(path))


def _has_main(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def run(name: str, *, quick: bool, directory: Path, results: Path) -> Outcome:
    """One benchmark, to its end."""
    print(f"[bench] {name}{' (quick)' if quick else ''}", flush=True)
    start = time.monotonic()
    last = ""
    with subprocess.Popen(
        [sys.executable, "-m", f"{directory.name}.{name}", *(["--quick"] if quick else [])],
        cwd=directory.parent,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip() or last
    took_s = time.monotonic() - start
    result = _result(last)
    if result is not None:
        results.mkdir(parents=True, exist_ok=True)
        kept = results / f"{name}{'.quick' if quick else ''}.json"
        kept.write_text(json.dumps({**result, "took_s": round(took_s, 1)}, indent=2) + "\n", encoding="utf-8")
    bars = result.get("bars") if result is not None else None
    return Outcome(name, process.returncode, bars if isinstance(bars, dict) else {}, took_s)


def _result(line: str) -> dict[str, object] | None:
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and "bars" in result else None


def summary(outcomes: Iterable[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        failed = [claim for claim, held in outcome.bars.items() if not held]
        said = "; ".join(failed) if outcome.bars else f"printed no result (exit code {outcome.exit_code})"
        held = f"{len(outcome.bars) - len(failed)}/{len(outcome.bars)}"
        rows.append(["ok" if outcome.good else "FAILED", outcome.name, held, f"{outcome.took_s:.0f} s", said])
    return table(["", "benchmark", "bars", "took", "what did not hold"], rows)


def main(argv: list[str] | None = None, *, directory: Path = BENCH) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks.")
    parser.add_argument("--quick", action="store_true", help="smaller inputs: each ends within a minute after set-up")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and end")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    chosen = parser.parse_args(argv)
    known = benchmarks(directory)
    if chosen.list:
        print("\n".join(known))
        return 0
    if unknown := [name for name in chosen.names if name not in known]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(known) or 'none'}")
    try:
        names = chosen.names or known
        outcomes = [run(name, quick=chosen.quick, directory=directory, results=directory / "results") for name in names]
    except KeyboardInterrupt:
        return 130
    print(summary(outcomes), flush=True)
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
