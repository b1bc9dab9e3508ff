"""Beats of a rate, kept as files and told to a function: a program that needs no device."""

import os
from pathlib import Path

import catchment as cm


class Beat(cm.Record):
    """A beat and its number."""

    at: cm.Field[cm.Instant] = cm.event_time()
    number: cm.Field[int]


@cm.function(runs_on=(cm.CLOUD,))
def noted(beats: tuple[Beat, ...], mark: cm.Mark) -> None:
    """Keep them under their mark: the same mark again changes nothing."""
    Path(os.environ["CATCHMENT_TEST_NOTES"], f"{mark.number}-{mark.part}").write_text(
        "".join(f"{beat.number}\n" for beat in beats)
    )


beats = cm.Program("beats")


@beats.stream(at=cm.CLOUD)
def beaten(cloud: cm.CloudSite) -> cm.Stream[Beat]:
    """What Spark's own source of a rate gives."""
    return cloud.read(Beat, "rate", rows_per_second=20)


beats.sink(beaten, "parquet", path="kept", every=cm.seconds(0.5))
beats.sink(beaten, "callback", function=noted)
