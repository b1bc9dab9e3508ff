"""Rows that could not be computed, given to the program again: once it has been changed so that it can.

A quarantined row is traced back from the step that failed to the stream that it came by, and appended to the log as one
more element of a device of the same user, under its own time: it is computed as any element that comes late is. An
upload that could not be read at all is appended as it came, once the program knows its schema. Each is re-driven once,
whatever is killed when: what is about to be appended is noted first, and what was appended is found in the log again.
Only while the program does not run, for a partition of the log has one writer.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from catchment.cloud.remembered import plan_of
from catchment.errors import CatchmentError
from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.log.marks import Marks, StreamMark
from catchment.plan.physical import Part, Plan, SyncStream
from catchment.program import steps
from catchment.program.nodes import FieldRef
from catchment.program.site import CLOUD
from catchment.program.types import FLOAT
from catchment.sync.codecs.codec import codec

CODEC = "msgpack"


@dataclass(frozen=True)
class Failed:
    """A quarantined row: where it is kept, and what is known of it."""

    place: str
    """PART/FILE:LINE in the program's quarantine."""
    step: str
    reason: str
    given: Any


class _Upload(msgspec.Struct, frozen=True):
    """An upload as it came: what the log's source had of it."""

    schema: str
    codec: str
    count: int
    shift_us: int
    base_us: int
    payload: bytes


class _Element(msgspec.Struct, frozen=True):
    """What is appended for a row, or for an upload that was kept whole."""

    place: str
    stream: str
    user: str
    device: str
    row: list[Any] = []
    upload: _Upload | None = None


class _Pending(msgspec.Struct, frozen=True):
    """What is about to be appended, noted before it is."""

    name: str
    since: list[int]
    """Where each partition of the log ended."""
    elements: list[_Element]


@dataclass(frozen=True)
class Redriven:
    """What was done: rows appended, and those that cannot be, with the reason."""

    appended: int
    left: list[tuple[Failed, str]]


def failed(quarantine: Path, home: Path) -> Iterator[Failed]:
    """The rows in a program's quarantine that were not re-driven yet, in order."""
    done = _done(home)
    for path in sorted(quarantine.rglob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines()):
            place = f"{path.relative_to(quarantine)}:{number}"
            if place not in done:
                found = msgspec.json.decode(line)
                yield Failed(place, found["step"], found["reason"], found["given"])


def redrive(data: Path, program: str, *, step: str | None = None) -> Redriven:
    """Append what is in quarantine, of one step or of all, to the log."""
    home = data / "programs" / program
    plan = plan_of(data, program)
    with ExitStack() as ending:
        writers = [_writer(data, number, ending) for number in range(open_log(data / "log").partitions)]
        # One that was cut short is finished first, as it was meant.
        pending = home / "redrive.json"
        finished = 0
        if pending.exists():
            finished = _append(data, plan, writers, msgspec.json.decode(pending.read_bytes(), type=_Pending))
        elements: list[_Element] = []
        left: list[tuple[Failed, str]] = []
        for each in failed(data / "quarantine" / "programs" / program, home):
            if step is not None and each.step != step:
                continue
            made = _element(plan, writers, each)
            if isinstance(made, str):
                left.append((each, made))
            else:
                elements.append(made)
        if elements:
            places = "\0".join(element.place for element in elements)
            name = hashlib.sha256(places.encode()).hexdigest()[:32]
            finished += _append(data, plan, writers, _Pending(name, [writer.end for writer in writers], elements))
        return Redriven(finished, left)


def _writer(data: Path, number: int, ending: ExitStack) -> Partition:
    writer = Partition(
        LocalDisk(data / "log"),
        number,
        holder="redrive",
        address="",
        now_us=time.time_ns() // 1000,
        salt=lambda: time.time_ns() & 0xFFFFFFFF,
        limits=Limits(reserve_bytes=0),
    )
    ending.callback(writer.close)
    return writer


def _append(data: Path, plan: Plan, writers: Sequence[Partition], pending: _Pending) -> int:
    """Append what of it is not in the log yet, and note that it is; how many elements it has."""
    home = data / "programs" / plan.program
    disk, log = LocalDisk(home), open_log(data / "log")
    disk.replace("redrive.json", msgspec.json.encode(pending))
    now_us = time.time_ns() // 1000
    for writer in writers:
        found = log.read(writer.number, pending.since[writer.number])
        there = {entry.first for _, entry in found if entry.kind == Kind.DATA and entry.session == pending.name}
        entries = [
            _entry(plan, writer.marks, pending.name, number, element, now_us)
            for number, element in enumerate(pending.elements)
            if number not in there and layout.partition_of(element.device, len(writers)) == writer.number
        ]
        if entries:
            writer.append(entries, now_us=now_us)
    done = _done(home) | {element.place for element in pending.elements}
    disk.replace("redriven.json", msgspec.json.encode(sorted(done)))
    disk.delete("redrive.json")
    return len(pending.elements)


