"""Spark's processes are heard, but for what says nothing; what is cut short or is no such thing is passed on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catchment.cloud.said import Filtering, overheard
from tests.thread.processes import wait_until

WORKER = "Streaming TransformWithStateInPandas Python worker"
NOISE = [
    f"Starting {WORKER}.",
    "",
    f"{WORKER} finish init stage of Python runner. Received UDF from JVM: <bound method …>.",
    "",
    f"{WORKER} Completed execution of UDF: <bound method …>.",
    "",
]
CLOSED = [
    "Traceback (most recent call last):",
    '  File "lib/pyspark.zip/pyspark/daemon.py", line 264, in manager',
    "    worker(sock, authenticated)",
    '  File "lib/pyspark.zip/pyspark/daemon.py", line 95, in worker',
    "BrokenPipeError: [Errno 32] Broken pipe",
]
ERRORS = [
    "26/11/20 00:34:45 ERROR TaskSetManager: Task 1 in stage 0.0 failed 1 times; aborting job",
    *[*CLOSED[:-1], "ValueError: a real one"],
    *["Traceback (most recent call last):", '  File "trips.py", line 3, in segment', CLOSED[-1]],
    *["Traceback (most recent call last):", "", "  an empty line that was there", ""],
    CLOSED[-1],
    *[CLOSED[0], CLOSED[-1]],
]


def passed(lines: list[str]) -> list[str]:
    filtering = Filtering()
    return [out for line in lines for out in filtering.passed(line)] + filtering.rest()


def test_what_says_nothing_is_left_out_and_errors_are_not() -> None:
    assert passed([*NOISE, *CLOSED, *NOISE]) == []
    assert passed(ERRORS) == ERRORS
    assert passed([*NOISE, *ERRORS, *CLOSED, *ERRORS, *NOISE]) == [*ERRORS, *ERRORS]


def test_a_trace_that_is_cut_short_is_passed_on() -> None:
    assert passed(CLOSED[:3]) == CLOSED[:3]
    long = [CLOSED[0], *CLOSED[1:3] * 20, CLOSED[-1]]
    assert passed(long) == long


def test_processes_that_are_started_meanwhile_are_heard_and_those_after_are_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = "\n".join([*NOISE, *ERRORS[:1], *CLOSED, *CLOSED[:2]])
    speak = [sys.executable, "-c", "import sys; print(sys.argv[1]); print('more', file=sys.stderr)"]
    with overheard():
        subprocess.run([*speak, told], check=True)
    subprocess.run([*speak, NOISE[0]], check=True)
    expected = "\n".join([ERRORS[0], *CLOSED[:2], "more", ""])
    heard = ["", ""]

    def all_came() -> bool:
        for number, more in enumerate(capfd.readouterr()):
            heard[number] += more
        return expected in heard[1]

    wait_until(all_came)
    assert heard[0] == NOISE[0] + "\n"
    assert heard[1].replace(expected, "") == "more\n"


def test_a_line_without_an_end_does_not_wait_for_one(tmp_path: Path) -> None:
    into = tmp_path / "heard"
    code = (
        "import os, subprocess, sys, time; from catchment.cloud.said import overheard\n"
        "with overheard(): child = subprocess.Popen([sys.executable, '-c', "
        "'import sys, time; sys.stderr.write(\"so far\"); sys.stderr.flush(); time.sleep(60)'])\n"
        "until = time.monotonic() + 30\n"
        f"while time.monotonic() < until and not os.path.getsize({str(into)!r}): time.sleep(0.05)\n"
        f"came = os.path.getsize({str(into)!r})\n"
        "child.kill()\n"
        "sys.exit(0 if came else 'it came only when its writer had ended')\n"
    )
    with into.open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stderr=out, check=True)
    assert into.read_text() == "so far"
