"""A device's results: what came down is durable before it is acknowledged, and is there once.

Knows the outbox and the shapes of results that the device's plans have. Must not know the conversation around it,
sockets or clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from catchment.errors import PeerError
from catchment.program.types import Row, Schema
from catchment.sync.codecs import codec
from catchment.sync.frame import Ack, Data, Error, Frame, Mark
from catchment.sync.happening import Arrived, Happening, trouble
from catchment.sync.outbox import Outbox, OutboxError
from catchment.sync.receiver import Accept, Duplicate, Receiver
from catchment.sync.table import Watch

RETRY_US = 60_000_000
"""A result that this device cannot take yet is asked for again after so long: a plan, or some space, may be coming."""


class _Shape(msgspec.Struct):
    schemas: dict[str, Schema]
    key: Callable[[Row], bytes] | None


class Downlink:
    """All results of one device."""

    def __init__(self, outbox: Outbox, watch: Watch | None = None) -> None:
        self._outbox = outbox
        self._watch = watch
        self._shapes: dict[str, _Shape] = {}
        self._receiver = Receiver(outbox.marks(), watch=watch)

    def add(self, stream: str, schemas: Sequence[Schema], key: Callable[[Row], bytes] | None) -> None:
        """A stream of results in any of these shapes. With `key`, only the latest of each key is kept."""
        self._shapes[stream] = _Shape({schema.fingerprint: schema for schema in schemas}, key)

    def begin(self) -> tuple[Mark, ...]:
        """A conversation begins: how far each stream is durable here."""
        marks = self._outbox.marks()
        self._receiver = Receiver(marks, watch=self._watch)
        return marks

    def take(self, frames: Sequence[Data]) -> tuple[list[Frame], list[Happening]]:
        """Make the results of a message durable, all at once. Returns what to answer, and what happened."""
        answers: list[Frame] = []
        happenings: list[Happening] = []
        moved: dict[tuple[str, object], Mark] = {}
        if not frames:
            return answers, happenings
        try:
            with self._outbox.transaction():
                for frame in frames:
                    self._take(frame, answers, happenings, moved)
        except OutboxError as failure:
            self._receiver.roll_back()
            mark = self._receiver.mark(frames[0].stream, frames[0].epoch)
            return [Error(failure.code, failure.what, failure.fix, RETRY_US, mark)], [trouble(failure)]
        for mark in moved.values():
            self._receiver.commit(mark)
        marks = [
            self._receiver.mark(stream, epoch) for stream, epoch in dict.fromkeys((f.stream, f.epoch) for f in frames)
        ]
        answers.append(Ack(tuple([mark for mark in marks if mark.upto])))
        return answers, happenings

    def _take(
        self,
        frame: Data,
        answers: list[Frame],
        happenings: list[Happening],
        moved: dict[tuple[str, object], Mark],
    ) -> None:
        verdict = self._receiver.consider(frame)
        match verdict:
            case Duplicate():
                return
            case Accept():
                try:
                    schema, rows = self._rows(frame)
                except PeerError as error:
                    mark = Mark(frame.stream, frame.epoch, frame.first)
                    answers.append(Error(error.code, error.what, error.fix, RETRY_US, mark))
                    happenings.append(trouble(error))
                    return
                mark = moved[frame.stream, frame.epoch] = self._receiver.take(frame)
                key = self._shapes[frame.stream].key if frame.stream in self._shapes else None
                self._outbox.receive(mark, schema, rows, keys=None if key is None else [key(row) for row in rows])
                if rows:
                    happenings.append(Arrived(frame.stream, len(rows)))
            case _:
                refusal = verdict.error
                answers.append(Error(refusal.code, refusal.what, refusal.fix, 0, verdict.mark))
                happenings.append(trouble(refusal))

    def _rows(self, frame: Data) -> tuple[Schema | None, list[Row]]:
        if not frame.count:
            return None, []
        shape = self._shapes.get(frame.stream)
        schema = None if shape is None else shape.schemas.get(frame.fingerprint)
        if schema is None:
            raise PeerError(
                "S426",
                f"results of {frame.stream} have a shape that is not known here",
                why=f"no plan on this device has a schema of fingerprint {frame.fingerprint} for it",
                fix="offer the device the plan that the results belong to",
            )
        rows = codec(frame.codec).decode(schema, frame.payload)
        if len(rows) != frame.count:
            raise PeerError(
                "S427",
                f"a frame of {frame.stream} claims {frame.count} rows and has {len(rows)}",
                why="the count says which number each row has",
                fix="count the rows that the payload holds",
            )
        return schema, rows
