"""What the parts gave and is not stored yet, and how it is stored: with what the device remembers, all or nothing.

Promises: elements reach the outbox in order and once, together with the state and the sensors' positions that they
come of. While the disk takes nothing they wait here; what does not fit any more is given up, oldest first, and
counted. Knows the outbox and its streams. Must not know where elements come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from catchment.device.memory import Memory
from catchment.program.types import Row
from catchment.sync.intake import Intake
from catchment.sync.outbox import Outbox, OutboxError, Stamp

PLAN_KEY = "plan"
WAITING_MAX = 20_000
"""So many elements wait in memory for a disk that takes nothing."""


class _Group:
    """Neighbours of one clock."""

    __slots__ = ("readings_us", "rows", "stamp")

    def __init__(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self.rows: list[Row] = []
        self.readings_us: list[int] = []


class _Waiting:
    """One stream's elements, and what may be promised once they are stored."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self.promise: tuple[int, Stamp] | None = None


class Ledger:
    """See the module. `intakes` are the streams by name, as the exchange has them at the moment."""

    def __init__(self, outbox: Outbox, intakes: Mapping[str, Intake], memory: Memory) -> None:
        self._outbox = outbox
        self._intakes = intakes
        self.plan = b""
        """What the memory's snapshots are of, stored with the first of them."""
        self._memory = memory
        self._openings = outbox.openings
        self._waiting: dict[str, _Waiting] = {}
        self.records = 0
        """Elements that wait."""
        self.refused = self.given_up = 0
        """Since the start: elements that bounded streams refused, and older ones that made room."""

    def add(self, stream: str, rows: Sequence[Row], reading_us: int, stamp: Stamp) -> None:
        """Elements of a stream, which came to be at that reading."""
        waiting = self._waiting.setdefault(stream, _Waiting())
        if not waiting.groups or waiting.groups[-1].stamp != stamp:
            waiting.groups.append(_Group(stamp))
        group = waiting.groups[-1]
        group.rows += rows
        group.readings_us += [reading_us] * len(rows)
        self.records += len(rows)

    def promise(self, stream: str, until_us: int, stamp: Stamp) -> None:
        """Nothing older than that will be added."""
        self._waiting.setdefault(stream, _Waiting()).promise = (until_us, stamp)

    def waiting(self, stream: str) -> int:
        """Elements of a stream that wait."""
        held = self._waiting.get(stream)
        return 0 if held is None else sum(len(group.rows) for group in held.groups)

    @property
    def promises(self) -> bool:
        """Whether something is promised that is not stored."""
        return any(waiting.promise is not None for waiting in self._waiting.values())

    def commit(self, state: Callable[[], bytes], entry: Callable[[], bytes]) -> OutboxError | None:
        """Store everything. When the disk does not take it everything still waits, and the reason is returned."""
        refused = given_up = 0
        try:
            with self._outbox.transaction():
                if self._outbox.openings != self._openings:
                    # Another file than the one that holds the last snapshot.
                    self._openings = self._outbox.openings
                    self._memory.begin_anew()
                for stream, waiting in self._waiting.items():
                    intake = self._intakes[stream]
                    for group in waiting.groups:
                        outcome = intake.append(group.rows, stamp=group.stamp, readings_us=group.readings_us)
                        refused += outcome.refused
                        given_up += outcome.given_up
                    if waiting.promise is not None:
                        until_us, stamp = waiting.promise
                        intake.append([], stamp=stamp, readings_us=[], promise_us=until_us)
                if self._memory.is_fresh:
                    self._outbox.save_state(PLAN_KEY, self.plan)
                self._memory.write(state, entry)
        except OutboxError as error:
            self._roll_back()
            return error
        except BaseException:
            self._roll_back()
            raise
        self._waiting.clear()
        self.records = 0
        self.refused += refused
        self.given_up += given_up
        return None

    def begin_anew(self, plan: bytes) -> None:
        """From now on everything is of that plan."""
        self.plan = plan
        self._memory.begin_anew()

    def make_room(self) -> int:
        """Give up the oldest of what waits, where it is too much. Returns how many elements went."""
        gone = 0
        while self.records > WAITING_MAX:
            stream, waiting = max(self._waiting.items(), key=lambda item: sum(len(g.rows) for g in item[1].groups))
            group = waiting.groups.pop(0)
            self._outbox.give_up(stream, len(group.rows))
            self.records -= len(group.rows)
            gone += len(group.rows)
        self.given_up += gone
        return gone

    def _roll_back(self) -> None:
        for intake in self._intakes.values():
            intake.reload()
        self._memory.begin_anew()
