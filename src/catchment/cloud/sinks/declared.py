"""The sinks of a part, as its author declared them; one line per kind. Kafka and Delta would be two more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from catchment.cloud.leaving import kept_by
from catchment.cloud.sinks.callback import CallbackSink
from catchment.cloud.sinks.parquet.sink import ParquetSink
from catchment.cloud.sinks.postgres.sink import PostgresSink
from catchment.cloud.sinks.sink import Sink
from catchment.plan.graph import Vertex
from catchment.plan.physical import Part, Plan
from catchment.program import steps
from catchment.program.sinks import CALLBACK, PARQUET, POSTGRES


def sinks_of(plan: Plan, part: Part, home: Path, quarantine: Path) -> list[Sink]:
    """The sinks of a part, which keeps in `home` what it must. Relative paths are of where the program was started."""
    taken, _ = kept_by(plan, part)
    return [
        _KINDS[vertex.step.connector](vertex, taken[vertex.id], home, quarantine)
        for vertex in part.vertices
        if isinstance(vertex.step, steps.Sink)
    ]


def _parquet(vertex: Vertex, output: str, home: Path, quarantine: Path) -> Sink:
    said = _options(vertex)
    path = str(Path(said["path"]).resolve())
    return ParquetSink(vertex.id, output, vertex.schemas[0], path, tuple(said["by"]), said["every"])


def _postgres(vertex: Vertex, output: str, home: Path, quarantine: Path) -> Sink:
    said = _options(vertex)
    return PostgresSink(
        vertex.id,
        output,
        vertex.schemas[0],
        url=said["url"],
        table=said["table"],
        keep=said["keep"],
        every_us=said["every"],
        quarantine=str(quarantine),
    )


def _callback(vertex: Vertex, output: str, home: Path, quarantine: Path) -> Sink:
    directory = str(home / "sinks" / vertex.id.replace("/", "."))
    return CallbackSink(vertex.id, output, vertex.schemas[0], _options(vertex)["function"], directory)


def _options(vertex: Vertex) -> dict[str, Any]:
    assert isinstance(vertex.step, steps.Sink)
    return vertex.step.options


_KINDS: dict[str, Callable[[Vertex, str, Path, Path], Sink]] = {
    PARQUET: _parquet,
    POSTGRES: _postgres,
    CALLBACK: _callback,
}
