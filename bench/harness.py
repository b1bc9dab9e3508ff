"""What every benchmark is made of: sides that race, answers that must agree, bars, and one closing line of JSON.

A benchmark is a file `bench/NAME.py` with a `main` that returns an exit code:

    def main() -> int:
        quick = harness.arguments(__doc__).parse_args().quick
        race = harness.race([harness.timed("ours", ours), harness.timed("plain loop", loop)], rounds=3 if quick else 7)
        print(race.table(count=len(fixes), unit="fixes"))
        ratio = race.ratio("ours", over="plain loop")
        bars = [harness.Bar("at least half of a plain loop", ratio, at_least=0.5)]
        return harness.conclude("edge_engine", quick=quick, ratios={"plain loop": ratio}, bars=bars)

The machine is shared and its speed drifts, so no time means anything alone: sides run in turn, round after
round, each round in another order, and a ratio is the median over rounds of two times from the same round.

Knows clocks and text; nothing of what is measured. A side in another environment: see `bench/peer.py`.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import operator
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of one side. `seconds` are of the clock that the benchmark states, the same for all sides."""

    seconds: float
    answer: object


@dataclass(frozen=True, slots=True)
class Side:
    """A way to do the work. `run` does all of it once and times the part that counts."""

    name: str
    run: Callable[[], Reading]


class AnswersDifferError(Exception):
    """Two sides did not do the same work, so their times cannot be compared."""


@dataclass(frozen=True, slots=True)
class Race:
    """The seconds of each side, by round."""

    seconds: Mapping[str, tuple[float, ...]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, *, over: str) -> float:
        """How many times as fast `name` is as `over`: the median over the rounds."""
        return statistics.median(self._ratios(name, over))

    def table(self, count: int, unit: str) -> str:
        """Each side's rate, and how many times as fast the first side is, with the least and the most of the rounds."""
        first = next(iter(self.seconds))
        rows = []
        for name in self.seconds:
            median, ratios = self.median(name), self._ratios(first, name)
            spread = "" if name == first else f"{statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"
            rows.append([name, f"{median:.3f}", f"{count / median:,.0f}", spread])
        return table(["side", "seconds", f"{unit}/s", f"{first} is"], rows)

    def _ratios(self, name: str, over: str) -> list[float]:
        return [theirs / ours for ours, theirs in zip(self.seconds[name], self.seconds[over], strict=True)]


@dataclass(frozen=True, slots=True)
class Bar:
    """A claim, what was measured for it, and the bound that it must keep."""

    claim: str
    measured: float
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def holds(self) -> bool:
        return self.at_least <= self.measured <= self.at_most

    @property
    def bound(self) -> str:
        low = [f">= {self.at_least:g}"] if self.at_least > -math.inf else []
        high = [f"<= {self.at_most:g}"] if self.at_most < math.inf else []
        return " and ".join(low + high)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The command line of a benchmark: `--quick`, which QUICK=1 in the environment sets too."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    preset = os.environ.get("QUICK", "0") not in {"", "0"}
    parser.add_argument("--quick", action="store_true", default=preset, help="a smaller input; ends within a minute")
    return parser


def timed(name: str, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Side:
    """A side in this process. What `work` returns is its answer."""

    def run() -> Reading:
        # What the last side left behind is not this one's to pay for.
        gc.collect()
        start = clock()
        answer = work()
        return Reading(clock() - start, answer)

    return Side(name, run)


def race(
    sides: Sequence[Side],
    *,
    rounds: int,
    warm_ups: int = 1,
    same: Callable[[object, object], bool] = operator.eq,
) -> Race:
    """Run all sides in turn, `rounds` times after `warm_ups` that do not count; every answer must be the `same`."""
    if len({side.name for side in sides}) != len(sides):
        raise ValueError("two sides of a race have one name")
    seconds: dict[str, list[float]] = {side.name: [] for side in sides}
    first: Reading | None = None
    for round_number in range(warm_ups + rounds):
        start = round_number % len(sides)
        for side in [*sides[start:], *sides[:start]]:
            reading = side.run()
            # The first answer of all is the one that every later one is held to.
            first = first or reading
            if not same(first.answer, reading.answer):
                raise AnswersDifferError(
                    f"{side.name} answered {_shortened(reading.answer)}, "
                    f"where {sides[0].name} answered {_shortened(first.answer)}"
                )
            if round_number >= warm_ups:
                seconds[side.name].append(reading.seconds)
    return Race({name: tuple(readings) for name, readings in seconds.items()})


def nearly_equal(one: object, other: object, *, relative: float = 1e-9) -> bool:
    """Equal, except that floats may differ by `relative`; looks into lists, tuples and dicts."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=relative) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(nearly_equal(a, b, relative=relative) for a, b in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(nearly_equal(one[k], other[k], relative=relative) for k in one)
    return one == other


def conclude(
    name: str,
    *,
    quick: bool,
    ratios: Mapping[str, float],
    bars: Sequence[Bar],
    figures: Mapping[str, object] | None = None,
) -> int:
    """Print the bars, and the closing line of JSON; the exit code is 0 when every bar holds."""
    if not bars:
        raise ValueError("a benchmark without a bar shows nothing")
    rows = [["holds" if bar.holds else "FAILS", bar.claim, f"{bar.measured:.3g}", bar.bound] for bar in bars]
    print(table(["", "claim", "measured", "bound"], rows), flush=True)
    result = {
        "name": name,
        "quick": quick,
        "machine": machine(),
        "ratios": {peer: round(ratio, 4) for peer, ratio in ratios.items()},
        "bars": {bar.claim: bar.holds for bar in bars},
        "figures": dict(figures or {}),
    }
    print(json.dumps(result), flush=True)
    return 0 if all(bar.holds for bar in bars) else 1


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; numbers to the right, words to the left."""
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    number = [all(cell[:1].isdigit() or cell[:1] == "-" for cell in column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        placed = zip(cells, widths, number, strict=True)
        return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in placed).rstrip()

    return "\n".join([line(headings), line(["-" * width for width in widths]), *map(line, rows)])


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": cores,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        # Others' work on the same cores: the reason why only ratios are believed.
        "load_1_min": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _shortened(answer: object, width: int = 200) -> str:
    text = repr(answer)
    return text if len(text) <= width else f"{text[:width]}… ({len(text)} characters)"
