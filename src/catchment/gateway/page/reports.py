"""Reports: the results of each user, as they went to the user's devices, kept for those who may look at them.

Results leave the downlink once devices hold them; the latest of each stand here, encoded, in bounded memory, and are
decoded when somebody asks. What a field is measured in follows from its name, whose unit stands last. Knows the
downlink and plans.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from catchment.errors import CatchmentError
from catchment.gateway.downlink import Downlink, to_device, to_user
from catchment.plan.physical import Plan
from catchment.plan.portable import outgoing
from catchment.program.types import DURATION, INSTANT, Column
from catchment.sync.codecs import codec

KEPT = 120
"""Of each stream of a user, the latest so many results."""
TARGETS_MAX = 20_000
UNITS = {
    "m": "m",
    "km": "km",
    "g": "g",
    "mg": "mg",
    "ug": "µg",
    "s": "s",
    "ms": "ms",
    "us": "µs",
    "h": "h",
    "mps": "m/s",
    "deg": "°",
    "dbm": "dBm",
    "c": "°C",
    "pct": "%",
    "j": "J",
    "w": "W",
    "v": "V",
}
Plans = Callable[[str], Plan | None]


class Held(NamedTuple):
    """A result as it was sent."""

    number: int
    schema: str
    codec: str
    payload: bytes
    written_us: int


class Reports:
    """Follows the downlink."""

    def __init__(self, downlink: Downlink, plans: Plans) -> None:
        self._downlink = downlink
        self._plans = plans
        self._held: OrderedDict[str, dict[str, deque[Held]]] = OrderedDict()
        self._seen = 0

    def look(self) -> None:
        """Take in what is new. Blocking: for a thread."""
        for id_, target, stream, schema, encoding, payload, written_us in self._downlink.written_after(self._seen):
            self._seen = id_
            streams = self._held.setdefault(target, {})
            self._held.move_to_end(target)
            streams.setdefault(stream, deque(maxlen=KEPT)).append(
                Held(id_, schema.hex(), encoding, payload, written_us)
            )
            while len(self._held) > TARGETS_MAX:
                self._held.popitem(last=False)

    def keep(self, users: Collection[str], devices: Collection[str]) -> None:
        """Let go of what is about anybody else: they were forgotten."""
        known = {*map(to_user, users), *map(to_device, devices)}
        for target in [target for target in self._held if target not in known]:
            del self._held[target]

    @property
    def seen(self) -> int:
        """The last result that was taken in."""
        return self._seen

    def newest(self, user: str) -> int:
        """The last result of a user."""
        return max([held[-1].number for held in self._held.get(to_user(user), {}).values() if held], default=0)

    def users(self) -> list[str]:
        """Whose results are here."""
        return sorted(target.removeprefix("user:") for target in list(self._held) if target.startswith("user:"))

    def of(self, user: str) -> list[dict[str, Any]]:
        """A user's results by stream, oldest first, with what their fields are."""
        found = []
        for stream, held in sorted(self._held.get(to_user(user), {}).items()):
            program, _, name = stream.partition("/")
            plan = self._plans(program)
            if plan is None:
                continue
            rows: list[list[Any]] = []
            fields: list[dict[str, Any]] = []
            for one in list(held):
                schema = plan.schemas.get(one.schema)
                if schema is None:
                    continue
                try:
                    decoded = codec(one.codec).decode(schema, one.payload)
                except CatchmentError:
                    continue
                fields = [described(column) for column in schema.fields]
                rows += [
                    [outgoing(value, column.type) for value, column in zip(row, schema.fields, strict=True)]
                    for row in decoded
                ]
            deliver = next((sync.deliver for sync in plan.syncs if sync.name == name), None)
            keep = "all" if deliver is None else deliver.keep
            found.append({"stream": name, "program": program, "keep": keep, "fields": fields, "rows": rows[-KEPT:]})
        return found


def described(column: Column) -> dict[str, Any]:
    """A field as the page shows it: its words, its unit, what kind of value it is.

    >>> from catchment.program.types import FLOAT
    >>> described(Column("carbon_g", FLOAT))
    {'name': 'carbon_g', 'title': 'carbon', 'unit': 'g', 'kind': 'float', 'own': False}
    """
    words, _, unit = column.name.rpartition("_")
    is_unit = bool(words) and unit in UNITS
    kind = "instant" if column.type == INSTANT else "duration" if column.type == DURATION else str(column.type)
    return {
        "name": column.name,
        "title": (words if is_unit else column.name).replace("_", " "),
        "unit": UNITS[unit] if is_unit else "",
        "kind": kind,
        "own": column.key or column.stamp is not None,
    }
