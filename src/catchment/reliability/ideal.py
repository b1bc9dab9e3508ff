"""The ideal output of one stream, held in columns: what was due, when, and with which payload.

An element costs 24 bytes and its payload (at most 33 more), so ten million of them fit a laptop, and finding one by
its sequence number is a binary search.

Knows the ideal elements and when a real payload is the one that was due. It knows nothing of what arrived.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from catchment.errors import ProgramError, author_line
from catchment.program.types import Instant
from catchment.reliability.payload import Field, Sameness, encode, has_field, show

Tolerances: TypeAlias = Mapping[Field, float]
"""How far a number may be from the ideal one, by field of the payload."""

_HEAD = struct.Struct("<qq")  # sequence and instant; the encoding of the payload says itself where it ends


class Element(NamedTuple):
    """An element of an output stream: its sequence number, its payload and the instant at which it came out."""

    sequence: int
    payload: Any
    at: Instant


class Fingerprint:
    """Names a sequence of elements, in the order in which they were read."""

    def __init__(self, side: str, stream: str) -> None:
        self._origin = f"the {side} output of {stream}"
        self._hash = hashlib.blake2b(digest_size=16)

    def read(self, element: Element) -> bytes:
        """The encoding of the element's payload; refuses what is no element."""
        try:
            sequence, payload, at = element
            head = _HEAD.pack(sequence, at)
        except (TypeError, ValueError, struct.error) as error:
            raise ProgramError(
                "V605",
                f"{self._origin}: {show(element)} is no element",
                why="an element is a sequence number, a payload and an instant in whole microseconds",
                fix="pass Element(sequence, payload, at), where the first and the last are integers of 64 bits",
                at=author_line(),
            ) from error
        try:
            raw = encode(payload)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ProgramError(
                "V604",
                f"{self._origin}: the payload of element {sequence!r} cannot be compared",
                why=str(error),
                fix="make it of null, bool, int (64 bits), float, str, bytes, and tuples, lists and mappings of these",
                at=author_line(),
            ) from error
        self._hash.update(head)
        self._hash.update(raw)
        return raw

    def digest(self) -> bytes:
        """The name of what was read so far."""
        return self._hash.digest()


class IdealStream:
    """The ideal elements of one stream, by index in their order."""

    def __init__(self, name: str, elements: Iterable[Element], tolerances: Tolerances) -> None:
        self.name = name
        self.sequences = array("q")
        self.due_at = array("q")
        self.fingerprint = Fingerprint("ideal", name)
        self._tolerances = tolerances
        self._same = Sameness(tolerances)
        self._payloads = bytearray()
        self._payload_ends = array("Q", [0])
        self._near = tuple(array("d") for _ in tolerances)
        for element in elements:
            self._append(element)

    def __len__(self) -> int:
        return len(self.sequences)

    def index(self, sequence: int) -> int | None:
        """Where the element of that sequence number stands, if there is one."""
        index = bisect_left(self.sequences, sequence)
        return index if index < len(self.sequences) and self.sequences[index] == sequence else None

    def matches(self, index: int, payload: object, raw: bytes) -> bool:
        """Whether a payload, of which `raw` is the encoding, is the one that was due there."""
        return self._same.matches(self._held(index), self._held_near(index), *self._same.split(payload, raw))

    def show(self, index: int) -> str:
        """The payload that was due there, for people."""
        return self._same.show(self._held(index), self._held_near(index))

    def _append(self, element: Element) -> None:
        raw = self.fingerprint.read(element)
        sequence, payload, at = element
        self._check_follows(sequence, at)
        for field in self._tolerances:
            if not has_field(payload, field):
                raise ProgramError(
                    "V606",
                    f"a tolerance for field {field!r} of {self.name}",
                    why=f"its element {sequence} has no such field: {show(payload)}",
                    fix="name a position in the row, as schema.position(name) gives it, or an entry of a mapping",
                    at=author_line(),
                )
        key, near = self._same.split(payload, raw)
        self.sequences.append(sequence)
        self.due_at.append(at)
        self._payloads += self._same.hold(key)
        self._payload_ends.append(len(self._payloads))
        for column, number in zip(self._near, near, strict=True):
            column.append(number)

    def _check_follows(self, sequence: int, at: int) -> None:
        if self.sequences and sequence <= self.sequences[-1]:
            raise ProgramError(
                "V602",
                f"the ideal output of {self.name} has element {sequence} after {self.sequences[-1]}",
                why="sequence numbers rise: each belongs to one payload, and they say what comes after what",
                fix="number the elements as they are put out, and pass them in that order",
                at=author_line(),
            )
        if self.due_at and at < self.due_at[-1]:
            raise ProgramError(
                "V603",
                f"the ideal output of {self.name} goes back in time at element {sequence}",
                why=f"it is due at {at} us and the one before it at {self.due_at[-1]} us; an ideal system keeps order",
                fix="sort the elements by time before they are numbered",
                at=author_line(),
            )

    def _held(self, index: int) -> bytes:
        return bytes(self._payloads[self._payload_ends[index] : self._payload_ends[index + 1]])

    def _held_near(self, index: int) -> tuple[float, ...]:
        return tuple(column[index] for column in self._near)
