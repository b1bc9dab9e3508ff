"""A program is changed between two runs: it goes on from its state, and takes what it could not compute before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import catchment as cm
from catchment.cloud.publish import Publisher
from catchment.cloud.redrive import redrive
from catchment.cloud.remembered import remembered
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.cloud.sinks.quarantine import QuarantineSink
from catchment.cloud.upgrade import upgrade
from catchment.errors import ProgramError
from catchment.gateway.log.entry import joined
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.program.types import Row, Schema
from catchment.sync.codecs.codec import codec
from tests.spark.test_cloud_part import Log
from tests.thread.program import Reading, Total

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Most(cm.Record):
    """The largest of a user's readings."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    most: cm.Field[int | None]


def meter(*, later: bool) -> Plan:
    """Totals, which cannot take a zero; later, of all that is less than a thousand, and beside them the largest."""
    program = cm.Program("thread")

    @program.stream(at=cm.DEVICE)
    def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
        return device.sensor(Reading, "meter")

    @program.stream(at=cm.CLOUD)
    def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
        some = readings.where(Reading.amount < 1000 if later else Reading.amount // Reading.amount > 0)
        keyed = some.key_by(Reading.user)
        return keyed.state(Total, order="arrival", count=cm.count(), total=cm.sum(Reading.amount))

    program.deliver(totals, by=Total.user)
    if later:

        @program.stream(at=cm.CLOUD)
        def most(readings: cm.Stream[Reading]) -> cm.Stream[Most]:
            return readings.key_by(Reading.user).state(Most, most=cm.max(Reading.amount))

        program.deliver(most, by=Most.user)
    return cm.build(program)


def test_what_is_counted_goes_on_and_what_is_new_begins(spark: SparkSession, tmp_path: Path) -> None:
    from catchment.cloud.query import results

    log = Log(tmp_path / "log", meter(later=False))
    home = tmp_path / "programs" / "thread"

    def run(plan: Plan, generation: int) -> None:
        (part,) = [part for part in plan.at(cm.CLOUD) if part.inputs]
        quarantine = QuarantineSink(str(tmp_path / "quarantine" / "programs" / "thread" / part.name))
        publish = Publisher([DownlinkSink(document.write(plan), str(tmp_path), generation), quarantine])
        writer = results(spark, plan, part, log.path, {}).writeStream.foreachBatch(publish)
        writer = writer.option("checkpointLocation", str(home / part.name / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination(180)

    def given(output: str, schema: Schema) -> list[Row]:
        downlink = open_downlink(tmp_path)
        found = downlink.pending("ada-1", "ada", {}, bytes_max=1 << 20)
        downlink.close()
        packets = [out for out in found if out.stream == f"thread/{output}"]
        return [row for out in packets for row in codec(out.codec).decode(schema, out.payload)]

    log.append(joined(device="ada-1", user="ada", now=0))
    log.upload("ada", ("ada", 1000, 5000), ("ada", 1001, 1), ("ada", 1002, 0), ("ada", 1003, 2))
    run(meter(later=False), 1)
    made = upgrade(meter(later=False), upgrade(None, {}, meter(later=False)).forms, meter(later=True))
    assert made.began == ["most/running"]
    log.upload("ada", ("ada", 2000, 4000), ("ada", 2001, 3), ("ada", 3000, 0))
    log.close()
    (home / "plan.json").write_bytes(document.write(made.plan))
    assert (redrive(tmp_path, "thread").appended, redrive(tmp_path, "thread").appended) == (1, 0)
    run(made.plan, 2)
    run(made.plan, 3)
    assert given("totals", Total.schema) == [("ada", 1002, 6, 5006)], "4000 no longer counts, both zeros do, each once"
    assert given("most", Most.schema) == [("ada", 2001, 4000)], "of what came since"
    known = remembered(spark, tmp_path, "thread", ["ada"])
    assert known.keys() == {"totals/running", "most/running"}
    assert "5006" in str(known["totals/running"])
    with pytest.raises(ProgramError, match="E133") as refused:
        remembered(spark, tmp_path, "thread", ["ada", "home"])
    assert "its state goes by: user" in refused.value.why
