"""A device's uploads: what of the outbox goes into the next message, by priority and policy.

Promises: frames leave in the order of their numbers, as large as what has gathered; what is not due stays; streams of
earlier programs, to which nobody appends any more, drain too. Knows the outbox, policies and what the gateway agreed
to. Must not know the conversation around it, sockets or clocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from catchment.errors import CatchmentError
from catchment.program.sync import Sync
from catchment.program.types import Row, Schema
from catchment.sync.codecs import codec
from catchment.sync.codecs.compress import COMPRESSIONS, compression
from catchment.sync.frame import Clock, Data, Mark, Promise, Welcome, encode
from catchment.sync.intake import Intake
from catchment.sync.outbox import Outbox, Position, Run
from catchment.sync.outbox.queue import ELEMENT_BYTES_MAX
from catchment.sync.policy import RECORDS_PER_FRAME_MAX, Decision, Gathered, Link, codec_choice, decide
from catchment.sync.sender import Sender
from catchment.sync.session import Clocks
from catchment.sync.table import Watch


class Uplink:
    """All uploads of one device."""

    def __init__(self, outbox: Outbox, watch: Watch | None = None) -> None:
        self.intakes: dict[str, Intake] = {}
        self.link = Link()
        self.is_leaving = False
        """Nothing gathers any more: what there is goes now."""
        self.sender = Sender(watch=watch)
        self._outbox = outbox
        self._positions: dict[str, Position] = {}
        self._catching_up: set[str] = set()

    def add(self, stream: str, schema: Schema, policy: Sync, now_us: int) -> Intake:
        """A stream to which this program appends."""
        intake = self.intakes[stream] = Intake(self._outbox, stream, schema, policy)
        intake.link(connected=self.link.connected, now_us=now_us)
        return intake

    # -- the link ------------------------------------------------------------------------------------------------

    def opened(self, welcome: Welcome, marks: Sequence[Mark], now_us: int) -> None:
        """There is a way to the gateway, which has so much."""
        # Another exchange over a link that never went is no reconnection: what gathers meanwhile goes on gathering.
        was_away = not self.link.connected
        self.link = msgspec.structs.replace(self.link, connected=True)
        self.acknowledged(self.sender.opened(marks, window_frames=max(welcome.window_frames, 1), now_us=now_us))
        if was_away:
            self._catching_up = {stream for stream in self._outbox.streams() if self._outbox.size(stream)[0]}
        for intake in self.intakes.values():
            intake.link(connected=True, now_us=now_us)

    def closed(self, now_us: int, *, away: bool = True) -> None:
        """There is no way any more; `away` False where that is only the end of one exchange."""
        self.sender.closed()
        if away:
            self.link = msgspec.structs.replace(self.link, connected=False)
            for intake in self.intakes.values():
                intake.link(connected=False, now_us=now_us)

    def acknowledged(self, marks: Sequence[Mark]) -> None:
        """So much is durable at the gateway, as the sender found to be news."""
        if marks:
            self._outbox.acknowledge(marks)

    # -- frames --------------------------------------------------------------------------------------------------

    def frames(self, welcome: Welcome, clocks: Clocks, bytes_max: int) -> list[bytes]:
        """What is due and has room, up to about so many bytes."""
        frames: list[bytes] = []
        self._outbox.retry()
        for stream in self._streams():
            while bytes_max > 0 and self.sender.may_send(stream, clocks.reading_us):
                frame = self._next_frame(stream, welcome, clocks)
                if frame is None:
                    break
                frames.append(frame)
                bytes_max -= len(frame)
        return frames

    def promises(self, clocks: Clocks) -> tuple[Promise, ...]:
        """Of streams that have nothing left to send: what a frame would promise, if there were one."""
        promises = []
        for stream in self.intakes:
            promised = self._outbox.promised(stream)
            if promised is None or promised[0].session != clocks.session or self._outbox.start(stream) is not None:
                continue
            promises.append(Promise(stream, promised[1], promised[0].offset_us))
        return tuple(promises)

    def is_due(self, clocks: Clocks) -> bool:
        """Whether there is something to send now, for a driver that has to open an exchange first."""
        return any(
            self._outbox.start(stream) is not None
            and (not self._unsent(stream)[0] or self._decide(stream, clocks).send)
            for stream in self._streams()
        )

    def wake_times(self, clocks: Clocks) -> list[int]:
        """Readings at which something may be due that is not due now."""
        times = []
        for stream in self._streams():
            again_at_us = self._decide(stream, clocks).again_at_us
            times.extend([] if again_at_us is None else [again_at_us])
            times.append(self.sender.paused_until_us(stream))
        return times

    def _streams(self) -> list[str]:
        known = sorted(self.intakes, key=lambda name: (-self.intakes[name].policy.priority, name))
        return [*known, *sorted(set(self._outbox.streams()) - set(known))]

    def _policy(self, stream: str) -> Sync:
        return self.intakes[stream].policy if stream in self.intakes else Sync()

    def _next_frame(self, stream: str, welcome: Welcome, clocks: Clocks) -> bytes | None:
        position = self._position(stream)
        if position is None:
            return None
        # Without elements, all there is to tell is which numbers were given up: that does not wait.
        if self._unsent(stream)[0] and not self._decide(stream, clocks).send:
            return None
        run = self._outbox.run(stream, position, records_max=RECORDS_PER_FRAME_MAX, bytes_max=ELEMENT_BYTES_MAX)
        if run is None:
            self._catching_up.discard(stream)
            self.sender.ended(stream)
            return None
        frame = encode(_data(run, self._policy(stream), welcome))
        self._positions[stream] = run.after
        size = sum(map(len, run.packed))
        self.sender.sent(stream, run.upto, now_us=clocks.reading_us, records=len(run.packed), size=size)
        return frame

    def _position(self, stream: str) -> Position | None:
        """Where the stream goes on, or starts; None where there is nothing to send."""
        at = self.sender.position(stream)
        if at is None:
            start = self._outbox.start(stream)
            if start is None:
                return None
            self.sender.filled(stream, self._outbox.epoch_of(start), start.number)
            self._positions[stream] = start
            at = self.sender.position(stream)
            assert at is not None
        return Position(self._positions[stream].epoch, at[1])

    def _decide(self, stream: str, clocks: Clocks) -> Decision:
        records, size = self._unsent(stream)
        oldest_us = None
        position = self._position(stream) if records else None
        if position is not None:
            oldest = self._outbox.oldest(stream, position)
            if oldest is not None and oldest[0].session == clocks.session:
                oldest_us = oldest[1]
        gathered = Gathered(records, size, oldest_us, stream in self._catching_up, self.is_leaving)
        return decide(self._policy(stream), gathered, self.link, clocks.reading_us)

    def _unsent(self, stream: str) -> tuple[int, int]:
        records, size = self._outbox.size(stream)
        records_under_way, bytes_under_way = self.sender.under_way(stream)
        return max(records - records_under_way, 0), max(size - bytes_under_way, 0)


def _data(run: Run, policy: Sync, welcome: Welcome) -> Data:
    """The frame of a run."""
    clock, schema, payload, name = None, b"", b"", "none"
    if run.schema is not None and run.stamp is not None:
        stamp = run.stamp
        clock = Clock(stamp.session, run.reading_us, run.span_us, stamp.offset_us, stamp.wall_us)
        schema = bytes.fromhex(run.schema.fingerprint)
        rows = run.rows()
        try:
            name, payload = _encoded(policy, welcome, run.schema, rows)
        except CatchmentError:
            # A codec that cannot take these rows must not stop the stream.
            name, payload = _encoded(Sync(codec="msgpack"), welcome, run.schema, rows)
    return Data(
        stream=run.stream,
        epoch=run.epoch,
        first=run.first,
        count=len(run.packed),
        schema=schema,
        codec=name,
        clock=clock,
        promise_us=run.promise_us,
        lost=run.lost,
        gaps=run.gaps,
        payload=payload,
    )


def _encoded(policy: Sync, welcome: Welcome, schema: Schema, rows: Sequence[Row]) -> tuple[str, bytes]:
    """The name of the codec and the payload, in whichever compression makes it smallest."""
    name, packings = codec_choice(policy, welcome.codecs, welcome.compressions, COMPRESSIONS)
    plain = codec(name).encode(schema, rows)
    packed = [(f"{name}/{each}", compression(each).compress(plain)) if each else (name, plain) for each in packings]
    return min(packed, key=lambda one: len(one[0]) + len(one[1]))
