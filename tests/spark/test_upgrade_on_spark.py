"""A program is changed between two runs of its query, and goes on from the state of the one before it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import catchment as cm
from catchment.cloud.publish import Publisher
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.cloud.upgrade import upgrade
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
    """Totals; later, only of what is less than a thousand, and beside them the largest of all."""
    program = cm.Program("thread")

    @program.stream(at=cm.DEVICE)
    def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
        return device.sensor(Reading, "meter")

    @program.stream(at=cm.CLOUD)
    def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
        some = readings.where(Reading.amount < 1000) if later else readings
        return some.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))

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

    def run(plan: Plan, generation: int) -> None:
        (part,) = [part for part in plan.at(cm.CLOUD) if part.inputs]
        publish = Publisher([DownlinkSink(document.write(plan), str(tmp_path), generation)])
        writer = results(spark, plan, part, log.path, {}).writeStream.foreachBatch(publish)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination(180)

    def given(output: str, schema: Schema) -> list[Row]:
        downlink = open_downlink(tmp_path)
        found = downlink.pending("ada-1", "ada", {}, bytes_max=1 << 20)
        downlink.close()
        packets = [out for out in found if out.stream == f"thread/{output}"]
        return [row for out in packets for row in codec(out.codec).decode(schema, out.payload)]

    log.upload("ada", ("ada", 1000, 5000), ("ada", 1001, 1), ("ada", 1002, 2))
    run(meter(later=False), 1)
    made = upgrade(meter(later=False), upgrade(None, {}, meter(later=False)).forms, meter(later=True))
    assert made.began == ["most/running"]
    log.upload("ada", ("ada", 2000, 4000), ("ada", 2001, 3), ("ada", 3000, 0))
    log.close()
    run(made.plan, 2)
    assert given("totals", Total.schema) == [("ada", 2001, 4, 5006)], "4000 was no longer counted, 5000 once was"
    assert given("most", Most.schema) == [("ada", 2001, 4000)], "of what came since"
