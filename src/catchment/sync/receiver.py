"""The receiving end of sync streams: what to do with a data frame, decided before anything is stored.

Promises: of every (stream, epoch) each number is accepted once, in order, without a hole that the sender did not
declare. `consider` only decides. `take` remembers what is on its way to the disk, so that frames can follow each other
without waiting; `commit` says that it is there, and only then is there something to acknowledge; `roll_back` forgets
what never got there. The same class serves the gateway for uploads and a device for results. Knows numbers and
readings; must not know payloads, files or whether the sender may.

>>> from catchment.sync.frame import Epoch
>>> receiver, epoch = Receiver(), Epoch(1, b"one nonc")
>>> first = Data("fixes", epoch, first=0, count=3, schema=b"", codec="none")
>>> receiver.consider(first)
Accept(upto=3, skipped=0, opens_epoch=True)
>>> mark = receiver.take(first); receiver.marks()
()
>>> receiver.commit(mark); receiver.marks()[0].upto, receiver.consider(first)
(3, Duplicate(upto=3))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from catchment.errors import PeerError
from catchment.sync.frame import Beat, Data, Epoch, Hello, Mark
from catchment.sync.table import Rule, Table, Watch

SUPERSEDED = "S411"
"""The code of a refusal that says that an epoch is over."""

TABLE = Table(
    "receiver",
    ("unmet", "met"),
    (
        Rule("open", ("unmet",), "a frame of a new epoch that starts at 0", "met", "accept; this epoch is the newest"),
        Rule("accept", ("met",), "a frame of the newest epoch that starts where the last ended", "", "accept"),
        Rule("duplicate", ("met",), "a frame all of whose numbers are there", "", "acknowledge again, keep nothing"),
        Rule("gap", ("unmet", "met"), "a frame that starts elsewhere", "", "refuse: send from the mark on [S410]"),
        Rule("superseded", ("unmet", "met"), "new numbers of an epoch that is over", "", "refuse, keep aside [S411]"),
        Rule("future", ("unmet", "met"), "an epoch or a reading that cannot be yet", "", "refuse, keep aside [S412]"),
    ),
)
"""Per (stream, epoch): whether it has been met."""


class Accept(msgspec.Struct, frozen=True):
    """Store all rows of the frame; `skipped` of its numbers were given up by the sender."""

    upto: int
    skipped: int
    opens_epoch: bool


class Duplicate(msgspec.Struct, frozen=True):
    """Everything in it is there, or on its way: acknowledge what is durable, keep nothing."""

    upto: int


class Refuse(msgspec.Struct, frozen=True):
    """Keep nothing and answer with the error. `mark` says where to send on from, where that helps."""

    error: PeerError
    mark: Mark | None
    keep_aside: bool
    """Whether the bytes are worth a look by a person."""


Verdict: TypeAlias = Accept | Duplicate | Refuse


class Receiver:
    """The marks of one sender's streams. `marks` are those that are durable, epochs in the order of first contact."""

    def __init__(self, marks: Iterable[Mark] = (), watch: Watch | None = None) -> None:
        self._durable: dict[str, dict[Epoch, int]] = {}
        for mark in marks:
            self._durable.setdefault(mark.stream, {})[mark.epoch] = mark.upto
        self._taken = {stream: dict(epochs) for stream, epochs in self._durable.items()}
        self._watch = watch
        self._greeting: Hello | None = None
        self._reading_us: int | None = None

    def go_on_from(self, before: Receiver) -> None:
        """The conversation is the one that `before` was having: what the sender said of itself there still holds."""
        self._greeting, self._reading_us = before._greeting, before._reading_us

    def heard(self, frame: Hello | Beat) -> None:
        """The sender said who it is now, and how far its boot clock has come: what no frame of it can be ahead of."""
        if isinstance(frame, Hello):
            self._greeting = frame
            self._reading_us = frame.reading_us
        elif self._greeting is not None and self._reading_us is not None and frame.session == self._greeting.session:
            self._reading_us = max(self._reading_us, frame.reading_us)

    def follow(self, frame: Data) -> int | None:
        """Take the frame if it simply goes on where the newest epoch stands, as nearly every frame does, and return the
        mark that it moves to. None changes nothing: `consider` says what the frame is."""
        epochs = self._taken.get(frame.stream)
        if not epochs or not frame.count or frame.gaps:
            return None
        newest = next(reversed(epochs))
        if frame.epoch != newest or frame.first != epochs[newest] or self._impossible(frame):
            return None
        upto = epochs[newest] = frame.first + frame.count
        if self._watch is not None:
            self._watch(TABLE.name, TABLE.rules["accept"])
        return upto

    def consider(self, frame: Data) -> Verdict:
        """What to do with the frame. Changes nothing."""
        epochs = self._taken.get(frame.stream, {})
        expected = epochs.get(frame.epoch)
        impossible = self._impossible(frame)
        if impossible:
            return self._verdict("future", Refuse(_future(frame, impossible), None, keep_aside=True))
        if expected is None:
            if self._greeting is not None and frame.epoch != self._greeting.epoch and self._greeting.epoch in epochs:
                # A start drains what earlier ones left before it adds its own: this is not left, it is late.
                return self._verdict("superseded", Refuse(_superseded(frame, 0), None, keep_aside=True))
            if frame.first != 0:
                return self._verdict("gap", self._gap(frame, 0))
            return self._verdict("open", Accept(frame.upto, frame.skipped, opens_epoch=True))
        if frame.upto <= expected:
            return self._verdict("duplicate", Duplicate(expected))
        if frame.epoch != next(reversed(epochs)):
            return self._verdict("superseded", Refuse(_superseded(frame, expected), None, keep_aside=True))
        if frame.first != expected:
            # Also where it overlaps: to ask again is rare and cheap, to cut a payload that nobody decodes is neither.
            return self._verdict("gap", self._gap(frame, expected))
        return self._verdict("accept", Accept(frame.upto, frame.skipped, opens_epoch=False))

    def take(self, frame: Data) -> Mark:
        """The accepted frame is on its way to the disk. Returns the mark that it will move."""
        self._taken.setdefault(frame.stream, {})[frame.epoch] = frame.upto
        return Mark(frame.stream, frame.epoch, frame.upto)

    def commit(self, mark: Mark) -> None:
        """Everything below the mark is durable."""
        epochs = self._durable.setdefault(mark.stream, {})
        epochs[mark.epoch] = max(mark.upto, epochs.get(mark.epoch, 0))
        taken = self._taken.setdefault(mark.stream, {})
        taken[mark.epoch] = max(mark.upto, taken.get(mark.epoch, 0))

    def roll_back(self) -> None:
        """What was on its way never got there."""
        self._taken = {stream: dict(epochs) for stream, epochs in self._durable.items()}

    def marks(self, stream: str | None = None) -> tuple[Mark, ...]:
        """What is durable: of all streams or of one, the newest epoch last."""
        return tuple(
            [
                Mark(name, epoch, upto)
                for name, epochs in self._durable.items()
                if stream is None or name == stream
                for epoch, upto in epochs.items()
            ]
        )

    def mark(self, stream: str, epoch: Epoch) -> Mark:
        """What is durable of that epoch."""
        return Mark(stream, epoch, self._durable.get(stream, {}).get(epoch, 0))

    def _verdict(self, rule: str, verdict: Verdict) -> Verdict:
        if self._watch is not None:
            self._watch(TABLE.name, TABLE.rules[rule])
        return verdict

    def _impossible(self, frame: Data) -> str:
        """Why the frame cannot have been sent yet, if so."""
        greeting, clock = self._greeting, frame.clock
        if greeting is not None and frame.epoch.counter > greeting.epoch.counter:
            return f"its epoch {frame.epoch} comes after the sender's own, {greeting.epoch}"
        if greeting is None or clock is None or self._reading_us is None or clock.session != greeting.session:
            return ""
        if clock.reading_us + clock.span_us > self._reading_us:
            return f"it was read at {clock.reading_us + clock.span_us} us, and it was sent at {self._reading_us} us"
        return ""

    def _gap(self, frame: Data, expected: int) -> Refuse:
        error = PeerError(
            "S410",
            f"a frame of {frame.stream} starts at {frame.first} where {expected} is next",
            why="a frame before it is missing, or was sent before with another end",
            fix=f"send from number {expected} on; numbers that no longer exist are named as gaps",
        )
        return Refuse(error, Mark(frame.stream, frame.epoch, expected), keep_aside=False)


def _superseded(frame: Data, expected: int) -> PeerError:
    return PeerError(
        "S411",
        f"epoch {frame.epoch} of {frame.stream} has ended at {expected}",
        why="the sender has begun a later epoch since, which it does once this one is complete",
        fix="open another epoch, and number there what this one has left",
    )


def _future(frame: Data, why: str) -> PeerError:
    return PeerError(
        "S412",
        f"a frame of {frame.stream} comes from the future",
        why=why,
        fix="say hello with the newest epoch and the boot clock's reading as each message leaves",
    )
