"""One device's uploads: what becomes an entry of the log, and what may be answered once it is durable.

A message is a `Turn`: frames are judged and gathered, the caller has the entries logged as one, and `settle` says
what to answer. Nothing is acknowledged before that, and one turn of a device ends before its next begins; after a
turn that was not logged, the caller makes the uplink anew from the log's marks. Who sent it is the enrolment's word,
and a frame that claims otherwise is put aside. No I/O, no clock, no randomness: the simulator runs this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from catchment.errors import CatchmentError, PeerError
from catchment.gateway.clocks import Clocks
from catchment.gateway.enrolment import Enrolled
from catchment.gateway.log.entry import NO_INSTANT, Entry, Kind, joined
from catchment.gateway.log.marks import ClockMark, DeviceMark
from catchment.sync.frame import Ack, Beat, Data, Error, Frame, Hello
from catchment.sync.parts import Epoch, Mark, Offset, Pressure
from catchment.sync.receiver import SUPERSEDED, Accept, Duplicate, Receiver
from catchment.sync.table import Watch

PROMISE_US = 1_000_000
"""A promise without data is logged when it has advanced by this much: a tick tells no finer."""
RETRY_US = 2_000_000
"""When to send again what the log could not take."""
MARKS_MAX = 1024
"""What a welcome tells; of a device with more epochs, the older ones are told when it sends them."""

_DATA = int(Kind.DATA)
Schemas: TypeAlias = Mapping[str, frozenset[str]]
"""Per stream, the fingerprints that the program's plans have had; empty where no plan says."""


class Refused(NamedTuple):
    """A frame that was not taken."""

    error: PeerError
    mark: Mark | None
    keep_aside: bool
    frame: Data


class Turn:
    """One message's worth."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.taken: list[Data] = []
        self.moved: dict[tuple[str, Epoch], int] = {}
        """How far what was taken moves the mark of each stream's epoch."""
        self.duplicates: list[Data] = []
        self.refused: list[Refused] = []
        self.decided: ClockMark | None = None
        """A segment of the device's clock that this turn decides, to be told once it is logged."""


class _Pattern(NamedTuple):
    """An upload of a stream, and its entry: what goes on from there alike differs in numbers only."""

    frame: Data
    entry: Entry

    def fits(self, frame: Data) -> bool:
        """Whether the frame goes where the pattern went; who may send it and when is not looked at."""
        like = self.frame
        clock, before = frame.clock, like.clock
        return (
            frame.epoch == like.epoch
            and frame.schema == like.schema
            and frame.codec == like.codec
            and frame.lost == like.lost
            and not frame.gaps
            and not frame.device
            and clock is not None
            and before is not None
            and clock.session == before.session
            and clock.offset_us == before.offset_us
        )


