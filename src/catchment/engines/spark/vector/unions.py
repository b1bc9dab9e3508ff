"""`union` over a batch: elements of all inputs in the order in which they come; promises and ticks by its operator.

What a source promised is kept with the keys that its events go to, where they go by their source, else by all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.events import PRESENCE, PROGRESS, TICK
from catchment.engines.spark.rows import Rows
from catchment.engines.spark.state.forgetting import Gone
from catchment.engines.spark.state.pieces import Pieces, ShardOf
from catchment.engines.spark.vector.course import course
from catchment.engines.spark.vector.flow import TOLD_AGAIN, Control, Flow, VectorOperator
from catchment.engines.spark.vector.places import event_at
from catchment.operators.contract import Port
from catchment.operators.union import Union
from catchment.plan.history import Source

_BY_SOURCE = ("given", "presence")


class VectorUnion(VectorOperator):
    """The operator, for all but elements."""

    adopts = True

    def __init__(self, ports: int) -> None:
        self._operator = Union(ports)
        self._place = 0
        self._said: list[Control] = []
        self._ports = self._operator.connect(
            (Port(self._element, self._progress, self._presence, self._tick),), lambda error, row: None
        )

    def take(self, flows: Sequence[Flow]) -> tuple[Flow, ...]:
        taken = course(flows)
        self._said = []
        for self._place, (port, (came, kind, *what)) in zip(taken.places.tolist(), taken.controls, strict=True):
            into = self._ports[port]
            if kind == PROGRESS:
                device, owner, at = what
                into.progress(Source(device, owner), at)
            elif kind == PRESENCE:
                device, owner, since = what
                into.presence(Source(device, owner), since)
            elif event_at(came) == TOLD_AGAIN:
                self._tick(what[0])
            else:
                into.tick(what[0])
        event = event_at(np.concatenate([flow.rows.place for flow in flows]))
        rows = Rows.concat(taken.rows)
        # Within an event as its ports come; elements of a port keep their order, for the sort is stable.
        rows = rows.take(np.argsort(event, kind="stable"))
        rows.place = np.maximum.accumulate(rows.place) if len(rows) else rows.place
        return (Flow(rows, self._said),)

    def _element(self, at: int, source: Source, row: Any) -> None:
        raise AssertionError("elements pass as columns")

    def _progress(self, source: Source, at: int) -> None:
        self._said.append((self._place, PROGRESS, *source, at))

    def _presence(self, source: Source, since: int | None) -> None:
        self._said.append((self._place, PRESENCE, *source, since))

    def _tick(self, now: int) -> None:
        self._said.append((self._place, TICK, now))

    def snapshot(self) -> Any:
        return self._operator.snapshot()

    def restore(self, saved: Any) -> None:
        self._operator.restore(saved)

    def adopt(self, state: dict[str, Any]) -> None:
        self.restore(state)

    def split(self, shard_of: ShardOf, route: Sequence[int]) -> Pieces:
        saved = self._operator.snapshot()
        if not route:
            return Pieces(saved)
        (which,) = route
        pieces = Pieces({"ticks": saved["ticks"]})

        def part(entry: Any) -> Any:
            fresh: dict[str, Any] = {"promised": [[] for _ in self._ports], **{name: [] for name in _BY_SOURCE}}
            return pieces.parts.setdefault(shard_of((entry[which] or entry[1],)), fresh)

        for name in _BY_SOURCE:
            for entry in saved[name]:
                part(entry)[name].append(entry)
        for port, promised in enumerate(saved["promised"]):
            for entry in promised:
                part(entry)["promised"][port].append(entry)
        return pieces

    def merge(self, shared: Any, parts: Sequence[Any]) -> None:
        if "given" in shared:
            self.restore(shared)
            return
        promised = [[each for part in parts for each in part["promised"][port]] for port in range(len(self._ports))]
        by_source = {name: [each for part in parts for each in part[name]] for name in _BY_SOURCE}
        self.restore({"promised": promised, "ticks": shared["ticks"], **by_source})

    def forget(self, device: str) -> None:
        self.drop(Gone(device, None))

    def drop(self, gone: Gone) -> None:
        saved = self._operator.snapshot()
        left = {name: [each for each in saved[name] if not gone.is_source(*each[:2])] for name in _BY_SOURCE}
        promised = [[each for each in port if not gone.is_source(*each[:2])] for port in saved["promised"]]
        self.restore({**saved, **left, "promised": promised})
