"""Materialised output made by hand, and sinks run on it without Spark: tasks are calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import catchment as cm
from catchment.cloud.materialised import Materialised, Portion, write
from catchment.cloud.publication import Publication
from catchment.cloud.sinks.sink import Identity, Sink, Work
from catchment.engines.spark.results import Results
from catchment.engines.spark.rows import Rows
from catchment.plan.history import Source
from catchment.program.types import Schema

OUTPUT = "trips"


class Trip(cm.Record):
    """A result, of each kind of field that sinks must hold."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    mode: cm.Field[str]
    metres: cm.Field[float]
    lasted: cm.Field[cm.Duration]
    stops: cm.Field[tuple[str, ...]]
    photo: cm.Field[bytes]
    remark: cm.Field[str | None]
    night: cm.Field[bool]


DAY_US = 86_400_000_000


def trip(n: int, user: str = "ada", **values: Any) -> Trip:
    """The n-th trip."""
    given: dict[str, Any] = {
        "user": user,
        "at": n * DAY_US // 4,
        "mode": ("walk", "car")[n % 2],
        "metres": n / 4,
        "lasted": 60_000_000 * n,
        "stops": (f"stop {n}", "home"),
        "photo": bytes([n % 256, 0, 255]),
        "remark": None if n % 3 == 0 else f'a "remark", {n}\n',
        "night": n % 5 == 0,
    }
    return Trip(**{**given, **values})


def keep(
    output: Materialised,
    epoch: int,
    *parts: Sequence[cm.Record],
    schema: Schema = Trip.schema,
    name: str = OUTPUT,
) -> Portion | None:
    """Materialise an epoch: what each part gave, each of an owner by its first field."""
    files = []
    for part, given in enumerate(parts):
        if given:
            rows = Rows.of(
                [(0, Source("d", one.row()[0]), one.row()) for one in given], [f.type for f in schema.fields]
            )
            results = {name: Results([rows.pack()], len(given))}
            files.append(write(output.directory, output.batch(epoch), part, results, {"0": 100 * epoch}))
    return output.commit(epoch, files)


def identity(sink: Sink, output: Materialised) -> Identity:
    """Whose results these are."""
    return Identity("peir", sink.name, output.store, output.generation)


def here(works: Sequence[Work]) -> list[bytes]:
    """Tasks, as calls."""
    return [work() for work in works]


def publication(sink: Sink, output: Materialised) -> Publication:
    """A sink at work."""
    return Publication(sink, identity(sink, output), output, here)


def opened(directory: Path, generation: int = 1, lineage: str = "checkpoint") -> Materialised:
    """The store in a directory."""
    return Materialised(str(directory / "results"), generation, lineage)
