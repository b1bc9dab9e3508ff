"""The outbox of a device: durable before anything is sent."""

from catchment.sync.outbox.database import Connect, Health, OutboxError
from catchment.sync.outbox.inbox import Result
from catchment.sync.outbox.mending import Damaged, Mending
from catchment.sync.outbox.queue import Appended
from catchment.sync.outbox.run import Position, Run, Stamp
from catchment.sync.outbox.salvage import Salvage
from catchment.sync.outbox.store import Outbox

__all__ = [
    "Appended",
    "Connect",
    "Damaged",
    "Health",
    "Mending",
    "Outbox",
    "OutboxError",
    "Position",
    "Result",
    "Run",
    "Salvage",
    "Stamp",
]
