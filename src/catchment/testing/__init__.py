"""For tests of programs: one step alone, sources that pause or end on cue, a clock that jumps, golden vectors.

`run(program, history)` runs a program, or a step made one by `alone`, on an engine. A `History` is what arrives, entry
by entry; a `Device` in it can pause, crash and end on cue; the clock moves only where the history says so. A `Story` is
all of it as YAML, with what is expected, for every engine at once: docs/reference/transcripts.md. `generate` makes
random programs and histories for property tests, and needs hypothesis.

>>> from catchment.program.record import Field, Record, event_time, key
>>> from catchment.program.types import Instant
>>> class Fix(Record):
...     user: Field[str] = key(stamp="user")
...     at: Field[Instant] = event_time()
>>> program = alone(lambda fixes: fixes.changes(Fix.user), fixes=Fix)
>>> ran = run(program, History(program).send(Fix(user="ada", at=Instant(1)), Fix(user="ada", at=Instant(2))))
>>> ran["alone"]
[{'user': 'ada', 'at': 1}]
"""

from catchment.testing.alone import alone
from catchment.testing.device import Device
from catchment.testing.engines import Running, engines, register
from catchment.testing.history import END, History
from catchment.testing.running import Ran, run
from catchment.testing.transcripts import Story, cases, perform, stories

__all__ = [
    "END",
    "Device",
    "History",
    "Ran",
    "Running",
    "Story",
    "alone",
    "cases",
    "engines",
    "perform",
    "register",
    "run",
    "stories",
]
