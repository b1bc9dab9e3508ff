"""Who reads a log: what each keeps, and that a reader which is gone can be let go of, and one that runs cannot."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from catchment.cli import main
from catchment.cloud.readers import Owner, Reading, drop, reading, readings
from catchment.errors import ProgramError
from catchment.gateway.log.files import retention
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from tests.unit.gateway.kit import LogKit, upload

RUN = """
import sys, os, pathlib
from catchment.cloud.readers import Owner, reading
with reading(pathlib.Path(sys.argv[1]), "walks.cloud", Owner("walks", sys.argv[2], os.getpid())):
    print("reading", flush=True)
    sys.stdin.read()
"""


class Dying(LocalDisk):
    """A disk under which the process dies after the first name is deleted."""

    def sync_directory(self, path: str) -> None:
        raise OSError(errno.EIO, "died")


@pytest.fixture
def kit(tmp_path: Path) -> LogKit:
    """A log of two partitions with some full segments in each."""
    log = LogKit(tmp_path / "log")
    for number in (0, 1):
        writer = log.writer(number=number, limits=Limits(segment_bytes=1500, reserve_bytes=0))
        for n in range(12):
            writer.append([upload(n + 1, payload=bytes(200))], now_us=0)
        writer.close()
    return log


def _confirm(kit: LogKit, reader: str, *, all_of_it: bool = True) -> None:
    log = LogReader(kit.disk)
    for number in range(log.partitions):
        log.confirm(reader, number, log.end(number) if all_of_it else 0)


def _trimmed(kit: LogKit) -> int:
    """How many bytes retention deletes now."""
    sizes = {path.name: path.stat().st_size for path in kit.disk.root.glob("p0000/segments/*.seg")}
    sizes |= {path.name: path.stat().st_size for path in kit.disk.root.glob("p0001/segments/*.seg")}
    return sum(sizes[gone.name] for number in (0, 1) for gone in retention.trim(kit.disk, number))


def test_a_log_is_trimmed_once_a_reader_that_is_gone_is_dropped_and_not_before(
    kit: LogKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _confirm(kit, "walks.cloud")
    _confirm(kit, "walks.cloud.backfill", all_of_it=False)
    gone, level = readings(kit.disk.root)
    assert (gone.reader, gone.confirmed, gone.owner, gone.running) == (
        "walks.cloud.backfill",
        {0: 0, 1: 0},
        None,
        False,
    )
    assert (level.reader, level.held_bytes) == ("walks.cloud", 0)
    assert _trimmed(kit) == 0
    assert main(["log", "drop", "walks.cloud.backfill", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"walks.cloud.backfill is dropped; it kept {gone.held_bytes} bytes\n"
    assert _trimmed(kit) == gone.held_bytes > 0
    assert [one.reader for one in readings(kit.disk.root)] == ["walks.cloud"]


def test_a_reader_that_a_program_runs_with_is_refused_until_that_has_ended(
    kit: LogKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _confirm(kit, "walks.cloud", all_of_it=False)
    words = [sys.executable, "-c", RUN, str(kit.disk.root), str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "reading\n"
        assert main(["log", "drop", "walks.cloud", "--data", str(tmp_path)]) == 2
        refused = capsys.readouterr().err
        assert "E058" in refused and f"process {running.pid}" in refused
        assert f"catchment stop walks --data {tmp_path}" in refused
        assert main(["log", "readers", "--data", str(tmp_path)]) == 0
        assert f"process {running.pid} runs it: walks in {tmp_path}" in capsys.readouterr().out
        # Not even told to stop: the lock is the process's.
        running.kill()
        running.wait()
    assert main(["log", "readers", "--data", str(tmp_path)]) == 0
    assert f"nobody runs it; last: walks in {tmp_path}" in capsys.readouterr().out
    assert main(["log", "drop", "walks.cloud", "--data", str(tmp_path)]) == 0
    assert re.findall(r"partition \d has no other reader", capsys.readouterr().out) == [
        "partition 0 has no other reader",
        "partition 1 has no other reader",
    ]


def test_two_backfills_are_one_reader_and_both_have_to_end(kit: LogKit) -> None:
    _confirm(kit, "walks.cloud.backfill", all_of_it=False)
    log, owner = kit.disk.root, Owner("walks", "again", 7)
    with reading(log, "walks.cloud.backfill", owner):
        with reading(log, "walks.cloud.backfill", Owner("walks", "another", 8)):
            pass
        with pytest.raises(ProgramError, match="E058"):
            drop(log, "walks.cloud.backfill")
    assert drop(log, "walks.cloud.backfill").running is False


def test_a_name_that_nobody_reads_as_is_refused_and_the_repair_works(
    kit: LogKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("walks", "../p0000/readers/walks.cloud", retention.NOBODY):
        assert main(["log", "drop", name, "--data", str(tmp_path)]) == 2
        assert "its readers are: none" in capsys.readouterr().err
    _confirm(kit, "walks.cloud")
    assert main(["log", "drop", "walks", "--data", str(tmp_path)]) == 2
    refused = capsys.readouterr().err
    assert "E057" in refused
    named = re.search(r"its readers are: (\S+)", refused)
    assert named is not None
    assert main(["log", "drop", named[1], "--data", str(tmp_path)]) == 0


def test_a_directory_without_a_log_is_refused_and_stays_as_it_is(
    kit: LogKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    for words in (["readers"], ["drop", "walks.cloud"]):
        assert main(["log", *words, "--data", str(elsewhere)]) == 2
        assert "E056" in capsys.readouterr().err
    assert not elsewhere.exists()
    assert main(["log", "readers", "--data", str(tmp_path)]) == 0


def test_what_nobody_reads_is_said(kit: LogKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogReader(kit.disk)
    log.confirm("walks.cloud", 0, log.end(0))
    assert main(["log", "readers", "--data", str(tmp_path), "--json"]) == 0
    said = [msgspec.json.decode(line, type=Reading) for line in capsys.readouterr().out.splitlines()]
    assert [(one.reader, one.held_bytes > 0) for one in said] == [(retention.NOBODY, True), ("walks.cloud", False)]
    assert main(["log", "readers", "--data", str(tmp_path)]) == 0
    assert f"{retention.NOBODY}: keeps {said[0].held_bytes} bytes: no reader" in capsys.readouterr().out


def test_a_drop_that_was_broken_off_is_done_again(kit: LogKit) -> None:
    _confirm(kit, "walks.cloud", all_of_it=False)
    with pytest.raises(OSError, match="died"):
        LogReader(Dying(kit.disk.root)).leave("walks.cloud")
    assert readings(kit.disk.root)[1].confirmed == {1: 0}
    drop(kit.disk.root, "walks.cloud")
    assert [one.reader for one in readings(kit.disk.root)] == [retention.NOBODY]
