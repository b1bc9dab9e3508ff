"""A campaign: many seeds tried with progress, then what broke, shrunk, and whether everything came up that may happen.

Promises: it holds only if every world held and, with enough seeds, every rule of the protocol's tables, every
misfortune and every fault of the network came up; a campaign that never saw a fault has shown nothing about it. One
that keeps notes goes on where it was interrupted, as long as the code is the same.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable

from catchment.sim.coverage import Coverage, rules_of
from catchment.sim.many import cores, trials
from catchment.sim.network import FAULTS
from catchment.sim.notes import Notes, Tally
from catchment.sim.script import KINDS, script_of
from catchment.sim.shrink import shrink
from catchment.sim.trial import attempt
from catchment.sync import admission, receiver, sender, session

ENOUGH = 1000
"""With so many seeds, everything that may happen does."""
SHOWN = 3
"""So many of the worlds that broke are shrunk and shown."""
SAY_S = 10.0
STRETCH = 100
"""So many seeds are noted together."""


def possible() -> set[tuple[str, str]]:
    """All that a run over many seeds has to have seen."""
    rules = rules_of(admission.TABLE, receiver.TABLE, sender.TABLE, session.TABLE)
    lit = {name for name in KINDS if name.endswith("at an action")} | {"gateway's disk is slow"}
    return {
        *rules,
        *(("misfortune", name) for name in KINDS),
        *(("burnt", name) for name in lit),
        # Over connections and requests, as here, nothing is doubled: that is for datagrams.
        *(("network", name) for name in FAULTS if name != "duplicate"),
    }


class Progress:
    """What is said while it runs: how far it is, how fast, and how long it will take."""

    def __init__(self, seeds: int, processes: int, say: Callable[[str], None]) -> None:
        self._seeds = seeds
        self._processes = processes
        self._say = say
        self._began_s = self._said_s = time.monotonic()
        self._before = 0

    def resumed(self, tried: int) -> None:
        """So many were tried by an earlier run."""
        self._before = tried
        if tried:
            self._say(f"{tried} of {self._seeds} worlds were tried before, with this code")

    def tried(self, total: Tally) -> None:
        """Say something, if it is time."""
        now_s = time.monotonic()
        if now_s - self._said_s <= SAY_S and total.tried < self._seeds:
            return
        self._said_s = now_s
        took_s = max(now_s - self._began_s, 1e-9)
        rate = (total.tried - self._before) / took_s
        left_s = (self._seeds - total.tried) / rate if rate else 0.0
        self._say(
            f"{total.tried} of {self._seeds} worlds, {total.events} events, {total.elements} elements, "
            f"{total.lasted_us / 86_400e6:.0f} days in {took_s:.0f} s on {self._processes} cores; {rate:.1f} worlds/s, "
            f"{left_s / 60:.0f} min left; {len(total.broken)} broke a promise"
        )


def campaign(
    seeds: range,
    say: Callable[[str], None],
    *,
    processes: int | None = None,
    notes: Notes | None = None,
) -> bool:
    """Try those seeds; whether everything held, and everything happened."""
    processes = processes or cores()
    total = Tally() if notes is None else notes.tally(seeds)
    progress = Progress(len(seeds), processes, say)
    progress.resumed(total.tried)
    left = [stretch for stretch in stretches(seeds) if notes is None or stretch not in notes]
    of = {seed: stretch for stretch in left for seed in stretch}
    tallies: defaultdict[range, Tally] = defaultdict(Tally)
    for trial in trials(of, processes=processes):
        if not trial.held:
            say(f"seed {trial.script.seed}: {trial.promise}\n  {trial.how}")
        stretch = of[trial.script.seed]
        tally = tallies[stretch]
        tally.add(trial)
        total.add(trial)
        if tally.tried == len(stretch) and notes is not None:
            notes.keep(stretch, tallies.pop(stretch))
        progress.tried(total)
    return _verdict(seeds, total, say)


def stretches(seeds: range) -> list[range]:
    """The seeds in pieces that lie the same, wherever the range begins."""
    edges = sorted({seeds.start, seeds.stop, *range(-(-seeds.start // STRETCH) * STRETCH, seeds.stop, STRETCH)})
    return [range(start, stop) for start, stop in itertools.pairwise(edges)]


def _verdict(seeds: range, total: Tally, say: Callable[[str], None]) -> bool:
    coverage = Coverage()
    coverage.add(total.counts)
    say(coverage.table(possible()))
    for seed in sorted(total.broken)[:SHOWN]:
        say(shrink(attempt(script_of(seed))).report())
    never = coverage.never(possible())
    if len(seeds) >= ENOUGH:
        for kind, name in never:
            say(f"never came up: {kind}: {name}")
    say(
        f"{total.tried - len(total.broken)} of {total.tried} worlds kept every promise; lossless and in order, as the "
        f"verifier has it; {len(possible()) - len(never)} of {len(possible())} rules and faults came up"
    )
    return not total.broken and (len(seeds) < ENOUGH or not never)
