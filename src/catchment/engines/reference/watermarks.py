"""Progress: what each source has promised, what that is worth after silence or absence, and a group's watermark.

This is the section "Progress" of docs/reference/semantics.md, sentence by sentence, in its letters: P(s), now,
heard(s), E(s) and W.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from catchment.engines.reference.events import Arrival, Element, Event, Presence, Progress, Tick
from catchment.plan.history import Source
from catchment.program.steps import Scope
from catchment.program.types import Row
from catchment.program.window import Closing

Moment: TypeAlias = float
"""An instant (an int), or minus infinity for what is not yet."""
NEVER: Moment = -math.inf
HOUR_US = 3_600_000_000


class Input:
    """What one input port of a step knows of its sources."""

    def __init__(self, closing: Closing, scope: Scope) -> None:
        self.idle = closing.idle
        default = None if scope == "own" else HOUR_US
        self.at_most = default if closing.offline is None else closing.offline.at_most
        self.known: set[Source] = set()
        self.promise: dict[Source, Moment] = {}
        self.heard: dict[Source, int | None] = {}
        self.away: set[Source] = set()
        self.now: int | None = None

    def take(self, event: Event) -> None:
        """One more event at this port."""
        if isinstance(event, Tick):
            self.now = event.now if self.now is None else max(self.now, event.now)
            # "If there was no tick yet, the first tick after it."
            self.heard = {source: self.now if heard is None else heard for source, heard in self.heard.items()}
            return
        self.heard[event.source] = self.now
        match event:
            case Progress(source, at):
                self.known.add(source)
                self.promise[source] = max(at, self.promise.get(source, at))
            case Presence(source, since):
                self.known.add(source)
                self.away = self.away | {source} if since is not None else self.away - {source}
            case Element():
                pass

    def effective(self, source: Source) -> Moment:
        """E(s)."""
        promised = self.promise.get(source, NEVER)
        heard = self.heard[source]
        if self.now is None or heard is None or source.device == "":
            return promised
        if source in self.away:
            return promised if self.at_most is None else max(promised, self.now - self.at_most)
        if self.now - heard >= self.idle:
            return max(promised, self.now - self.idle)
        return promised


class Watermarks:
    """W of each group after each event: `after[index][group]`; a group that has not begun is not there."""

    def __init__(
        self,
        arrivals: list[Arrival],
        ports: int,
        closing: Closing,
        scope: Scope,
        stamp: str | None,
        group_of: Callable[[int, Row], Any],
    ) -> None:
        self.after: list[dict[Any, Moment]] = []
        inputs = [Input(closing, scope) for _ in range(ports)]
        marks: dict[Any, Moment] = {None: NEVER} if scope == "all" else {}
        for arrival in arrivals:
            event = arrival.event
            inputs[arrival.port].take(event)
            begun = dict(marks)
            if isinstance(event, Element):
                begun.setdefault(group_of(arrival.port, event.row), NEVER)
            elif not isinstance(event, Tick) and scope == "own" and not stands_for_everyone(event.source):
                begun.setdefault(named(event.source, stamp), NEVER)
            marks = {group: max(mark, _least(inputs, group, scope, stamp)) for group, mark in begun.items()}
            self.after.append(marks)

    def at(self, index: int, group: Any) -> Moment:
        """W of the group after that event."""
        return self.after[index].get(group, NEVER)


def _least(inputs: list[Input], group: Any, scope: Scope, stamp: str | None) -> Moment:
    """The least E(s) over the group's known sources, over all ports; minus infinity until each port knows one."""
    least: Moment = math.inf
    for port in inputs:
        sources = [s for s in port.known if scope == "all" or stands_for_everyone(s) or named(s, stamp) == group]
        if not sources:
            return NEVER
        least = min(least, *(port.effective(source) for source in sources))
    return least


def stands_for_everyone(source: Source) -> bool:
    """Whether it is the collapsed source of a step over all sources."""
    return source.device == "" and source.owner is None


def named(source: Source, stamp: str | None) -> str | None:
    """The group that a source belongs to with scope `own`."""
    return source.owner if stamp == "user" or source.device == "" else source.device


def collapsed(group: Any) -> Source:
    """The source of a group's results."""
    return Source("", group)
