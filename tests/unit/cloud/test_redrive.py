"""Quarantined rows come into the log again, each once, whatever is cut short; what cannot come says why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import catchment as cm
from catchment.cli import main
from catchment.cloud.redrive import redrive
from catchment.gateway.log.entry import Entry, Kind, joined
from catchment.gateway.log.files.partition import Partition
from catchment.gateway.log.files.reader import open_log
from catchment.plan import document
from catchment.sync.codecs.codec import codec
from tests.spark.test_cloud_part import Log
from tests.thread.program import Reading, Total


def dividing() -> cm.Program:
    program = cm.Program("thread")

    @program.stream(at=cm.DEVICE)
    def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
        return device.sensor(Reading, "meter")

    @program.stream(at=cm.CLOUD)
    def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
        good = readings.where(Reading.amount // Reading.amount > 0)
        return good.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))

    program.deliver(totals, by=Total.user)
    return program


@pytest.fixture
def data(tmp_path: Path) -> Path:
    plan = cm.build(dividing())
    log = Log(tmp_path / "log", plan)
    for user in ("ada", "bob"):
        log.append(joined(device=f"{user}-1", user=user, now=0))
        log.upload(user, (user, 1000, 7))
    log.close()
    home = tmp_path / "programs" / "thread"
    home.mkdir(parents=True)
    (home / "plan.json").write_bytes(document.write(plan))
    failing = next(v.id for part in plan.at(cm.CLOUD) for v in part.vertices if v.id.endswith("/where"))
    quarantine = tmp_path / "quarantine" / "programs" / "thread" / "totals@cloud"
    quarantine.mkdir(parents=True)
    lines = [
        {"step": failing, "reason": "division by zero", "given": ["bob", 2000, 0], "upto": ""},
        {"step": failing, "reason": "division by zero", "given": ["ada", 3000, 0], "upto": ""},
        {"step": "totals/running", "reason": "overflow", "given": ["ada", 3000, 1], "upto": ""},
    ]
    (quarantine / "000000000001-0000.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return tmp_path


def again(data: Path) -> list[Entry]:
    entries = [entry for _, entry in open_log(data / "log").read(0, 0)]
    return [entry for entry in entries if entry.kind == Kind.DATA and entry.session]


def test_a_row_is_traced_back_and_appended_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["thread", "--data", str(data)]
    assert main(["redrive", *words, "--list"]) == 0
    assert "2 at totals/where: division by zero" in capsys.readouterr().out
    assert main(["redrive", *words]) == 1
    said = capsys.readouterr().out
    assert "re-driven: 2;" in said
    assert "not re-driven: 1 at totals/running: totals/running keeps state" in said
    found = [(e.device, e.user, codec(e.codec).decode(Reading.schema, e.payload)) for e in again(data)]
    assert found == [("bob-1", "bob", [("bob", 2000, 0)]), ("ada-1", "ada", [("ada", 3000, 0)])]
    assert main(["redrive", *words]) == 1
    assert "re-driven: 0;" in capsys.readouterr().out
    assert len(again(data)) == 2


def test_one_that_is_cut_short_is_finished_and_repeats_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Partition.append

    def torn(self: Partition, entries: list[Entry], *, now_us: int) -> list[int]:
        append(self, entries[:1], now_us=now_us)
        raise KeyboardInterrupt

    monkeypatch.setattr(Partition, "append", torn)
    with pytest.raises(KeyboardInterrupt):
        redrive(data, "thread")
    monkeypatch.setattr(Partition, "append", append)
    assert redrive(data, "thread").appended == 2
    assert [entry.user for entry in again(data)] == ["bob", "ada"]


def test_a_program_that_was_never_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "thread", "--data", str(tmp_path)]) == 2
    assert "E132" in capsys.readouterr().err
