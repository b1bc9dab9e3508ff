"""Devices and gateways under every fault that a seed can think of: whatever happens, what was promised holds.

A few seeds here; `make simulate SEEDS=10000` tries as many on all cores, and asks that everything came up that may
happen. What a world is held to is in `catchment.sim`: at each acknowledgement that what it says is on the medium, at
each step of a device that it is within its bounds and has forgotten nothing that is not safe, at each entry of the log
that numbers, epochs, event times and promises follow each other, and at the end the reliability verifier's word:
lossless, in order.
"""

from __future__ import annotations

import msgspec
import pytest

from catchment.sim.campaign import possible
from catchment.sim.clock import SECOND_US
from catchment.sim.coverage import Coverage
from catchment.sim.misfortunes import kinds
from catchment.sim.network import Conditions
from catchment.sim.script import KINDS, Misfortune, Script, script_of
from catchment.sim.shrink import shrink
from catchment.sim.trial import attempt
from tests.simulation.mutants import planted

SEEDS = 96
"""So many take some seconds."""
PER_TEST = 24


def test_every_misfortune_of_a_script_is_known() -> None:
    assert set(KINDS) == kinds()


@pytest.mark.parametrize("seed", [0, 7, 21])
def test_a_seed_is_the_same_world_each_time(seed: int) -> None:
    assert attempt(script_of(seed)).digest == attempt(script_of(seed)).digest


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_whatever_goes_wrong_every_promise_holds(first: int) -> None:
    coverage = Coverage()
    for seed in range(first, first + PER_TEST):
        trial = attempt(script_of(seed))
        coverage.add(trial.counts)
        assert trial.held, shrink(trial).report()
    # Few worlds do not meet everything, but most of what there is.
    assert len(coverage.never(possible())) < len(possible()) // 2


def one_device(seed: int, *misfortunes: Misfortune, **changes: object) -> Script:
    """A world of one device from the script of a seed, with these misfortunes and no bad weather."""
    script = msgspec.structs.replace(script_of(seed), misfortunes=misfortunes, usual=Conditions(), partitions=1)
    return msgspec.structs.replace(script, devices=script.devices[:1], **changes)


REGRESSIONS = {
    # What the other copy had not drained was refused for ever.
    "an epoch that another live copy has ended": one_device(
        190,
        Misfortune(10 * SECOND_US, "device lives twice", count=1),
        Misfortune(11 * SECOND_US, "gateway stops cleanly", for_us=SECOND_US),
    ),
    # Its successor took what only the page cache had for durable, and said so.
    "a process killed after a sync that failed": one_device(
        4,
        Misfortune(10 * SECOND_US, "log's syncs fail", who=3, for_us=4 * SECOND_US),
        Misfortune(10 * SECOND_US, "gateway killed at an action", for_us=6 * SECOND_US, count=6),
        gateways=1,
        active_us=40 * SECOND_US,
    ),
    # It rested until the clock was back where it had been, which was for hours.
    "a gateway's clock that is set back while its disk fails": one_device(
        1880,
        Misfortune(10 * SECOND_US, "log's writes fail", for_us=20 * SECOND_US),
        Misfortune(20 * SECOND_US, "gateway's clock jumps", count=-28),
        gateways=1,
    ),
    # It stayed shut: there was nothing to set it aside with.
    "a database that rots": one_device(276, Misfortune(19 * SECOND_US, "device's image rots", count=3)),
    # Making room looked for ever for an entry that no search finds; and once it was mended, what the gateway had of it
    # was news to the outbox and not to the sender, and nothing went any more.
    "a key that rots": script_of(4569),
    # It was logged, but its segment's mark could not be moved: it was refused, sent again, and logged twice.
    "a mark that could not be written": script_of(9466),
    # After its disk had failed a gateway took a frame of an epoch that had not begun, and so ended the one that had.
    "a frame from the future after a failed disk": script_of(2135),
    # The tick that shared a block with a device's first upload knew nothing of that device, and came after it.
    "a tick beside the first upload of a device": script_of(6106),
    # A process that stood still when it was suspended went on as soon as it stood still no longer.
    "a gateway that stands still when it is suspended": script_of(3999),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_what_broke_once_holds(name: str) -> None:
    trial = attempt(REGRESSIONS[name])
    assert trial.held, trial.report()


def test_a_start_that_trusts_the_page_cache_after_a_failed_sync_is_noticed() -> None:
    with planted("a start trusts the page cache after a failed sync"):
        assert not attempt(REGRESSIONS["a process killed after a sync that failed"]).held


def test_a_world_that_breaks_is_shrunk_to_what_breaks_it() -> None:
    with planted("acknowledged before it is on the disk"):
        trial = attempt(script_of(1))
        assert trial.promise == "readers see what a power cut would take"
        least = shrink(trial)
    assert (least.promise, least.script.misfortunes, len(least.script.devices)) == (trial.promise, (), 1)
    assert "make simulate SEED=1" in least.report()