class Uplink:
    """What a gateway knows of a device's uploads, from the log's marks on."""

    def __init__(
        self,
        enrolled: Enrolled,
        known: DeviceMark | None,
        *,
        streams_max: int,
        schemas: Callable[[bool], Schemas],
        watch: Watch | None = None,
    ) -> None:
        """`schemas` says what the program's streams may look like; asked with True, it looks whether that changed."""
        known = known or DeviceMark()
        self._enrolled = enrolled
        self._joined = known.joined and known.user == enrolled.user
        self._streams_max = streams_max
        self._schemas = schemas
        self._orders: dict[str, dict[Epoch, tuple[int, int]]] = {}
        """Per stream, each epoch's order by first contact, and its nonce as the log writes it."""
        self._right: set[tuple[str, bytes]] = set()
        """Streams and schemas that this device may send: plans are added to, never taken back."""
        self._patterns: dict[str, _Pattern] = {}
        """Per stream, an upload of late; none from before the device's clock was last decided."""
        self._promises: dict[str, int] = {}
        marks: list[Mark] = []
        for stream, mark in known.streams.items():
            self._promises[stream] = mark.promise_us
            orders = self._orders[stream] = {}
            for order, of in enumerate(mark.epochs):
                epoch = epoch_of(of.counter, of.nonce)
                orders[epoch] = (order, of.nonce)
                marks.append(Mark(stream, epoch, of.upto))
        self._receiver = Receiver(marks, watch)
        self._clocks = Clocks(known.clocks)
        self._session = ""

    def go_on_from(self, before: Uplink) -> None:
        """This one was made anew from the log in the middle of a conversation: the device need not greet it again."""
        self._receiver.go_on_from(before._receiver)
        self._clocks.go_on_from(before._clocks)
        self._session = before._session

    def greeted(self, frame: Hello, turn: Turn, *, now_us: int) -> None:
        """The device was let in with this hello."""
        self._receiver.heard(frame)
        if frame.session:
            self._hear(frame, turn, now_us)
        if not self._joined:
            turn.entries.append(joined(device=self._enrolled.device, user=self._enrolled.user, now=now_us))

    def beat(self, frame: Beat, turn: Turn, *, now_us: int) -> None:
        """A sign of life, with promises."""
        self._receiver.heard(frame)
        self._hear(frame, turn, now_us)
        for promise in frame.promises:
            shift_us = self._clocks.shift(frame.session.hex(), promise.offset_us)
            if shift_us is None or not self._has_room(promise.stream):
                continue
            until_us = promise.until_us + shift_us
            if until_us >= self._promises.get(promise.stream, NO_INSTANT) + PROMISE_US:
                self._promises[promise.stream] = until_us
                turn.entries.append(
                    Entry(
                        kind=Kind.PROMISE,
                        device=self._enrolled.device,
                        user=self._enrolled.user,
                        stream=promise.stream,
                        session=self._session,
                        promise_us=until_us,
                        received_us=now_us,
                    )
                )

    def data(self, frame: Data, turn: Turn, *, now_us: int) -> Refused | None:
        """An upload: taken, or known already, or refused and then returned."""
        # Runs for every batch of the fleet: what was found out once is not looked into again.
        pattern = self._patterns.get(frame.stream)
        if pattern is not None and pattern.fits(frame):
            follows = self._receiver.follow(frame)
            if follows is not None:
                self._repeat(pattern, frame, turn, follows, now_us)
                return None
        if frame.device or (frame.stream, frame.schema) not in self._right:
            error = self._wrong(frame)
            if error is not None:
                return _refuse(turn, Refused(error, None, True, frame))
            if frame.count:
                self._right.add((frame.stream, frame.schema))
        verdict = self._receiver.consider(frame)
        if isinstance(verdict, Accept):
            self._enter(frame, turn.entries, verdict.upto, now_us)
            self._receiver.take(frame)
            turn.taken.append(frame)
            turn.moved[frame.stream, frame.epoch] = verdict.upto
        elif isinstance(verdict, Duplicate):
            turn.duplicates.append(frame)
        else:
            return _refuse(turn, Refused(verdict.error, verdict.mark, verdict.keep_aside, frame))
        return None

    def settle(self, turn: Turn, *, pressure: Pressure | None = None) -> list[Frame]:
        """Everything of the turn is durable: what to answer."""
        self._joined = True
        answers: list[Frame] = []
        for (stream, epoch), upto in turn.moved.items():
            self._receiver.commit(Mark(stream, epoch, upto))
        marks = tuple([self._receiver.mark(stream, epoch) for stream, epoch in _accounted(turn)])
        if marks or turn.decided is not None:
            answers.append(Ack(marks, self.offset(), pressure))
        for one in turn.refused:
            # With a mark, going on from there helps at once; without, the same bytes will be refused again.
            is_over = one.error.code == SUPERSEDED
            # Everything before is durable now, so that where the epoch ended will not change.
            onward = self._receiver.mark(one.frame.stream, one.frame.epoch) if is_over else one.mark
            answers.append(Error(one.error.code, one.error.what, one.error.fix, None if onward is None else 0, onward))
        return answers

    def refuse(self, turn: Turn, failure: CatchmentError) -> list[Frame]:
        """Nothing of the turn was logged: what to answer. Asked of the uplink that was made anew."""
        marks: list[Mark | None] = [self._receiver.mark(stream, epoch) for stream, epoch in _accounted(turn)]
        return [Error(failure.code, failure.what, failure.fix, RETRY_US, mark) for mark in marks or [None]]

    def marks(self) -> tuple[Mark, ...]:
        """What is durable, enough to resume from."""
        return self._receiver.marks()[-MARKS_MAX:]

    def offset(self) -> Offset | None:
        """The decided offset of the device's present session."""
        mark = self._clocks.offset(self._session) if self._session else None
        if mark is None:
            return None
        return Offset(bytes.fromhex(mark.session), mark.segment, mark.offset_us, mark.error_us)

    def _hear(self, frame: Hello | Beat, turn: Turn, now_us: int) -> None:
        self._session = frame.session.hex()
        decided = self._clocks.heard(self._session, frame.reading_us, now_us=now_us, wall_us=frame.wall_us)
        if decided is not None:
            self._patterns.clear()
            turn.decided = decided
            turn.entries.append(self._clock_entry(decided, now_us))

    def _wrong(self, frame: Data) -> PeerError | None:
        """Why the frame is not this device's to send, if so."""
        device, program = self._enrolled.device, self._enrolled.program
        if frame.device not in ("", device):
            return PeerError(
                "G570",
                f"a frame of {device} claims to be from {frame.device}",
                why="who sent it is known from the credential",
                fix="leave the frame's device empty, or use that device's credential",
            )
        if not self._has_room(frame.stream):
            return PeerError(
                "G571",
                f"{device} has too many streams",
                why=f"a device has at most {self._streams_max}, and each is remembered",
                fix="send fewer streams; a stream's name must not vary with the data",
            )
        known = self._schemas(False)
        if known and frame.fingerprint not in known.get(frame.stream, ()):
            known = self._schemas(True)
        if known and frame.stream not in known:
            return PeerError(
                "G572",
                f"{program} has no stream {frame.stream}",
                why="none of its plans sends one from a device",
                fix="run the program's present plan on the device",
            )
        if known and frame.count and frame.fingerprint not in known[frame.stream]:
            return PeerError(
                "G573",
                f"{frame.stream} has no schema {frame.fingerprint}",
                why="no plan of the program has encoded the stream with a schema of that fingerprint",
                fix="run the program's present plan on the device",
            )
        return None

    def _has_room(self, stream: str) -> bool:
        return stream in self._promises or len(self._promises) < self._streams_max

    def _enter(self, frame: Data, entries: list[Entry], upto: int, now_us: int) -> None:
        """Add the frame as an entry, after the clock that places it where that is decided just now."""
        shift_us, mark, decided = self._clocks.place(frame.clock, now_us=now_us)
        if decided and mark is not None:
            self._patterns.clear()
            entries.append(self._clock_entry(mark, now_us))
        stream, epoch, clock, lost, enrolled = frame.stream, frame.epoch, frame.clock, frame.lost, self._enrolled
        orders = self._orders.get(stream)
        if orders is None:
            orders = self._orders[stream] = {}
        known = orders.get(epoch)
        if known is None:
            known = orders[epoch] = (len(orders), int.from_bytes(epoch.nonce, "little", signed=True))
        promise_us = NO_INSTANT
        if frame.promise_us is not None:
            promise_us = frame.promise_us + shift_us
        if promise_us > self._promises.get(stream, NO_INSTANT) or stream not in self._promises:
            self._promises[stream] = promise_us
        entry = Entry(
            kind=_DATA,
            device=enrolled.device,
            user=enrolled.user,
            stream=stream,
            schema=frame.schema.hex(),
            codec=frame.codec,
            session="" if clock is None else clock.session.hex(),
            gaps=_gaps(frame) if frame.gaps else "",
            epoch=known[0],
            epoch_counter=epoch.counter,
            epoch_nonce=known[1],
            first=frame.first,
            count=frame.count,
            upto=upto,
            shift_us=shift_us,
            clock_segment=0 if mark is None else mark.segment,
            clock_offset_us=0 if mark is None else mark.offset_us,
            clock_error_us=0 if mark is None else mark.error_us,
            wall_us=NO_INSTANT if clock is None or clock.wall_us is None else clock.wall_us,
            base_us=NO_INSTANT if clock is None or mark is None else clock.reading_us + mark.offset_us,
            span_us=0 if clock is None else clock.span_us,
            promise_us=promise_us,
            lost_refused=lost.refused,
            lost_dropped=lost.dropped,
            lost_thinned=lost.thinned,
            received_us=now_us,
            payload=frame.payload,
        )
        entries.append(entry)
        if frame.count and not frame.gaps:
            self._patterns[stream] = _Pattern(replace(frame, payload=b""), replace(entry, payload=b""))

    def _repeat(self, pattern: _Pattern, frame: Data, turn: Turn, upto: int, now_us: int) -> None:
        """Add the frame, which was taken, as an entry like that of the pattern."""
        stream, clock, like = frame.stream, frame.clock, pattern.entry
        assert clock is not None
        promise_us = NO_INSTANT
        if frame.promise_us is not None:
            promise_us = frame.promise_us + like.shift_us
            if promise_us > self._promises[stream]:
                self._promises[stream] = promise_us
        turn.entries.append(
            replace(
                like,
                first=frame.first,
                count=frame.count,
                upto=upto,
                wall_us=NO_INSTANT if clock.wall_us is None else clock.wall_us,
                base_us=NO_INSTANT if like.base_us == NO_INSTANT else clock.reading_us + like.clock_offset_us,
                span_us=clock.span_us,
                promise_us=promise_us,
                received_us=now_us,
                payload=frame.payload,
            )
        )
        turn.taken.append(frame)
        turn.moved[stream, frame.epoch] = upto

    def _clock_entry(self, mark: ClockMark, now_us: int) -> Entry:
        return Entry(
            kind=Kind.CLOCK,
            device=self._enrolled.device,
            user=self._enrolled.user,
            session=mark.session,
            clock_segment=mark.segment,
            clock_offset_us=mark.offset_us,
            clock_error_us=mark.error_us,
            received_us=now_us,
        )


def epoch_of(counter: int, nonce: int) -> Epoch:
    """An epoch as the log writes it."""
    return Epoch(counter, nonce.to_bytes(8, "little", signed=True))


def _refuse(turn: Turn, refused: Refused) -> Refused:
    turn.refused.append(refused)
    return refused


def _accounted(turn: Turn) -> dict[tuple[str, Epoch], None]:
    """The streams' epochs that the answer is about."""
    return dict.fromkeys([*turn.moved, *[(frame.stream, frame.epoch) for frame in turn.duplicates]])


def _gaps(frame: Data) -> str:
    return msgspec.json.encode([[gap.at, gap.skipped, gap.rows] for gap in frame.gaps]).decode()
