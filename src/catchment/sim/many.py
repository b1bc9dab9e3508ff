"""Many seeds on all cores: trials come back in no particular order, and every process is the same to a seed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED as FIRST
from concurrent.futures import Future, ProcessPoolExecutor, wait
from typing import Any

from catchment.sim.script import Script, script_of
from catchment.sim.trial import Trial, attempt

AHEAD = 4
"""So many seeds per process wait to be taken."""


def cores() -> int:
    """How many processes make sense here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def trials(
    seeds: Iterable[int],
    *,
    processes: int | None = None,
    prepare: Callable[..., object] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[Trial]:
    """Try each seed. `prepare(*given)` is called first in each process. Stopping early leaves the rest untried."""
    scripts = map(script_of, seeds)
    count = processes or cores()
    # Anew, and not by fork: whoever asks may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, initializer=prepare, initargs=given) as pool:
        waiting: set[Future[Trial]] = set()
        try:
            while True:
                while len(waiting) < count * AHEAD and (script := next(scripts, None)) is not None:
                    waiting.add(pool.submit(_attempt, script))
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST)
                for one in done:
                    yield one.result()
        finally:
            for one in waiting:
                one.cancel()


def _attempt(script: Script) -> Trial:
    return attempt(script)
