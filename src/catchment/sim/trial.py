"""A trial: one script run to its end, and what is to be said of it.

Promises: whatever goes wrong in it, also an exception that nobody expected, is a result and not a crash; two trials of
one script have the same digest, or something in the world does not follow from the seed.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec

from catchment.sim.broken import Broken
from catchment.sim.coverage import Coverage
from catchment.sim.script import Script
from catchment.sim.world import World

RAISED = "nothing raises what nobody expects"
"""The promise that an exception breaks."""
ENDS = "whatever is done comes to an end"
"""The promise that something breaks that goes round in a circle, without an event that would be counted."""
LIMIT_S = 300.0
"""A world takes a twentieth of a second. One that takes so long never ends."""


class _EndlessError(BaseException):
    """It goes on and on. Not an `Exception`: nothing may catch it and go on."""


class Trial(msgspec.Struct, frozen=True):
    """How it went."""

    script: Script
    promise: str
    """What was broken; empty if everything held."""
    how: str
    trace: tuple[str, ...]
    """The last lines of what happened, if something was broken."""
    digest: str
    """Of everything that was drawn, done and written."""
    events: int
    elements: int
    """That devices made."""
    lasted_us: int
    counts: dict[tuple[str, str], int]
    """What happened, as coverage has it."""

    @property
    def held(self) -> bool:
        """Whether every promise was kept."""
        return not self.promise

    def report(self) -> str:
        """For people: what was broken, how it came to it, and how to see it again."""
        seed = self.script.seed
        return "\n".join(
            [
                f"seed {seed}: {self.promise or 'everything held'}",
                *([f"  {self.how}"] if self.how else []),
                *self.trace,
                f"repeat it:   make simulate SEED={seed}",
                f"the script:  {msgspec.json.encode(self.script).decode()}",
            ]
        )


def attempt(script: Script) -> Trial:
    """Run a script."""
    coverage = Coverage()
    promise = how = ""
    world = World(script, coverage)
    try:
        with _limit():
            world.run()
    except Broken as broken:
        promise, how = broken.promise, broken.how
    except _EndlessError:
        promise, how = ENDS, traceback.format_exc()
    except Exception:
        promise, how = RAISED, traceback.format_exc()
    return Trial(
        script=script,
        promise=promise,
        how=how,
        trace=tuple(world.trace) if promise else (),
        digest=world.digest(),
        events=world.clock.events,
        elements=sum([len(account.made) for account in world.ledger.accounts.values()]),
        lasted_us=world.clock.now_us - world.began_us,
        counts=dict(coverage.counts),
    )


@contextmanager
def _limit() -> Iterator[None]:
    """Raise inside of whatever is done there for too long, where signals can: in a main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise _EndlessError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
