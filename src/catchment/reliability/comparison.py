"""One stream compared: takes the real elements one at a time and measures them against the ideal ones.

A correct arrival leaves 17 bytes per ideal element, however many copies come; an incorrect one is remembered by a
hash, so that another copy of it is not counted again. The real output itself is never held.

Knows one stream's definitions: loss, delay and in-stream order (docs/decisions/0041). It knows no other stream.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from catchment.program.reliability import Order
from catchment.program.types import Duration, Instant
from catchment.reliability.ideal import Element, Fingerprint, IdealStream
from catchment.reliability.payload import identity, show
from catchment.reliability.report import Disorder, Measured, StreamReport, Witness, error_factor, loss_factor


class Arrived(NamedTuple):
    """A correct element, and the instants at which its first and its last copy came."""

    due_at: Instant
    stream: str
    sequence: int
    first_at: Instant
    last_at: Instant

    def witness(self, at: Instant) -> Witness:
        """This element as evidence, as it came at that instant."""
        return Witness(self.stream, self.sequence, self.due_at, at)


class Comparison:
    """What has come of one stream, measured against what was due."""

    def __init__(self, ideal: IdealStream) -> None:
        self.ideal = ideal
        self.fingerprint = Fingerprint("real", ideal.name)
        self._came = bytearray(len(ideal))
        self._first_at = array("q", bytes(8 * len(ideal)))
        self._last_at = array("q", bytes(8 * len(ideal)))
        self._correct = 0
        self._duplicates = 0
        self._incorrect: set[bytes] = set()
        self._first_incorrect: Witness | None = None
        self._first_duplicate: Witness | None = None
        self._earliest: tuple[int, Arrived] | None = None
        self._latest: tuple[int, Arrived] | None = None

    def take(self, element: Element) -> None:
        """One element of the real output."""
        raw = self.fingerprint.read(element)
        index = self.ideal.index(element[0])
        if index is not None and self.ideal.matches(index, element[1], raw):
            self._take_correct(index, element[2])
        else:
            self._take_incorrect(index, element, raw)

    def _take_correct(self, index: int, at: Instant) -> None:
        delay = at - self.ideal.due_at[index]
        if self._latest is None or delay > self._latest[0]:
            self._latest = (delay, self._arrived(index, at, at))
        if self._earliest is None or delay < self._earliest[0]:
            self._earliest = (delay, self._arrived(index, at, at))
        if not self._came[index]:
            self._came[index] = 1
            self._first_at[index] = self._last_at[index] = at
            self._correct += 1
            return
        # Loss does not count a further copy. Delay and order do: it is an element that came, at its own instant.
        self._first_at[index] = min(self._first_at[index], at)
        self._last_at[index] = max(self._last_at[index], at)
        self._duplicates += 1
        if self._first_duplicate is None:
            self._first_duplicate = self._arrived(index, at, at).witness(at)

    def _take_incorrect(self, index: int | None, element: Element, raw: bytes) -> None:
        sequence, payload, at = element
        due_at = None if index is None else Instant(self.ideal.due_at[index])
        name = sequence.to_bytes(8, "little", signed=True) + identity(raw)
        if name in self._incorrect:
            self._duplicates += 1
            if self._first_duplicate is None:
                self._first_duplicate = Witness(self.ideal.name, sequence, due_at, at, show(payload))
            return
        self._incorrect.add(name)
        if self._first_incorrect is None:
            expected = None if index is None else self.ideal.show(index)
            self._first_incorrect = Witness(self.ideal.name, sequence, due_at, at, show(payload), expected)

    def arrived(self) -> Iterator[Arrived]:
        """The correct elements that have come, in the order of the ideal stream."""
        index = self._came.find(1)
        while index >= 0:
            yield self._arrived(index, self._first_at[index], self._last_at[index])
            index = self._came.find(1, index + 1)

    def report(self) -> StreamReport:
        """What was found so far."""
        due = len(self.ideal)
        measured = Measured(
            ideal=due,
            correct=self._correct,
            missing=due - self._correct,
            incorrect=len(self._incorrect),
            duplicates=self._duplicates,
            loss_factor=loss_factor(self._correct, due),
            error_factor=error_factor(len(self._incorrect), due),
            delay_us_min=None if self._earliest is None else Duration(self._earliest[0]),
            delay_us_max=None if self._latest is None else Duration(self._latest[0]),
        )
        disorder = self._first_disorder()
        # Alone, a stream has no other to be out of order with.
        order: Order | None = "cross-stream" if disorder is None else None
        return StreamReport(
            stream=self.ideal.name,
            measured=measured,
            held=measured.strongest(order),
            first_missing=self._first_missing(),
            first_incorrect=self._first_incorrect,
            first_duplicate=self._first_duplicate,
            earliest=_extreme(self._earliest),
            latest=_extreme(self._latest),
            first_disorder=disorder,
        )

    def _first_disorder(self) -> Disorder | None:
        # The neighbours of a missing element still have an order, and so has every copy: each first copy is held
        # against the last copy of the element that came before it.
        before: Arrived | None = None
        for after in self.arrived():
            if before is not None and before.last_at > after.first_at:
                return Disorder("reversed", before.witness(before.last_at), after.witness(after.first_at))
            before = after
        return None

    def _first_missing(self) -> Witness | None:
        index = self._came.find(0)
        if index < 0:
            return None
        due_at = Instant(self.ideal.due_at[index])
        return Witness(self.ideal.name, self.ideal.sequences[index], due_at, expected=self.ideal.show(index))

    def _arrived(self, index: int, first_at: int, last_at: int) -> Arrived:
        return Arrived(
            Instant(self.ideal.due_at[index]),
            self.ideal.name,
            self.ideal.sequences[index],
            Instant(first_at),
            Instant(last_at),
        )


def _extreme(found: tuple[int, Arrived] | None) -> Witness | None:
    return None if found is None else found[1].witness(found[1].first_at)