def _entry(plan: Plan, marks: Marks, name: str, number: int, element: _Element, now_us: int) -> Entry:
    upload = element.upload or _upload_of(plan, element, now_us)
    known = _mark(marks, element.device, f"{plan.program}/{element.stream}")
    newest = known.epochs[-1] if known is not None and known.epochs else None
    return Entry(
        kind=Kind.DATA,
        device=element.device,
        user=element.user,
        stream=f"{plan.program}/{element.stream}",
        schema=upload.schema,
        codec=upload.codec,
        session=name,
        # It accounts for none of the device's own numbers: those stay as they are.
        epoch_counter=newest.counter if newest else 0,
        epoch_nonce=newest.nonce if newest else 0,
        upto=newest.upto if newest else 0,
        first=number,
        count=upload.count,
        shift_us=upload.shift_us,
        base_us=upload.base_us,
        received_us=now_us,
        payload=upload.payload,
    )


def _upload_of(plan: Plan, element: _Element, now_us: int) -> _Upload:
    """One row, as an upload of it."""
    schema = plan.schemas[plan.sync(element.stream).schema]
    row = tuple(element.row)
    base_us = row[schema.position(schema.event_time)] if schema.event_time else now_us
    return _Upload(schema.fingerprint, CODEC, 1, 0, base_us, codec(CODEC).encode(schema, [row]))


def _element(plan: Plan, writers: Sequence[Partition], row: Failed) -> _Element | str:
    """The element that led to a row, or why there is none."""
    if isinstance(row.given, Mapping) and "payload" in row.given:
        return _whole(plan, row)
    part = next((p for p in plan.at(CLOUD) if any(v.id == row.step for v in p.vertices)), None)
    if part is None:
        return f"{row.step} is no step of the program as it is now: what was refused as it came is not a row of it"
    found = _traced(plan, part, row.step, row.given)
    if isinstance(found, str):
        return found
    stream, values = found
    schema = plan.schemas[stream.schema]
    name = f"{plan.program}/{stream.name}"
    said = {column.stamp: value for column, value in zip(schema.fields, values, strict=True) if column.stamp}
    senders = [
        (device, mark.user)
        for writer in writers
        for device, mark in writer.marks.devices.items()
        if name in mark.streams and said.get("user") in (None, mark.user) and said.get("device") in (None, device)
    ]
    if not senders:
        return "no device that is known sends this stream for that user"
    device, user = min(senders)
    return _Element(row.place, stream.name, user, device, values)


def _whole(plan: Plan, row: Failed) -> _Element | str:
    """An upload that was kept as it came, if the program can read it by now."""
    upload = msgspec.convert(row.given, _Upload)
    stream = next((sync for sync in plan.syncs if f"{plan.program}/{sync.name}" == row.step), None)
    if stream is None:
        return f"{row.step} is not a stream that devices send"
    written, wanted = plan.schemas.get(upload.schema), plan.schemas[stream.schema]
    if written is None:
        return f"schema {upload.schema} is not one that the program knows as it is now"
    reason = wanted.difference(written)
    if reason is not None:
        return f"it was written with schema {upload.schema}, and {reason}"
    try:
        codec(upload.codec).decode(written, upload.payload)
    except CatchmentError as error:
        return str(error)
    return _Element(row.place, stream.name, row.given["user"], row.given["device"], upload=upload)


def _traced(plan: Plan, part: Part, step: str, given: Any) -> tuple[SyncStream, list[Any]] | str:
    """The stream that a row of a step came by, and its element there."""
    graph = plan.graph(part)
    vertex = graph.vertex(step)
    if isinstance(vertex.step, steps.External):
        return f"{step} is read from outside: put right what is there, and it is read again"
    if isinstance(vertex.step, steps.LATE_PORTS) or len(vertex.inputs) != 1:
        return f"{step} keeps state or has several inputs: what else led to this row is not in quarantine"
    source, port = vertex.inputs[0]
    schema = graph.vertex(source).schemas[port]
    if not isinstance(given, Sequence) or len(given) != len(schema.fields):
        return "what is kept is not a row of that step as it is now"
    values = dict(zip(schema.names, given, strict=True))
    while vertex.inputs:
        vertex = graph.vertex(vertex.inputs[0][0])
        if isinstance(vertex.step, steps.Select):
            plain = [(c.value.name, c.name) for c in vertex.step.columns if isinstance(c.value, FieldRef)]
            values = {name: values[made] for name, made in plain}
        elif vertex.inputs and not isinstance(vertex.step, steps.Where | steps.KeyBy):
            return f"{vertex.id} stands before {step}, and what went into it cannot be told from what came out"
    stream = next((sync for sync in plan.syncs if sync.target == vertex.id), None)
    if stream is None:
        return f"{vertex.id} is not a stream that devices send"
    wanted = plan.schemas[stream.schema]
    row = []
    for column in wanted.fields:
        if column.name not in values and not column.has_default:
            return f"{column.name} of {stream.name} did not come as far as {step}"
        value = values.get(column.name, column.default)
        # JSON has no NaN: where null cannot be, that is what it stands for.
        row.append(float("nan") if value is None and column.type == FLOAT and not column.nullable else value)
    return stream, row


def _mark(marks: Marks, device: str, stream: str) -> StreamMark | None:
    known = marks.devices.get(device)
    return None if known is None else known.streams.get(stream)


def _done(home: Path) -> set[str]:
    path = home / "redriven.json"
    return set(msgspec.json.decode(path.read_bytes(), type=list[str])) if path.exists() else set()
