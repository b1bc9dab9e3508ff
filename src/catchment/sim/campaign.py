"""A campaign: many seeds tried with progress, then what broke, shrunk, and whether everything came up that may happen.

Promises: it holds only if every world held and, with enough seeds, every rule of the protocol's tables, every
misfortune and every fault of the network came up; a campaign that never saw a fault has shown nothing about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from catchment.sim.coverage import Coverage, rules_of
from catchment.sim.many import cores, trials
from catchment.sim.network import FAULTS
from catchment.sim.script import KINDS
from catchment.sim.shrink import shrink
from catchment.sync import admission, receiver, sender, session

ENOUGH = 1000
"""With so many seeds, everything that may happen does."""
SHOWN = 3
"""So many of the worlds that broke are shrunk and shown."""
SAY_S = 10.0


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


def campaign(seeds: int, say: Callable[[str], None]) -> bool:
    """Try that many seeds; whether everything held, and everything happened."""
    coverage, broken = Coverage(), []
    began_s = said_s = time.monotonic()
    tried = elements = events = lasted_us = 0
    for trial in trials(range(seeds)):
        coverage.add(trial.counts)
        tried, elements, events = tried + 1, elements + trial.elements, events + trial.events
        lasted_us += trial.lasted_us
        if not trial.held:
            broken.append(trial)
            say(f"seed {trial.script.seed}: {trial.promise}\n  {trial.how}")
        now_s = time.monotonic()
        if now_s - said_s > SAY_S or tried == seeds:
            said_s = now_s
            say(
                f"{tried} of {seeds} worlds, {events} events, {elements} elements, {lasted_us / 86_400e6:.0f} days "
                f"in {now_s - began_s:.0f} s on {cores()} cores; {len(broken)} broke a promise"
            )
    say(coverage.table(possible()))
    for trial in sorted(broken, key=lambda trial: trial.events)[:SHOWN]:
        say(shrink(trial).report())
    never = coverage.never(possible()) if seeds >= ENOUGH else []
    for kind, name in never:
        say(f"never came up: {kind}: {name}")
    say(
        f"{tried - len(broken)} of {tried} worlds kept every promise; lossless and in order, as the verifier has it; "
        f"{len(possible()) - len(coverage.never(possible()))} of {len(possible())} rules and faults came up"
    )
    return not broken and not never
