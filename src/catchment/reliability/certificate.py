"""A certificate: what was promised, whether it was kept, and the measurements that say so; as JSON and as text.

It names the two outputs that were compared by their fingerprints, so that whoever holds them can compare again. It is
not signed: it is evidence to be checked, not authority.

Knows the report and its text form. It takes no clock and touches no file.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from catchment.errors import PeerError, ProgramError
from catchment.program.reliability import Reliability, duration_text
from catchment.reliability.report import Measured, Report, StreamReport

FORMAT: Literal["catchment-reliability-certificate"] = "catchment-reliability-certificate"
VERSION: Literal[1] = 1


class _Header(msgspec.Struct):
    format: str
    version: int


class Certificate(msgspec.Struct, frozen=True):
    """Whether a run, the `subject`, kept the reliability that its program declares."""

    format: Literal["catchment-reliability-certificate"]
    version: Literal[1]
    subject: str
    declared: Reliability
    kept: bool
    report: Report

    def holds(self, level: Reliability) -> bool:
        """Whether the run kept that level, declared or not."""
        return self.report.holds(level)

    @property
    def broken(self) -> tuple[Reliability, ...]:
        """The parts of the declared level that were not kept, one per dimension."""
        declared = self.declared
        parts = (Reliability(declared.loss), Reliability(delay=declared.delay), Reliability(order=declared.order))
        return tuple(part for part in parts if not self.holds(part))

    def to_json(self) -> bytes:
        """The certificate as JSON."""
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(document: bytes | str) -> Certificate:
        """Read a certificate, and refuse one that is not, or whose verdict does not follow from its measurements."""
        try:
            header = msgspec.json.decode(document, type=_Header)
            if (header.format, header.version) != (FORMAT, VERSION):
                raise PeerError(
                    "V609",
                    f"this is {header.format}, version {header.version}",
                    why=f"what can be read here is {FORMAT}, version {VERSION}",
                    fix="read it with the release of catchment that wrote it, or certify the run again",
                )
            certificate = msgspec.json.decode(document, type=Certificate)
        except (msgspec.DecodeError, UnicodeDecodeError, ProgramError) as error:
            raise PeerError(
                "V608",
                "this is no reliability certificate",
                why=str(error),
                fix="pass what Certificate.to_json() wrote, unchanged",
            ) from error
        if certificate.kept != certificate.report.holds(certificate.declared):
            raise PeerError(
                "V610",
                f"the certificate of {certificate.subject} contradicts itself",
                why=f"its verdict is {_verdict(certificate)}, but it measured {certificate.report.held}",
                fix="certify the run again: this document was changed after it was written",
            )
        return certificate

    def text(self) -> str:
        """The certificate for people."""
        report = self.report
        head = [
            f"Reliability certificate for {self.subject}",
            f"  declared   {self.declared}",
            f"  verdict    {_verdict(self)}",
            f"  measured   {report.held}",
            f"  compared   ideal output {report.ideal_fingerprint}, real output {report.real_fingerprint}",
        ]
        head += [f"  tolerance  {rule.stream}[{rule.field!r}] within {rule.within}" for rule in report.tolerances]
        evidence = [line for stream in report.streams for line in _evidence(stream)]
        if report.first_cross_disorder is not None:
            evidence.append(f"  across streams, {report.first_cross_disorder}")
        return "\n".join([*head, "", *_table(report), *(["", "First examples", *evidence] if evidence else [])]) + "\n"


def certify(declared: Reliability, report: Report, *, subject: str) -> Certificate:
    """The certificate of a run, the `subject`, whose program declares that reliability."""
    return Certificate(FORMAT, VERSION, subject, declared, report.holds(declared), report)


def _verdict(certificate: Certificate) -> str:
    return "KEPT" if certificate.kept else f"BROKEN: {', '.join(str(part) for part in certificate.broken)}"


def _table(report: Report) -> list[str]:
    head = ("stream", "ideal", "correct", "missing", "incorrect", "duplicates", "loss factor", "error factor", "delay")
    rows = [head, *(_row(stream.stream, stream.measured) for stream in report.streams)]
    if len(report.streams) > 1:
        rows.append(_row("all", report.measured))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(name: str, measured: Measured) -> tuple[str, ...]:
    counts = (measured.ideal, measured.correct, measured.missing, measured.incorrect, measured.duplicates)
    error_factor = "unbounded" if measured.error_factor is None else f"{measured.error_factor:.6g}"
    delay = "none came"
    if measured.delay_us_min is not None and measured.delay_us_max is not None:
        delay = f"{duration_text(measured.delay_us_min)} to {duration_text(measured.delay_us_max)}"
    return (name, *map(str, counts), f"{measured.loss_factor:.6g}", error_factor, delay)


def _evidence(stream: StreamReport) -> list[str]:
    early = stream.measured.delay_us_min is not None and stream.measured.delay_us_min < 0
    late = stream.measured.delay_us_max is not None and stream.measured.delay_us_max > 0
    found = {
        "missing": stream.first_missing,
        "incorrect": stream.first_incorrect,
        "duplicate": stream.first_duplicate,
        "earliest": stream.earliest if early else None,
        "latest": stream.latest if late else None,
        "order": stream.first_disorder,
    }
    return [f"  {name:<10} {example}" for name, example in found.items() if example is not None]
