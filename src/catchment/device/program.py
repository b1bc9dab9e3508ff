"""A program as it runs on this device: its parts, their sensors, and the sync streams between them and the gateway."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from catchment.device.parts import Parts
from catchment.device.schedule import Schedule
from catchment.plan.physical import Plan, SyncStream
from catchment.program.types import Row, Schema
from catchment.sync.exchange import Exchange


class Running:
    """One plan's parts with their sensors."""

    def __init__(self, parts: Parts, schedule: Schedule) -> None:
        self.parts = parts
        self.schedule = schedule
        self.plan: Plan = parts.plan
        self.reach = {step: parts.reach(step) for step in schedule.steps}
        """Per source step with a sensor, the streams that its elements may come out at."""
        live = {step for step in schedule.steps if not schedule.recorded(step)}
        sources = {*parts.sources(), *(stream.target for stream in parts.down.values())}
        self.recorded = frozenset().union(*(parts.reach(step) for step in sources - live))
        """Streams some of whose elements bring their own moments, which nobody may shift."""

    def wire_name(self, stream: str) -> str:
        """What a stream is called where several programs meet."""
        return f"{self.plan.program}/{stream}"

    def moment_of(self, stream: str) -> int | None:
        """Where the rows of a stream hold their event time."""
        schema = self.plan.schemas[self.plan.sync(stream).schema]
        return None if schema.event_time is None else schema.position(schema.event_time)

    def connect(self, exchange: Exchange, *, now_us: int) -> None:
        """Give the exchange this program's streams; those of another program end, and what is left of them drains."""
        intakes = exchange.uplink.intakes
        for name in list(intakes):
            intakes.pop(name).release()
        for name, stream in self.parts.up.items():
            exchange.up(self.wire_name(name), self.plan.schemas[stream.schema], stream.policy, now_us=now_us)
        for name, stream in self.parts.down.items():
            schema = self.plan.schemas[stream.schema]
            exchange.down(self.wire_name(name), [schema], key=_key(stream, schema))


def _key(stream: SyncStream, schema: Schema) -> Callable[[Row], bytes] | None:
    """What makes two results the same one, where only the latest is kept."""
    if stream.deliver is None or stream.deliver.keep == "all":
        return None
    places = [schema.position(name) for name in schema.keys or (stream.deliver.by,)]
    return lambda row: msgspec.msgpack.encode([row[place] for place in places])
