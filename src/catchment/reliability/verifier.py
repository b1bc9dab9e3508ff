"""A whole run compared: every output stream against its ideal, and the streams with each other.

>>> ideal = {"alerts": [Element(0, ("ada", 120), 5), Element(1, ("ada", 131), 9)]}
>>> report = verify(ideal, {"alerts": [Element(0, ("ada", 120), 7)]})
>>> report.held
Reliability: limited_loss(0.5) & limited_delay(2 us) & CROSS_STREAM_ORDER
>>> print(report.stream("alerts").first_missing)
alerts[1] expected ('ada', 131), due at 9 us

Knows the streams' names. What is compared within one is `comparison`'s, and across them `cross_order`'s.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable, Mapping

from catchment.errors import ProgramError, author_line
from catchment.program.reliability import Order
from catchment.reliability.comparison import Comparison
from catchment.reliability.cross_order import first_cross_disorder
from catchment.reliability.ideal import Element, IdealStream, Tolerances
from catchment.reliability.report import FieldTolerance, Report, worst


def verify(
    ideal: Mapping[str, Iterable[Element]],
    real: Mapping[str, Iterable[Element]],
    *,
    tolerances: Mapping[str, Tolerances] | None = None,
) -> Report:
    """Compare the output streams of a run with the ideal ones, by name.

    Ideal elements come in the order of their sequence numbers, real ones in any order. A stream that is absent from
    `real` put out nothing. `tolerances` give, per stream and field, how far a number may be from the ideal one.
    """
    verifier = Verifier(ideal, tolerances=tolerances)
    for stream, elements in real.items():
        take = verifier.comparison(stream).take
        for element in elements:
            take(element)
    return verifier.report()


class Verifier:
    """Takes the real output as it comes and reports at any moment; `verify` for a run that goes on."""

    def __init__(
        self, ideal: Mapping[str, Iterable[Element]], *, tolerances: Mapping[str, Tolerances] | None = None
    ) -> None:
        self._comparisons: dict[str, Comparison] = {}
        if not ideal:
            raise ProgramError(
                "V600",
                "there is no ideal output to compare with",
                why="a comparison of nothing would find that every promise was kept",
                fix="pass the ideal output of every stream that the program puts out, also of those that are empty",
                at=author_line(),
            )
        for name in tolerances or ():
            _check_known(name, ideal)
        self._tolerances: list[FieldTolerance] = []
        for name in sorted(ideal):
            fields = (tolerances or {}).get(name, {})
            _check_tolerances(name, fields)
            self._tolerances += [FieldTolerance(name, field, limit) for field, limit in fields.items()]
            self._comparisons[name] = Comparison(IdealStream(name, ideal[name], fields))

    def comparison(self, stream: str) -> Comparison:
        """The comparison of one stream, which takes its elements."""
        _check_known(stream, self._comparisons)
        return self._comparisons[stream]

    def take(self, stream: str, element: Element) -> None:
        """One element of the real output."""
        self.comparison(stream).take(element)

    def report(self) -> Report:
        """What was found so far. What has not come yet is missing."""
        comparisons = self._comparisons.values()
        streams = tuple(comparison.report() for comparison in comparisons)
        measured = worst(tuple(stream.measured for stream in streams))
        in_order = all(stream.first_disorder is None for stream in streams)
        # Merged by ideal instant, stream and sequence number: the first three fields of what arrived.
        disorder = first_cross_disorder(heapq.merge(*(comparison.arrived() for comparison in comparisons)))
        order: Order | None = "in-stream" if in_order else None
        if in_order and disorder is None:
            order = "cross-stream"
        return Report(
            streams=streams,
            measured=measured,
            held=measured.strongest(order),
            first_cross_disorder=disorder,
            tolerances=tuple(self._tolerances),
            ideal_fingerprint=_joined({name: c.ideal.fingerprint.digest() for name, c in self._comparisons.items()}),
            real_fingerprint=_joined({name: c.fingerprint.digest() for name, c in self._comparisons.items()}),
        )


def _joined(digests: Mapping[str, bytes]) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for name, digest in digests.items():
        whole.update(hashlib.blake2b(name.encode(), digest_size=16).digest() + digest)
    return whole.hexdigest()


def _check_known(name: str, streams: Iterable[str]) -> None:
    if name not in streams:
        raise ProgramError(
            "V601",
            f"there is no ideal output of a stream {name!r}",
            why=f"the streams to compare with are: {', '.join(sorted(streams))}",
            fix="use one of these names, or pass what the reference engine put out for that stream as well",
            at=author_line(),
        )


def _check_tolerances(stream: str, tolerances: Tolerances) -> None:
    for field, limit in tolerances.items():
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
            raise ProgramError(
                "V607",
                f"a tolerance of {limit!r} for field {field!r} of {stream}",
                why="a tolerance is how far a number may be from the ideal one: more than 0, and finite",
                fix="write a small positive number such as 1e-9, or leave it out to compare the field exactly",
                at=author_line(),
            )
