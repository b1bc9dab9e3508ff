"""The simulator finds bugs that were put there on purpose, each within a thousand seeds; so it would find others.

Each test begins with a seed that is known to find its bug, and goes through the others only if the code has changed so
much that this one does not any more.
"""

from __future__ import annotations

import itertools

import pytest

from catchment.sim.script import script_of
from catchment.sim.trial import attempt
from tests.simulation.mutants import MUTANTS, planted

SEEDS = 1000


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_is_found(name: str) -> None:
    with planted(name):
        for seed in itertools.chain([MUTANTS[name].seed], range(SEEDS)):
            if not attempt(script_of(seed)).held:
                break
        else:
            pytest.fail(f"{SEEDS} seeds did not find that {name}")
    assert attempt(script_of(seed)).held


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 8
