"""Publication: one sink's way through the materialised output of a query.

It takes the portions behind the sink's mark, has executors write them, commits, and goes on. A sink that fails is
opened anew and tried again, later each time; what it has is its own to say, so nothing is doubled and nothing is lost,
and no other sink waits for it. Time and the way to run tasks are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from catchment.cloud.materialised import Materialised, Portion, Written
from catchment.cloud.sinks.sink import Brought, Identity, Opened, Share, Sink, Work
from catchment.gateway.journal import say

RETRY_US_MAX = 60_000_000
RETRY_US = 500_000
PORTIONS_MAX = 512
BYTES_MAX = 64 << 20
"""Of one publication, so that a sink that comes back after a day is not given the day at once."""
Run = Callable[[Sequence[Work]], list[bytes]]


class SinkStanding(msgspec.Struct):
    """How a sink stands, for `catchment status`."""

    results: int = 0
    """Written since its start."""
    waiting: int = 0
    """Portions that it does not have yet."""
    trouble: str = ""


class Publication:
    """One sink at work."""

    def __init__(self, sink: Sink, identity: Identity, output: Materialised, run: Run) -> None:
        self.sink = sink
        self.standing = SinkStanding()
        self.upto: int | None = None
        """What the sink is known to have; None before it was ever reached."""
        self._identity = identity
        self._output = output
        self._run = run
        self._opened: Opened | None = None
        self._failures = 0
        self._not_before_us = 0
        self._gathers_since_us: int | None = None

    def turn(self, now_us: int, *, gather: bool = True) -> int | None:
        """Do what is due; when to be called again, None where only more results are a reason to.

        Without `gather`, what has gathered goes now.
        """
        if now_us < self._not_before_us:
            return self._not_before_us
        try:
            return self._step(now_us, gather=gather)
        except Exception as error:  # whatever an author's callback, a driver or a database raises
            self._failures += 1
            self.standing.trouble = _reason(error)
            say("sink_failed", sink=self.sink.name, error=self.standing.trouble, failures=self._failures)
            self.close()
            self._not_before_us = now_us + min(RETRY_US_MAX, RETRY_US * 2 ** (self._failures - 1))
            return self._not_before_us

    def close(self) -> None:
        """Let go of the sink."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _step(self, now_us: int, *, gather: bool) -> int | None:
        if self._opened is None:
            self._opened = self.sink.open(self._identity)
            self.upto = self._opened.upto
        opened = self._opened
        waiting = self._output.portions(opened.upto)
        self.standing.waiting = len(waiting)
        if not waiting:
            self._recovered()
            return None
        if self._gathers_since_us is None:
            self._gathers_since_us = now_us
        due_us = self._gathers_since_us + self.sink.every_us
        if gather and now_us < due_us and len(waiting) < PORTIONS_MAX:
            return due_us
        self._gathers_since_us = None
        portions = _some(waiting)
        shares = shares_of(portions, self.sink.output, self._output.path)
        opened.commit(portions, self._run([opened.write(share) for share in shares]) if shares else [])
        self.upto = opened.upto
        self.standing.results += sum([file.counts.get(self.sink.output, 0) for p in portions for file in p.files])
        self.standing.waiting = len(waiting) - len(portions)
        self._recovered()
        chores = opened.chores()
        if chores:
            opened.settle(self._run(chores))
        return now_us if self.standing.waiting else None

    def _recovered(self) -> None:
        if self._failures:
            say("sink_recovered", sink=self.sink.name)
        self._failures, self.standing.trouble = 0, ""


def shares_of(portions: Sequence[Portion], output: str, path: Callable[[Written], str]) -> list[Share]:
    """What each task writes of an output: a part's files, which are in order and independent of other parts'."""
    parts: dict[int, list[Brought]] = {}
    for portion in portions:
        log = msgspec.json.encode(portion.upto, order="sorted").decode()
        for file in portion.files:
            if file.counts.get(output):
                brought = Brought(portion.number, path(file), portion.epoch, portion.generation, log)
                parts.setdefault(file.part, []).append(brought)
    return [Share(part, tuple(files)) for part, files in sorted(parts.items())]


def _some(waiting: list[Portion]) -> list[Portion]:
    taken = 0
    found: list[Portion] = []
    for portion in waiting[:PORTIONS_MAX]:
        taken += portion.bytes
        if found and taken > BYTES_MAX:
            break
        found.append(portion)
    return found


def _reason(error: BaseException) -> str:
    """The line that says most: Spark wraps what a task raised in pages of its own."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Error[" in line or (line.partition(":")[0].endswith("Error") and ":" in line)]
    return (named[-1] if named else lines[0] if lines else type(error).__name__)[:500]
