"""Many seeds: what is said meanwhile, what is noted, and that an interrupted run goes on where it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from catchment.sim import campaign as campaigns
from catchment.sim import trial as trials
from catchment.sim.campaign import campaign, stretches
from catchment.sim.notes import Notes, Tally
from catchment.sim.script import script_of
from catchment.sim.trial import ENDS, Trial, attempt
from catchment.sim.world import World


def test_pieces_of_seeds_lie_the_same_wherever_a_range_begins() -> None:
    assert stretches(range(250)) == [range(100), range(100, 200), range(200, 250)]
    assert stretches(range(150, 310)) == [range(150, 200), range(200, 300), range(300, 310)]
    assert stretches(range(3, 5)) == [range(3, 5)]


def test_an_interrupted_run_goes_on_and_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "STRETCH", 2)
    whole: list[str] = []
    assert campaign(range(6), whole.append, processes=1)

    def interrupted(seeds: object, **_: object) -> Iterator[Trial]:
        yield from map(attempt, map(script_of, (0, 1, 2)))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(campaigns, "trials", interrupted)
        campaign(range(6), whole.append, notes=Notes(tmp_path))
    (file,) = tmp_path.iterdir()
    with file.open("a") as cut_off:
        cut_off.write("[2, 4, [1, ")
    again: list[str] = []
    assert campaign(range(6), again.append, processes=1, notes=Notes(tmp_path))
    assert again[0] == "2 of 6 worlds were tried before, with this code"
    # The table of all that happened, and the last word.
    assert again[-2:] == whole[-2:]
    assert Notes(tmp_path).tally(range(2, 6)).tried == 4


def test_what_broke_is_shown_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(seeds: Iterable[int], **_: object) -> Iterator[Trial]:
        for seed in seeds:
            yield msgspec.structs.replace(attempt(script_of(seed)), promise="something")

    said: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(campaigns, "trials", breaking)
        patched.setattr(campaigns, "STRETCH", 1)
        assert not campaign(range(1), said.append, notes=Notes(tmp_path))
        assert "0 of 1 worlds kept every promise" in said[-1]
        assert not campaign(range(1), said.append, notes=Notes(tmp_path))


def test_notes_add_up() -> None:
    trial = attempt(script_of(0))
    tally = Tally()
    tally.add(trial)
    tally.add(trial)
    assert Tally.read(tally.line(range(2))) == (range(2), tally)
    assert (tally.tried, tally.events) == (2, 2 * trial.events)


def test_a_world_that_goes_round_in_a_circle_is_told_from_one_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def circle(self: World) -> None:
        while True:
            pass

    monkeypatch.setattr(trials, "LIMIT_S", 0.2)
    monkeypatch.setattr(World, "run", circle)
    trial = attempt(script_of(0))
    assert trial.promise == ENDS
    assert "in circle" in trial.how
