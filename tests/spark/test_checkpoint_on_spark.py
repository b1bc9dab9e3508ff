"""A damaged checkpoint goes back a batch, or says that it cannot: never wrong results."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import catchment as cm
from catchment.cloud.checkpoint import mend
from catchment.cloud.flow import COPY, OPTION
from catchment.cloud.publish import Publisher
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.errors import PeerError
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.sync.codecs.codec import codec
from tests.spark.test_cloud_part import Log
from tests.thread.program import Total, thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def newest(folder: Path) -> Path:
    return max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def test_a_damaged_checkpoint_goes_back_a_batch_and_the_results_are_right(spark: SparkSession, tmp_path: Path) -> None:
    from catchment.cloud.query import results

    plan = cm.build(thread)
    part = next(part for part in plan.parts if part.site == cm.CLOUD)
    log = Log(tmp_path / "log", plan)
    publish = Publisher([DownlinkSink(document.write(plan), str(tmp_path), generation=1)])
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "range.json"
    options = {OPTION: "1000", COPY: str(copy)}
    taken = 0

    def run() -> list[str]:
        """One more upload, through what is left of the checkpoint."""
        nonlocal taken
        taken += 1
        log.upload("ada", ("ada", 1000 * taken, taken))
        done = mend(checkpoint, copy)
        writer = results(spark, plan, part, log.path, options).writeStream.foreachBatch(publish)
        writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination(180)
        return done

    def changelogs() -> list[Path]:
        found = list((checkpoint / "state" / "0").glob("[0-9]*/*.changelog"))
        last = max(int(path.name.partition(".")[0]) for path in found)
        return [path for path in found if path.name == f"{last}.changelog"]

    assert run() == run() == []
    damage(changelogs()[0])
    assert any("run again" in done for done in run())
    damage(newest(checkpoint / "commits"))
    damage(newest(checkpoint / "offsets"))
    damage(checkpoint / "metadata")
    assert len(run()) == 3
    shutil.copytree(checkpoint, tmp_path / "second")
    log.close()

    downlink = open_downlink(tmp_path)
    rows = [
        row
        for out in downlink.pending("ada-1", "ada", {}, bytes_max=1 << 20)
        for row in codec(out.codec).decode(Total.schema, out.payload)
    ]
    downlink.close()
    before_last = taken - 1  # the last waits until it is known that nothing older comes
    assert rows == [("ada", 1000 * before_last, before_last, sum(range(taken)))]

    # Two batches back there is nothing to run again from: the range that has to be taken again is no longer known.
    for path in (tmp_path / "second" / "state" / "0").glob("[0-9]*/*.changelog"):
        damage(path)
    with pytest.raises(PeerError, match="E131"):
        mend(tmp_path / "second", copy)
