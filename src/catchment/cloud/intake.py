"""Entries of the log as events of a part: uploads become elements, promises and presence of its source steps.

The gateway's word stands: stamped fields take the device and user of the enrolment, and an element that claims
otherwise is refused with its reason. Event time was fixed when the entry was logged; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catchment.engines.spark.events import ELEMENT, PRESENCE, PROGRESS, TICK, Event
from catchment.errors import CatchmentError
from catchment.gateway.log.entry import NO_INSTANT, Kind, Online
from catchment.plan.physical import Part, Plan
from catchment.program.types import Row, Schema
from catchment.sync.codecs.codec import codec


class Intake:
    """Turns entries into events, for the sync streams that arrive at one part."""

    def __init__(self, plan: Plan, part: Part) -> None:
        self._schemas = plan.schemas
        self._streams = {
            f"{plan.program}/{name}": (plan.sync(name).target, plan.schemas[plan.sync(name).schema])
            for name in part.inputs
        }
        self._refused: list[tuple[str, str, Any]] = []

    def events(self, entry: dict[str, Any]) -> Iterator[Event]:
        """The events of an entry, given its columns by name."""
        device, owner = entry["device"], entry["user"] or None
        match entry["kind"]:
            case Kind.TICK:
                yield (TICK, entry["received_us"])
            case Kind.PRESENCE:
                yield (PRESENCE, device, owner, None if entry["count"] == Online.ONLINE else entry["base_us"])
            case Kind.JOINED:
                yield (PRESENCE, device, owner, None)
            case Kind.DATA | Kind.PROMISE if entry["stream"] in self._streams:
                step, schema = self._streams[entry["stream"]]
                if entry["kind"] == Kind.DATA and entry["count"]:
                    for at, row in self._rows(entry, schema):
                        yield (ELEMENT, step, at, device, owner, row)
                if entry["promise_us"] != NO_INSTANT:
                    yield (PROGRESS, step, device, owner, entry["promise_us"])
            case _:
                return

    def drain(self) -> list[tuple[str, str, Any]]:
        """What could not be read since the last call: (stream, reason, what it was)."""
        found, self._refused = self._refused, []
        return found

    def _rows(self, entry: dict[str, Any], schema: Schema) -> Iterator[tuple[int, Row]]:
        written = self._schemas.get(entry["schema"])
        if written is None:
            self._refuse(entry, f"schema {entry['schema']} is not one that this program knows")
            return
        try:
            rows = codec(entry["codec"]).decode(written, entry["payload"])
            adapt = schema.adapt(written)
        except CatchmentError as error:
            self._refuse(entry, str(error))
            return
        when = schema.position(schema.event_time) if schema.event_time is not None else None
        vouched = [
            (place, entry["device"] if column.stamp == "device" else entry["user"])
            for place, column in enumerate(schema.fields)
            if column.stamp is not None
        ]
        shift = entry["shift_us"]
        for old in map(adapt, rows):
            row = list(old)
            for place, word in vouched:
                if row[place] not in ("", None, word):
                    self._refused.append((entry["stream"], f"claims to be of {row[place]}, and is of {word}", old))
                    break
                row[place] = word
            else:
                if when is None:
                    yield entry["base_us"], tuple(row)
                    continue
                row[when] += shift
                yield row[when], tuple(row)

    def _refuse(self, entry: dict[str, Any], reason: str) -> None:
        what = {name: entry[name] for name in ("device", "stream", "epoch", "first", "count")}
        self._refused.append((entry["stream"], reason, what))
