"""What a campaign notes of each stretch of seeds, so that a run of hours survives being interrupted.

Promises: a stretch is noted once all of it was tried, and counts only for the very code that tried it: what was noted
with other code, or another Python, lies in another file. A last line that was cut off is not read.

>>> tally = Tally(tried=100, events=7, broken=[12])
>>> Tally.read(tally.line(range(0, 100)))[1].broken
[12]
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from catchment.sim.trial import Trial


@dataclass
class Tally:
    """What trials came to, added up."""

    tried: int = 0
    events: int = 0
    elements: int = 0
    lasted_us: int = 0
    broken: list[int] = field(default_factory=list)
    """Seeds that broke a promise."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What happened, as coverage has it."""

    def add(self, trial: Trial) -> None:
        """One more."""
        self.include(
            Tally(
                1,
                trial.events,
                trial.elements,
                trial.lasted_us,
                [] if trial.held else [trial.script.seed],
                Counter(trial.counts),
            )
        )

    def include(self, other: Tally) -> None:
        """All of another."""
        self.tried += other.tried
        self.events += other.events
        self.elements += other.elements
        self.lasted_us += other.lasted_us
        self.broken += other.broken
        self.counts.update(other.counts)

    def line(self, seeds: range) -> str:
        """As a line of notes."""
        sums = [self.tried, self.events, self.elements, self.lasted_us]
        counts = [[*key, count] for key, count in sorted(self.counts.items())]
        return json.dumps([seeds.start, seeds.stop, sums, self.broken, counts])

    @classmethod
    def read(cls, line: str) -> tuple[range, Tally]:
        """A line of notes."""
        start, stop, (tried, events, elements, lasted_us), broken, counts = json.loads(line)
        counted = Counter({(kind, name): count for kind, name, count in counts})
        return range(start, stop), cls(tried, events, elements, lasted_us, broken, counted)


class Notes:
    """The notes of one state of the code, in a directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"{fingerprint()}.jsonl"
        self._noted: dict[range, Tally] = {}
        if self._path.exists():
            whole = self._path.read_text("utf-8").rpartition("\n")[0]
            self._noted = dict(Tally.read(line) for line in whole.splitlines())
            self._path.write_text(f"{whole}\n" if whole else "", "utf-8")

    def __contains__(self, seeds: range) -> bool:
        return seeds in self._noted

    def tally(self, seeds: range) -> Tally:
        """What was noted of stretches within those seeds."""
        total = Tally()
        for stretch, tally in self._noted.items():
            if stretch.start >= seeds.start and stretch.stop <= seeds.stop:
                total.include(tally)
        return total

    def keep(self, seeds: range, tally: Tally) -> None:
        """All of these were tried."""
        self._noted[seeds] = tally
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{tally.line(seeds)}\n")


def fingerprint() -> str:
    """Of the code that a world runs: the package and the interpreter."""
    seen = hashlib.blake2b(sys.version.encode(), digest_size=8)
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        seen.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return seen.hexdigest()
