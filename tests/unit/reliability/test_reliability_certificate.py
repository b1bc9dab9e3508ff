"""Certificates: what they say, to people and to programs, and which documents are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import PeerError
from catchment.program.reliability import (
    BEST_EFFORT,
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IDEAL,
    IN_STREAM_ORDER,
    LOSSLESS,
    Reliability,
    limited_delay,
    limited_loss,
)
from catchment.program.types import Duration, Instant
from catchment.reliability import Certificate, Element, Report, certify, verify

TRIPS = [Element(0, ("ada", 1.5), Instant(0)), Element(1, ("ben", 2.5), Instant(1_000_000))]
STOPS = [Element(0, ("ada",), Instant(500_000))]
LEVELS = [BEST_EFFORT, LOSSLESS, limited_loss(0.5, 1), limited_delay(Duration(5)), DELAY_FREE, IDEAL, IN_STREAM_ORDER]


def run() -> Report:
    """Everything goes wrong: one element is missing, one wrong, one doubled, one late and so out of order."""
    real = {
        "trips": [Element(0, ("ada", 1.5 + 1e-12), Instant(2_500_000)), Element(1, ("ben", 9.0), Instant(1_000_000))],
        "stops": [Element(0, ("ada",), Instant(500_250)), Element(0, ("ada",), Instant(500_250))],
    }
    return verify({"trips": TRIPS, "stops": STOPS}, real, tolerances={"trips": {1: 1e-9}})


def ideal_run() -> Report:
    return verify({"stops": STOPS}, {"stops": STOPS})


def test_the_text_says_what_was_promised_and_what_became_of_it() -> None:
    certificate = certify(LOSSLESS & limited_delay(Duration(5_000_000)) & CROSS_STREAM_ORDER, run(), subject="peir")
    fingerprints = run().ideal_fingerprint, run().real_fingerprint
    assert certificate.text() == (
        "Reliability certificate for peir\n"
        "  declared   LOSSLESS & limited_delay(5 s) & CROSS_STREAM_ORDER\n"
        "  verdict    BROKEN: LOSSLESS, CROSS_STREAM_ORDER\n"
        "  measured   limited_loss(0.5, 0.5) & limited_delay(2.5 s) & IN_STREAM_ORDER\n"
        f"  compared   ideal output {fingerprints[0]}, real output {fingerprints[1]}\n"
        "  tolerance  trips[1] within 1e-09\n"
        "\n"
        "stream  ideal  correct  missing  incorrect  duplicates  loss factor  error factor  delay\n"
        "stops   1      1        0        0          1           1            0             250 us to 250 us\n"
        "trips   2      1        1        1          0           0.5          0.5           2.5 s to 2.5 s\n"
        "all     3      2        1        1          1           0.5          0.5           250 us to 2.5 s\n"
        "\n"
        "First examples\n"
        "  duplicate  stops[0] due at 500000 us, came at 500250 us\n"
        "  latest     stops[0] due at 500000 us, came at 500250 us\n"
        "  missing    trips[1] expected ('ben', 2.5), due at 1000000 us\n"
        "  incorrect  trips[1] ('ben', 9.0), expected ('ben', 2.5), due at 1000000 us, came at 1000000 us\n"
        "  latest     trips[0] due at 0 us, came at 2500000 us\n"
        "  across streams, reversed: trips[0] due at 0 us, came at 2500000 us; "
        "stops[0] due at 500000 us, came at 500250 us\n"
    )


def test_the_text_of_a_run_that_kept_its_promise() -> None:
    text = certify(IDEAL, ideal_run(), subject="peir").text()
    assert "verdict    KEPT" in text
    assert "First examples" not in text
    assert "all" not in text


def test_a_verdict_of_nothing_shows_that_nothing_came() -> None:
    certificate = certify(DELAY_FREE, verify({"stops": STOPS}, {}), subject="peir")
    assert certificate.kept
    assert "none came" in certificate.text()
    surplus = certify(limited_loss(0.5, 99), verify({"stops": []}, {"stops": STOPS}), subject="peir")
    assert not surplus.kept
    assert "unbounded" in surplus.text()


@settings(deadline=None)
@given(st.sampled_from(LEVELS), st.sampled_from(LEVELS), st.sampled_from(LEVELS), st.sampled_from([run, ideal_run]))
def test_a_certificate_holds_what_its_run_held(
    a: Reliability, b: Reliability, asked: Reliability, outcome: Callable[[], Report]
) -> None:
    report = outcome()
    certificate = certify(a & b, report, subject="a run")
    assert certificate.kept == certificate.holds(a & b) == (report.holds(a) and report.holds(b))
    assert certificate.holds(asked) == report.holds(asked)
    assert (certificate.broken == ()) == certificate.kept
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_the_document_is_versioned_and_says_everything() -> None:
    document = json.loads(certify(LOSSLESS, run(), subject="peir").to_json())
    assert (document["format"], document["version"]) == ("catchment-reliability-certificate", 1)
    assert (document["subject"], document["kept"]) == ("peir", False)
    assert document["declared"] == {"loss": {"loss_factor": 1.0, "error_factor": 0.0}}
    assert document["report"]["measured"] == {
        "ideal": 3,
        "correct": 2,
        "missing": 1,
        "incorrect": 1,
        "duplicates": 1,
        "loss_factor": 0.5,
        "error_factor": 0.5,
        "delay_us_min": 250,
        "delay_us_max": 2_500_000,
    }
    assert document["report"]["tolerances"] == [{"stream": "trips", "field": 1, "within": 1e-9}]


def _changed(**change: Any) -> str:
    return json.dumps({**json.loads(certify(LOSSLESS, run(), subject="peir").to_json()), **change})


@pytest.mark.parametrize(
    ("code", "document"),
    [
        ("V608", b""),
        ("V608", b"\xff\xfe"),
        ("V608", "[]"),
        ("V608", '{"format": "catchment-reliability-certificate", "version": 1}'),
        ("V608", _changed(declared={"loss": {"loss_factor": 7.0, "error_factor": 0.0}})),
        ("V608", _changed(report=None)),
        ("V609", _changed(version=2)),
        ("V609", _changed(format="another-certificate")),
        ("V610", _changed(kept=True)),
        ("V610", _changed(declared={})),
    ],
)
def test_a_document_that_is_no_certificate_is_refused(code: str, document: str | bytes) -> None:
    with pytest.raises(PeerError) as caught:
        Certificate.from_json(document)
    assert caught.value.code == code


def test_the_repair_of_a_refused_document_is_to_certify_again() -> None:
    assert Certificate.from_json(certify(LOSSLESS, run(), subject="peir").to_json()).subject == "peir"
    assert Certificate.from_json(_changed()).subject == "peir"
