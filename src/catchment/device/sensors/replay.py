"""A recording played as a sensor: every record, once, in order, at the pace at which it was taken or another.

Promises: the position is a record's place in the file, so after kill -9 the next record is the one after the last
that was stored with what became of it. The moments are those of the recording (`recorded`), or with `live` those of
playing it. A record that cannot be read or does not fit is counted and told, and the next one follows.

Playing goes on where it was: the time during which nobody played does not count. Records without a moment follow one
another at the interval of the sampling rules. `sampled` leaves out what the rules would not have read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from catchment.device.sampling import Rate
from catchment.device.sensors.fitting import Fitting, Unfit
from catchment.device.sensors.recordings import Torn, open_recording
from catchment.device.sensors.sensor import Reading, Values
from catchment.device.surroundings import Surroundings
from catchment.errors import ProgramError


class _Memory(msgspec.Struct, array_like=True):
    position: int
    given: int
    kept_at_us: int | None
    """The moment of the last record that was given: what the rules count from."""


class Replay:
    """See the module. `speed` 0 plays as fast as readings are taken; `tell` is told of each record that was left
    out."""

    def __init__(
        self,
        path: Path,
        fitting: Fitting,
        rate: Rate,
        *,
        now_us: int,
        tell: Callable[[str], None],
        speed: float = 1.0,
        live: bool = False,
        sampled: bool = False,
        closes: bool = False,
    ) -> None:
        self._path = path
        self._fitting = fitting
        self._rate = rate
        self._tell = tell
        self._speed = speed
        self.is_patient = speed == 0
        """Whether it can wait: nothing is missed by playing later what has no pace."""
        self.closes = closes
        """Whether its end is the end of the sensor: then nothing older than the end of time is to come."""
        self._live = live
        self._sampled = sampled
        self._recording = open_recording(path)
        self._memory = _Memory(self._recording.position, 0, None)
        self._next: tuple[Values, int | None, int] | None = None
        """The record that is played next, its moment, and the position after it."""
        self._ended = False
        self._origin: tuple[int, int] = (now_us, 0)
        """A reading of the clock, and the moment of the recording that is played then."""
        self.recorded = False
        self._advance()
        self.recorded = not live and self._next is not None and self._next[1] is not None
        """Whether the recording's own moments count: its first record says whether it has any."""
        self._begin(now_us)

    @property
    def ended(self) -> bool:
        """Whether the whole file was played."""
        return self._ended

    def played_us(self, now_us: int) -> int | None:
        """The moment of the recording that is played now: nothing older is to come.

        A live sensor that has nothing to say promises so as time passes, and so does one that is played at a pace.
        """
        if not self.recorded or self._speed == 0 or self._next is None or self._next[1] is None:
            return None
        begun_us, origin_us = self._origin
        return min(self._next[1], origin_us + round((now_us - begun_us) * self._speed))

    def due_us(self, around: Surroundings) -> int | None:
        """When the next record is played."""
        if self._next is None:
            return None
        begun_us, origin_us = self._origin
        at_us = self._next[1]
        if self._speed == 0:
            return begun_us
        if at_us is None:
            interval_us = self._rate.interval_us(around)
            return None if interval_us is None else begun_us + round(interval_us / self._speed)
        return begun_us + max(0, round((at_us - origin_us) / self._speed))

    def take(self, now_us: int, around: Surroundings, limit: int) -> list[Reading]:
        """The records that are due."""
        taken: list[Reading] = []
        while len(taken) < limit and self._next is not None:
            due_us = self.due_us(around)
            if due_us is None or due_us > now_us:
                break
            values, at_us, position = self._next
            if at_us is None and self._speed:
                self._origin = (due_us, 0)
            self._memory.position = position
            if not self._sampled or self._is_time(at_us, around):
                taken.append(Reading(values, None if self._live else at_us))
                self._memory.given += 1
                self._memory.kept_at_us = at_us
            self._advance()
        return taken

    def hurry(self, by_us: int) -> None:
        """Play so much of the recording at once, and go on at the usual pace."""
        begun_us, at_us = self._origin
        self._origin = (begun_us, at_us + by_us)

    def position(self) -> bytes:
        """Behind the last record that was given or left out."""
        return msgspec.msgpack.encode(self._memory)

    def resume(self, position: bytes, now_us: int) -> None:
        """Play on from there."""
        self._memory = msgspec.msgpack.decode(position, type=_Memory)
        self._recording = open_recording(self._path, self._memory.position)
        if self._path.suffix.lower() != ".gpx" and self._memory.position > self._path.stat().st_size:
            raise ProgramError(
                "D622",
                f"{self._path.name} is not the recording that was being played",
                why=f"{self._memory.given} records were played, up to byte {self._memory.position}, beyond its end",
                fix="put the recording back, or play another one under another sensor's or device's name",
            )
        self._advance()
        self._begin(now_us)

    def _begin(self, now_us: int) -> None:
        at_us = None if self._next is None else self._next[1]
        self._origin = (now_us, 0 if at_us is None else at_us)
        if at_us is None and self._memory.given == 0 and self._speed:
            # The first record without a moment is there at once.
            self._origin = (now_us - round(self._rate.every_us / self._speed), 0)

    def _advance(self) -> None:
        """Find the next record that is one."""
        self._next = None
        while True:
            start = self._recording.position
            found = self._recording.next()
            if found is None:
                self._ended = True
                return
            why = found.why if isinstance(found, Torn) else None
            if not isinstance(found, Torn):
                try:
                    at_us = self._fitting.moment(found)
                    if at_us is not None or not self.recorded:
                        self._next = (found, at_us, self._recording.position)
                        return
                    why = "it does not say when it was taken, as the first one does"
                except Unfit as error:
                    why = str(error)
            self._tell(f"{self._path.name} at {start}: {why}")

    def _is_time(self, at_us: int | None, around: Surroundings) -> bool:
        interval_us = self._rate.interval_us(around)
        last_us = self._memory.kept_at_us
        if interval_us is None:
            return False
        return at_us is None or last_us is None or at_us >= last_us + interval_us
