"""What can be read from outside, and what is said of a source that cannot. Knows plans; starts nothing."""

from __future__ import annotations

from typing import Any

from catchment.errors import ProgramError
from catchment.plan.graph import Vertex
from catchment.plan.physical import Part
from catchment.program import steps
from catchment.program.types import BYTES, INSTANT, INT, STR, ScalarType, Schema

FILES, RATE, KAFKA = "files", "rate", "kafka"
FORMATS = ("parquet", "json", "csv")
MESSAGES = ("json", "msgpack")
TAKES = {"key": (STR, BYTES), "timestamp": (INSTANT,), "partition": (INT,), "offset": (INT,)}
"""What of a message, beside its value, a field of the record may take, and the types of such a field."""
_OPTIONS = {
    FILES: ("path", "format", "late", "files_per_batch"),
    RATE: ("rows_per_second", "late"),
    KAFKA: ("servers", "topic", "format", *TAKES, "start", "client", "late", "messages_per_batch"),
}
_MEANING = {
    FILES: f"a path is a directory, a format one of {', '.join(FORMATS)}",
    RATE: "it needs none",
    KAFKA: f"servers and topic are texts, a format is one of {', '.join(MESSAGES)}, start earliest or latest, client a "
    f"file; {', '.join(TAKES)} each name a field that takes it",
}
_SHOWN = {
    FILES: 'cloud.read(Fix, "files", path="arrived/", format="parquet")',
    RATE: 'cloud.read(Beat, "rate", rows_per_second=5)',
    KAFKA: 'cloud.read(Fix, "kafka", servers="broker:9092", topic="fixes", format="json")',
}


def is_read(part: Part) -> bool:
    """Whether a part has anything to compute on: what devices send, or what it reads itself."""
    return bool(part.inputs) or any(isinstance(vertex.step, steps.External) for vertex in part.vertices)


def check_fed(vertex: Vertex) -> None:
    """Refuse a source in the cloud that nothing feeds there, where it would give nothing and say nothing."""
    if not isinstance(vertex.step, steps.Timer | steps.Append):
        return
    a_timer = isinstance(vertex.step, steps.Timer)
    raise ProgramError(
        "E059",
        f"{vertex.id} gives nothing in the cloud",
        why="no clock beats there and no program appends there: it computes on what is logged and what it reads",
        fix="beat on a device, at=cm.DEVICE, and bring the stream up"
        if a_timer
        else 'append on a device, at=cm.DEVICE, or read it: cloud.read(Fix, "files", path="arrived/")',
        at=vertex.line.source(),
    )


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
            why=f"this version reads {', '.join(_OPTIONS)} itself, and what devices send to the log",
            fix='read files, or append it from a device: cloud.read(Fix, "files", path="arrived/")',
            at=at,
        )
    wrong = next((name for name in said if name not in known), None) or _wrong(step.connector, said, record)
    if wrong is not None:
        raise ProgramError(
            "E053",
            f"{vertex.id}: {wrong} is not something that {step.connector} can be told",
            why=f"its options are {', '.join(known)}: {_MEANING[step.connector]}; late is a length of time, and what "
            "is counted a whole number from 1",
            fix=f"write {_SHOWN[step.connector]}",
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
    if (unfit is not None and step.connector != KAFKA) or (
        step.connector == RATE and [column.type for column in numbers] != [INT]
    ):
        raise ProgramError(
            "E055",
            f"{vertex.id}: {record.name} cannot be read from {step.connector}",
            why="files hold plain fields, and a rate gives a moment and a number",
            fix="read a record of plain fields, and select what is nested from it; of a rate, "
            "at: cm.Field[cm.Instant] = cm.event_time() and one cm.Field[int]",
            at=at,
        )


def _wrong(connector: str, said: dict[str, Any], record: Schema) -> str | None:
    texts = {FILES: ("path",), KAFKA: ("servers", "topic")}.get(connector, ())
    for name in (*texts, *(["client"] if "client" in said else [])):
        if not (isinstance(said.get(name), str) and said[name]):
            return f"{name}={said[name]!r}" if name in said else f"no {name}"
    formats = MESSAGES if connector == KAFKA else FORMATS
    for name, words in (("format", formats), ("start", ("earliest", "latest"))):
        if said.get(name, words[0]) not in words:
            return f"{name}={said[name]!r}"
    for name, kinds in TAKES.items():
        field = next((column for column in record.fields if column.name == said.get(name)), None)
        if name in said and (field is None or field.type not in kinds):
            return f"{name}={said[name]!r}"
    for name in ("late", "files_per_batch", "messages_per_batch", "rows_per_second"):
        least = 0 if name == "late" else 1
        if name in said and not (isinstance(said[name], int) and said[name] >= least):
            return f"{name}={said[name]!r}"
    return None
