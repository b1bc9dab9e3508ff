"""What Spark's processes say, passed on without what says nothing: a program that runs for a year has a readable log.

Left out are the lines in which Spark's worker for state tells that it begins and ends, and the traces of its Python
daemon for a pipe that was closed because Spark ended. Everything else is passed on as it came, and so is a trace whose
end does not come: an error is never held back. Knows lines and file descriptors; nothing of Spark but these words.

>>> filtering = Filtering()
>>> told = ["Starting Streaming TransformWithStateInPandas Python worker.", "", "OutOfMemoryError: Java heap space"]
>>> [line for said in told for line in filtering.passed(said)]
['OutOfMemoryError: Java heap space']
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import threading
from collections.abc import Iterator

PATIENCE_S = 1.0
"""A trace whose end has not come by then is passed on."""
_WORKER = re.compile(r"(?:Starting )?Streaming TransformWithStateIn(?:Pandas|PySpark) Python worker\b")
_TRACE = "Traceback (most recent call last):"
_OF_THE_DAEMON = re.compile(r'  File "[^"]*pyspark/daemon\.py", line \d+, in \w+$')
_CLOSED = "BrokenPipeError: [Errno 32] Broken pipe"
_LINES_MAX = 20
_BYTES = 1 << 16


_ERROR = re.compile(r"(?:: |Caused by: )?((?:[\w$]+\.)*\w+(?:Exception|Error)(?:\[\w+\])?: \S.*)")
_BRIDGE = ("py4j.", "pyspark.")
_REASON_MAX = 300


def reason(text: str) -> str:
    """The line of an error's text that says what happened: where it begins with a trace, that is not its first.

    >>> reason("job aborted\\n\\tat scala.Function")
    'job aborted'
    >>> reason("Traceback (most recent call last):\\n  File x\\npy4j.E: o1\\n: java.io.IOException: No space left")
    'java.io.IOException: No space left'
    """
    first, *more = text.splitlines() or [""]
    if not first.endswith(_TRACE):
        return first
    errors = [found[1] for line in more if (found := _ERROR.match(line))]
    told = [error for error in errors if not error.startswith(_BRIDGE)] or errors or [first]
    return told[-1][:_REASON_MAX]


class Filtering:
    """Lines in, and out those that say something; a trace is held until its last line tells which it is."""

    def __init__(self) -> None:
        self._after_worker = False
        self._trace: list[str] = []

    def passed(self, line: str) -> list[str]:
        """What is passed on, now that this line came."""
        if self._trace:
            is_inside = line.startswith(" ") and len(self._trace) < _LINES_MAX
            if is_inside and (_OF_THE_DAEMON.match(line) or line.startswith("    ")):
                self._trace.append(line)
                return []
            held = self.rest()
            return [] if line == _CLOSED and len(held) > 1 else [*held, *self.passed(line)]
        # Each of the worker's lines has an empty one behind it.
        if self._after_worker and not line:
            self._after_worker = False
            return []
        self._after_worker = bool(_WORKER.match(line))
        if self._after_worker:
            return []
        if line == _TRACE:
            self._trace.append(line)
            return []
        return [line]

    def rest(self) -> list[str]:
        """What is held, which is passed on."""
        held, self._trace = self._trace, []
        return held

    @property
    def is_holding(self) -> bool:
        """Whether there is any."""
        return bool(self._trace)


@contextlib.contextmanager
def overheard() -> Iterator[None]:
    """Processes that are started meanwhile say what they say through a filter, to this process's standard error."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    own = {number: os.dup(number) for number in (1, 2)}
    try:
        threading.Thread(target=_pass_on, args=(reading, os.dup(own[2])), name="said", daemon=True).start()
        for number in own:
            os.dup2(writing, number)
        yield
    finally:
        for number, before in own.items():
            os.dup2(before, number)
            os.close(before)
        os.close(writing)


def _pass_on(reading: int, writing: int) -> None:
    """Until nobody has the other end any more."""
    filtering, cut = Filtering(), b""
    while True:
        ready, _, _ = select.select([reading], [], [], PATIENCE_S if filtering.is_holding or cut else None)
        if not ready:
            # What waits for the rest of its line, or of its trace, has waited long enough.
            _write(writing, filtering.rest(), cut)
            cut = b""
            continue
        data = os.read(reading, _BYTES)
        *lines, cut = (cut + data).split(b"\n")
        passed = [out for line in lines for out in filtering.passed(line.decode(errors="surrogateescape"))]
        if not data:
            passed += filtering.rest()
        _write(writing, passed, b"" if data else cut)
        if not data:
            os.close(reading)
            os.close(writing)
            return


def _write(writing: int, lines: list[str], rest: bytes) -> None:
    data = b"".join([line.encode(errors="surrogateescape") + b"\n" for line in lines]) + rest
    # A reader of our standard error that went away is no reason to stop listening to Spark.
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(writing, data) :]
