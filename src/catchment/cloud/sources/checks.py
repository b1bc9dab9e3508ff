"""What can be read from outside, and what is said of a source that cannot. Knows plans; starts nothing."""

from __future__ import annotations

from typing import Any

from catchment.errors import ProgramError
from catchment.plan.graph import Vertex
from catchment.plan.physical import Part
from catchment.program import steps
from catchment.program.types import INT, ScalarType

FILES, RATE = "files", "rate"
FORMATS = ("parquet", "json", "csv")
_OPTIONS = {FILES: ("path", "format", "late", "files_per_batch"), RATE: ("rows_per_second", "late")}


def is_read(part: Part) -> bool:
    """Whether a part has anything to compute on: what devices send, or what it reads itself."""
    return bool(part.inputs) or any(isinstance(vertex.step, steps.External) for vertex in part.vertices)


def check_read(vertex: Vertex) -> None:
    """Refuse a source that this version cannot read, at the author's line."""
    step = vertex.step
    assert isinstance(step, steps.External)
    at, record, said = vertex.line.source(), step.record, step.options
    known = _OPTIONS.get(step.connector)
    if known is None:
        raise ProgramError(
            "E036",
            f"{vertex.id}: {step.connector!r} cannot be read yet",
            why=f"this version reads {' and '.join(_OPTIONS)} itself, and what devices send to the log",
            fix='read files, or append it from a device: cloud.read(Fix, "files", path="arrived/")',
            at=at,
        )
    wrong = next((name for name in said if name not in known), None) or _wrong(step.connector, said)
    if wrong is not None:
        raise ProgramError(
            "E053",
            f"{vertex.id}: {wrong} is not something that {step.connector} can be told",
            why=f"its options are {', '.join(known)}: a path is a directory, a format one of {', '.join(FORMATS)}, "
            "late a length of time, the others whole numbers from 1",
            fix='write cloud.read(Fix, "files", path="arrived/", format="parquet")',
            at=at,
        )
    stamped = next((column for column in record.fields if column.stamp), None)
    if stamped is not None:
        raise ProgramError(
            "E054",
            f"{vertex.id}: {record.name}.{stamped.name} is stamped, and is read from outside",
            why=f"a gateway vouches for a stamped {stamped.stamp}, and none has seen what Spark reads",
            fix=f"read a record that declares {stamped.name}: cm.Field[str] = cm.key()",
            at=at,
        )
    numbers = [column for column in record.fields if not column.event_time]
    unfit = next((column for column in record.fields if not isinstance(column.type, ScalarType)), None)
    if unfit is not None or (step.connector == RATE and [column.type for column in numbers] != [INT]):
        raise ProgramError(
            "E055",
            f"{vertex.id}: {record.name} cannot be read from {step.connector}",
            why="files hold plain fields, and a rate gives a moment and a number",
            fix="read a record of plain fields, and select what is nested from it; of a rate, "
            "at: cm.Field[cm.Instant] = cm.event_time() and one cm.Field[int]",
            at=at,
        )


def _wrong(connector: str, said: dict[str, Any]) -> str | None:
    if connector == FILES and not (isinstance(said.get("path"), str) and said["path"]):
        return "no path"
    if said.get("format", FORMATS[0]) not in FORMATS:
        return f"format={said['format']!r}"
    for name in ("late", "files_per_batch", "rows_per_second"):
        least = 0 if name == "late" else 1
        if name in said and not (isinstance(said[name], int) and said[name] >= least):
            return f"{name}={said[name]!r}"
    return None
