"""A device in a history: it takes readings, pauses, goes away, crashes or ends on cue, and catches up afterwards.

>>> from catchment.program.record import Field, Record, event_time, key
>>> from catchment.program.types import Instant
>>> from catchment.testing.alone import alone
>>> class Fix(Record):
...     user: Field[str] = key(stamp="user")
...     at: Field[Instant] = event_time()
>>> history = History(alone(lambda fixes: fixes, fixes=Fix))
>>> phone = Device(history, "phone", owner="ada")
>>> _ = phone.takes(Fix(user="ada", at=Instant(1))).crashes().takes(Fix(user="ada", at=Instant(2))).returns().ends()
>>> [type(entry).__name__ for entry in history]
['Element', 'Progress', 'Presence', 'Presence', 'Element', 'Progress', 'Progress']
"""

from __future__ import annotations

from typing import Literal, Self

from catchment.errors import ProgramError, author_line
from catchment.testing.history import History
from catchment.testing.readings import Reading


class Device:
    """One device. What it takes while it is silent waits in its outbox, and is sent when it is heard again."""

    def __init__(self, history: History, name: str, *, owner: str | None = None) -> None:
        self._history = history
        self._name = name
        self._owner = owner
        self._state: Literal["connected", "paused", "away", "ended"] = "connected"
        self._outbox: list[tuple[Reading, str | None]] = []

    def takes(self, *readings: Reading, to: str | None = None) -> Self:
        """Readings of a sensor: sent at once by a device that is connected."""
        if self._state == "ended":
            raise ProgramError(
                "T703",
                f"{self._name} takes a reading after its end",
                why="a source that has ended has promised that nothing more comes",
                fix="let it pause, or go away, and return",
                at=author_line(),
            )
        self._outbox.extend((reading, to) for reading in readings)
        if self._state == "connected":
            self._send()
        return self

    def pauses(self) -> Self:
        """Falls silent without going away: a phone asleep, a radio that is off."""
        self._state = "paused"
        return self

    def leaves(self) -> Self:
        """Goes away, and the log is told so."""
        self._state = "away"
        self._history.offline(self._name, owner=self._owner)
        return self

    def crashes(self) -> Self:
        """Dies between two readings: the same as going away, for its outbox is on disk."""
        return self.leaves()

    def returns(self) -> Self:
        """Is heard again, and sends what it took meanwhile."""
        if self._state == "away":
            self._history.online(self._name, owner=self._owner)
        self._state = "connected"
        self._send()
        return self

    def ends(self) -> Self:
        """Sends what it has, and has nothing more to say."""
        self.returns()
        self._history.end(self._name)
        self._state = "ended"
        return self

    def _send(self) -> None:
        for reading, to in self._outbox:
            self._history.send(reading, to=to, device=self._name, owner=self._owner)
        self._outbox = []
