"""A program whose results are kept by three sinks and delivered; what its function is told is kept under its mark."""

import json
import os
from pathlib import Path

import catchment as cm
from tests.thread.program import Reading, Total

NOTES = "CATCHMENT_TEST_NOTES"
DATABASE = "CATCHMENT_TEST_DATABASE"


@cm.function(runs_on=(cm.CLOUD,))
def noted(totals: tuple[Total, ...], mark: cm.Mark) -> None:
    """Keep them under their mark: the same mark again changes nothing."""
    path = Path(os.environ[NOTES], f"{mark.number}-{mark.part}.json")
    path.write_text(json.dumps({"process": os.getpid(), "rows": [list(one.row()) for one in totals]}))


def program(folder: str) -> cm.Program:
    """Totals per user after each reading, kept in that folder too."""
    kept = cm.Program("kept")

    @kept.stream(at=cm.DEVICE)
    def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
        return device.sensor(Reading, "meter")

    @kept.stream(at=cm.CLOUD)
    def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
        return readings.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))

    kept.deliver(totals, by=Total.user)
    kept.sink(totals, "parquet", path=f"{folder}/totals", by=Total.user, every=cm.seconds(0.5))
    kept.sink(totals, "postgres", url=f"${DATABASE}", table="total", keep="latest")
    kept.sink(totals, "callback", function=noted)
    return kept
