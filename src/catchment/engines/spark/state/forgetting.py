"""Forgetting in what steps remember that run event by event: entries of a key that names who is gone, and sources.

Works on the plain data of snapshots. A key names a device or a user by its stamped field; of a key without one nothing
can be said, and it stays. Of what waits, the source says whose it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from catchment.plan.graph import Graph
from catchment.program import steps

_KEY_AT = {
    **dict.fromkeys(("keys", "states", "summaries", "latest", "ahead", "held", "windows", "last"), 0),
    "revised": 1,
}
"""Of each list in a snapshot whose entries are of keys: where in an entry the key stands."""
_OF_INTERVALS = 3
_DEVICE_AND_OWNER = {"waiting": (2, 4), "given": (0, 1), "presence": (0, 1)}
"""Of each list whose entries are of sources: where device and owner stand."""


class Gone(NamedTuple):
    """Who is forgotten; the owner where all of the owner's goes too."""

    device: str
    owner: str | None

    def named(self, stamp: str | None) -> str | None:
        """The value of a stamped field that names who is gone."""
        return self.device if stamp == "device" else self.owner if stamp == "user" else None

    def is_source(self, device: str, owner: str | None) -> bool:
        """Whether that source is gone."""
        return device == self.device or (self.owner is not None and owner == self.owner)


def forget(graph: Graph, states: dict[str, Any], gone: Gone) -> dict[str, Any]:
    """The snapshots of a graph's steps, without those."""
    return {name: _left(graph, name, state, gone) for name, state in states.items()}


def _left(graph: Graph, name: str, state: dict[str, Any], gone: Gone) -> dict[str, Any]:
    vertex = graph.vertex(name)
    position, stamp = _stamped(graph, name)
    value = gone.named(stamp)
    left = dict(state)
    for field, entries in state.items():
        if field in _DEVICE_AND_OWNER:
            device, owner = _DEVICE_AND_OWNER[field]
            left[field] = [each for each in entries if not gone.is_source(each[device], each[owner])]
        elif field == "promised":
            left[field] = [[each for each in port if not gone.is_source(each[0], each[1])] for port in entries]
        elif field == "progress":
            left[field] = _sources_left(entries, value, gone)
        elif field == "touched":
            left[field] = [group for group in entries if value is None or group != value]
        elif field in _KEY_AT and value is not None:
            is_interval = isinstance(vertex.step, steps.Join) and vertex.step.how == "interval"
            at = _OF_INTERVALS if is_interval else _KEY_AT[field]
            left[field] = [each for each in entries if _named(each[at], position) != value]
    if "elements" in state and value is not None:
        where = graph.vertex(vertex.inputs[0][0]).schemas[vertex.inputs[0][1]].position(vertex.step.keys[position])  # type: ignore[union-attr]
        left["elements"] = [each for each in state["elements"] if each[3][where] != value]
    return left


def _sources_left(progress: dict[str, Any], value: str | None, gone: Gone) -> dict[str, Any]:
    left = {
        **progress,
        "members": [member for member in progress["members"] if not gone.is_source(member[1], member[2])],
    }
    if value is not None:
        left["groups"] = [group for group in progress["groups"] if group != value]
        left["begun"] = [group for group in progress["begun"] if group != value]
        left["marks"] = [pair for pair in progress["marks"] if pair[0] != value]
    return left


def _named(key: Any, position: int) -> Any:
    return key[position] if isinstance(key, list | tuple) else key


def _stamped(graph: Graph, name: str) -> tuple[int, str | None]:
    """Where in a step's key the field stands that names whose it is, and by what."""
    vertex = graph.vertex(name)
    if vertex.inputs:
        source, port = vertex.inputs[0]
        schema = graph.vertex(source).schemas[port]
        for position, key in enumerate(getattr(vertex.step, "keys", ())):
            if key in schema.names and schema.column(key).stamp is not None:
                return position, schema.column(key).stamp
    return 0, None
