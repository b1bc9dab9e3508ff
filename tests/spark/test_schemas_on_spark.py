"""Uploads of other schemas than the program's: older ones decode, unknown ones wait in quarantine to be known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

import catchment as cm
from catchment.cloud.publish import Publisher
from catchment.cloud.query import results
from catchment.cloud.redrive import redrive
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.cloud.sinks.quarantine import QuarantineSink
from catchment.cloud.upgrade import upgrade
from catchment.gateway.log.entry import joined
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.program.types import FLOAT, INSTANT, STR, Column, Schema
from catchment.sync.codecs.codec import codec
from tests.spark import newer
from tests.spark.test_cloud_part import Log
from tests.thread.program import Reading, Total

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


# Nothing that is added or left out turns it into a reading.
ALIEN = Schema("Reading", (Column("user", STR), Column("at", INSTANT), Column("amount", FLOAT)))


class Most(cm.Record):
    """The largest scale of a user's readings."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    most: cm.Field[int | None]


def before() -> Plan:
    """How many readings a user sent, and their sum."""
    program = cm.Program("thread")

    @program.stream(at=cm.DEVICE)
    def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
        return device.sensor(Reading, "meter")

    @program.stream(at=cm.CLOUD)
    def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
        keyed = readings.key_by(Reading.user)
        return keyed.state(Total, order="arrival", count=cm.count(), total=cm.sum(Reading.amount))

    program.deliver(totals, by=Total.user)
    return cm.build(program)


def after() -> Plan:
    """The same of newer readings, and beside it the largest of what they have more."""
    program = cm.Program("thread")

    @program.stream(at=cm.DEVICE)
    def readings(device: cm.DeviceSite) -> cm.Stream[newer.Reading]:
        return device.sensor(newer.Reading, "meter")

    @program.stream(at=cm.CLOUD)
    def totals(readings: cm.Stream[newer.Reading]) -> cm.Stream[Total]:
        keyed = readings.key_by(newer.Reading.user)
        return keyed.state(Total, order="arrival", count=cm.count(), total=cm.sum(newer.Reading.amount))

    @program.stream(at=cm.CLOUD)
    def most(readings: cm.Stream[newer.Reading]) -> cm.Stream[Most]:
        return readings.key_by(newer.Reading.user).state(Most, most=cm.max(newer.Reading.times))

    program.deliver(totals, by=Total.user)
    program.deliver(most, by=Most.user)
    return cm.build(program)


def test_what_is_not_known_yet_waits_and_what_is_older_decodes(spark: SparkSession, tmp_path: Path) -> None:
    old, new = before(), after()
    sent = newer.Reading.schema
    log = Log(tmp_path / "log", old)
    home = tmp_path / "programs" / "thread"
    quarantine = tmp_path / "quarantine" / "programs" / "thread"

    def run(plan: Plan, generation: int) -> int:
        """How many were refused."""
        (part,) = [part for part in plan.at(cm.CLOUD) if part.inputs]
        refusing = QuarantineSink(str(quarantine / part.name))
        publish = Publisher([DownlinkSink(document.write(plan), str(tmp_path), generation), refusing])
        writer = results(spark, plan, part, log.path, {}).writeStream.foreachBatch(publish)
        writer = writer.option("checkpointLocation", str(home / part.name / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(180)
        return publish.given.get("quarantine", 0)

    def total() -> tuple[int, int]:
        downlink = open_downlink(tmp_path)
        (last,) = [o for o in downlink.pending("ada-1", "ada", {}, bytes_max=1 << 20) if o.stream == "thread/totals"]
        downlink.close()
        ((_, _, count, amount),) = codec(last.codec).decode(Total.schema, last.payload)
        return count, amount

    log.append(joined(device="ada-1", user="ada", now=0))
    log.upload("ada", ("ada", 1000, 1))
    log.upload("ada", ("ada", 1001, 10, 5), ("ada", 1002, 20, 5), written=sent)
    log.upload("ada", ("ada", 1003, 0.5), written=ALIEN)
    log.upload("ada", ("ada", 1004, 2))
    assert run(old, 1) == 2
    assert total() == (2, 3), "the stream goes on"
    lines = [
        msgspec.json.decode(line) for path in quarantine.rglob("*.jsonl") for line in path.read_bytes().splitlines()
    ]
    for line, schema in zip(lines, (sent, ALIEN), strict=True):
        assert line["step"] == "thread/readings"
        assert line["reason"] == f"schema {schema.fingerprint} is not one that this program knows"
        assert (line["given"]["device"], line["given"]["count"]) == ("ada-1", 2 if schema is sent else 1)

    log.close()
    home.mkdir(parents=True, exist_ok=True)
    (home / "plan.json").write_bytes(document.write(old))
    assert redrive(tmp_path, "thread").appended == 0, "it is not known yet"
    made = upgrade(old, upgrade(None, {}, old).forms, new)
    assert made.began == ["most/running"]
    (home / "plan.json").write_bytes(document.write(made.plan))
    driven = redrive(tmp_path, "thread")
    assert driven.appended == 1
    ((left, why),) = driven.left
    assert left.given["schema"] == ALIEN.fingerprint
    assert "is not one that the program knows" in why
    assert redrive(tmp_path, "thread").appended == 0, "each once"
    log.reopen()
    log.upload("ada", ("ada", 3000, 4))  # of a device that has not got the new program yet
    log.close()
    assert run(made.plan, 2) == 0
    assert total() == (5, 37)
