"""What a comparison found, as frozen data: counts, measurements, the first example of each fault, and what held.

A report names the strongest level that the run kept; a declared level held exactly when that one implies it. The
report reads to and from JSON, with instants and durations in microseconds.

Knows the levels, not how anything was measured.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import msgspec

from catchment.errors import ProgramError, author_line
from catchment.program.reliability import LimitedDelay, LimitedLoss, Order, Reliability
from catchment.program.types import Duration, Instant


class Witness(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element, as evidence: `ideal_at` is absent where no ideal element corresponds, `real_at` where none came."""

    stream: str
    sequence: int
    ideal_at: Instant | None = None
    real_at: Instant | None = None
    payload: str | None = None
    expected: str | None = None

    def __str__(self) -> str:
        parts = [
            self.payload,
            self.expected and f"expected {self.expected}",
            None if self.ideal_at is None else f"due at {self.ideal_at} us",
            None if self.real_at is None else f"came at {self.real_at} us",
        ]
        return f"{self.stream}[{self.sequence}] {', '.join(part for part in parts if part)}"


class Disorder(msgspec.Struct, frozen=True):
    """Two elements whose order in time was not preserved: `before` comes first ideally, or together with `after`.

    `reversed`: the later one came first. `joined`: ideally apart, they came at one instant. `parted`: ideally at one
    instant, they came apart.
    """

    kind: Literal["reversed", "joined", "parted"]
    before: Witness
    after: Witness

    def __str__(self) -> str:
        return f"{self.kind}: {self.before}; {self.after}"


class Measured(msgspec.Struct, frozen=True):
    """Counts and measurements, of one stream or of all.

    Counts are of distinct pairs of sequence number and payload; `duplicates` are the arrivals beyond the first of
    each, so `correct + incorrect + duplicates` is every arrival and `correct + missing` every ideal element.
    `error_factor` is absent where no factor is large enough: something came, and nothing was due.
    """

    ideal: int
    correct: int
    missing: int
    incorrect: int
    duplicates: int
    loss_factor: float
    error_factor: float | None
    delay_us_min: Duration | None
    delay_us_max: Duration | None

    def strongest(self, order: Order | None) -> Reliability:
        """The strongest level that was kept, where the order was."""
        loss = None
        if self.loss_factor > 0 and self.error_factor is not None:
            loss = LimitedLoss(self.loss_factor, self.error_factor)
        # Without a correct element nothing was late. One that came early was never promised by any delay.
        least, most = self.delay_us_min or 0, self.delay_us_max or 0
        return Reliability(loss, LimitedDelay(Duration(most)) if least >= 0 else None, order)


class StreamReport(msgspec.Struct, frozen=True):
    """One stream: what was measured, and the first example of each fault.

    First is by arrival for what came, by sequence number for what is missing or out of order. `held` takes the stream
    as if it were the only one.
    """

    stream: str
    measured: Measured
    held: Reliability
    first_missing: Witness | None
    first_incorrect: Witness | None
    first_duplicate: Witness | None
    earliest: Witness | None
    latest: Witness | None
    first_disorder: Disorder | None

    def holds(self, level: Reliability) -> bool:
        """Whether this stream, alone, kept the level."""
        return self.held.implies(level)


class FieldTolerance(msgspec.Struct, frozen=True):
    """How far a number in that field of a stream's payload was allowed to be from the ideal one."""

    stream: str
    field: int | str
    within: float


class Report(msgspec.Struct, frozen=True):
    """All streams of a run. A level holds for the run when it holds for each stream, and across them.

    In `measured` the counts are sums; the factors and delays are those of the worst stream. The fingerprints name
    what was compared, element by element in the order in which it was given.
    """

    streams: tuple[StreamReport, ...]
    measured: Measured
    held: Reliability
    first_cross_disorder: Disorder | None
    tolerances: tuple[FieldTolerance, ...]
    ideal_fingerprint: str
    real_fingerprint: str

    def holds(self, level: Reliability) -> bool:
        """Whether the run kept the level."""
        return self.held.implies(level)

    def stream(self, name: str) -> StreamReport:
        """The report of one stream."""
        for stream in self.streams:
            if stream.stream == name:
                return stream
        raise ProgramError(
            "V611",
            f"the report has no stream {name!r}",
            why=f"its streams are: {', '.join(stream.stream for stream in self.streams)}",
            fix="use one of these names",
            at=author_line(),
        )


def worst(parts: tuple[Measured, ...]) -> Measured:
    """Several streams measured as one: counts added, the weakest of each measurement."""
    early = [part.delay_us_min for part in parts if part.delay_us_min is not None]
    late = [part.delay_us_max for part in parts if part.delay_us_max is not None]
    errors = [part.error_factor for part in parts]
    return Measured(
        ideal=sum(part.ideal for part in parts),
        correct=sum(part.correct for part in parts),
        missing=sum(part.missing for part in parts),
        incorrect=sum(part.incorrect for part in parts),
        duplicates=sum(part.duplicates for part in parts),
        loss_factor=min((part.loss_factor for part in parts), default=1.0),
        error_factor=None if None in errors else max((e for e in errors if e is not None), default=0.0),
        delay_us_min=min(early, default=None),
        delay_us_max=max(late, default=None),
    )


def loss_factor(correct: int, ideal: int) -> float:
    """The largest factor of which `correct` elements are enough.

    Rounded so that a promise of the measured factor, read as the decimal that is printed, is one that was kept.
    """
    return _rounded(correct, ideal, down=True) if ideal else 1.0


def error_factor(incorrect: int, ideal: int) -> float | None:
    """The smallest factor that allows `incorrect` elements; None where none does."""
    if not ideal:
        return None if incorrect else 0.0
    return _rounded(incorrect, ideal, down=False)


def _rounded(part: int, whole: int, *, down: bool) -> float:
    share = part / whole
    written, exact = Fraction(repr(share)), Fraction(part, whole)
    if written > exact if down else written < exact:
        return math.nextafter(share, 0.0 if down else math.inf)
    return share
