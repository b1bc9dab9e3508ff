"""`process`: an author's own step for each key, with its state, its timers, and forgetting.

A call works on a copy of the state, which replaces it if the call succeeds: one that fails changes nothing. Timers in
event time happen between elements, in the order of time; timers on the clock after all that a tick made due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, NamedTuple

from catchment.operators.aggregates.aggregate import frozen
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Grouping, Key, collapsed, key_of
from catchment.operators.map import records
from catchment.operators.members import Group
from catchment.operators.ordering import sortable_key
from catchment.operators.projection import time_position
from catchment.operators.stateless import calling
from catchment.operators.states import copying, load_state, save_state
from catchment.operators.timers import ELEMENT, FORGET, TIMER, Happening, Schedule
from catchment.operators.waiting import Take, Waiting
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.process import Context, Process, State
from catchment.program.row_error import RowError
from catchment.program.types import Instant, Row, Schema

EVENT = "event"
"""The kind of a timer in event time, as `Context.wake` writes it."""


class _Timer(NamedTuple):
    """A timer that was set: for a moment of event time, or for a delay after what the clock `read` (None: nothing)."""

    kind: str
    moment: int
    read: int | None
    number: int  # by which its entries are known


class Known:
    """What the step remembers of a key."""

    __slots__ = ("forgetting", "group", "key", "latest", "sorts_as", "state", "timers")

    def __init__(self, key: Key, sorts_as: Any, group: Group, state: State, latest: int) -> None:
        self.key = key
        self.sorts_as = sorts_as
        self.group = group
        self.state = state
        self.latest = latest
        self.timers: dict[str, _Timer] = {}
        self.forgetting: int | None = None  # the number of the entry that will forget it


class _Clock(NamedTuple):
    """A timer on the clock, sorted by (due, key, name)."""

    due: int
    sorts_as: Any
    name: str
    number: int
    known: Known


class Processed(Waiting):
    """The state and the timers of each key, and the elements that wait to be taken."""

    def __init__(self, step: steps.Processed, given: Schema) -> None:
        super().__init__(Grouping.of(given, step.keys, step.scope), step.closing, step.scope)
        self._step = step
        self._kind: type[Process[Any, Any, Any]] = declared(step.process)
        process = self._kind(**step.parameters)
        self._on_element, self._on_timer = calling(process.on_element), calling(process.on_timer)
        self._records = records(step.record)
        self._copy = copying(self._kind.state_type)
        self._time = time_position(step.record)
        self._key_of = key_of(given, step.keys)
        self._sorts_as = sortable_key(given, step.keys)
        self._known: dict[Key, Known] = {}
        self._schedule = Schedule(self._is_void)
        self._clocks: list[_Clock] = []
        self._clocks_max = 64
        # Timers on the clock that were set before there was one: whose, their name and their number.
        self._unread: list[tuple[Known, str, int]] = []
        # Groups in which something may be due although their watermark did not rise.
        self._touched: dict[Group, None] = {}
        self._number = 0
        self._began = 0  # the number when the event began that is being processed

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        key_of, group_of, heard = self._key_of, self.grouping.of_key, self.tracker.heard

        def in_order(at: int, source: Source, row: Row) -> None:
            group = group_of(key_of(row))
            heard(0, source)
            if at < self.mark(group) - self.grace:
                late.element(at, source, row)
                return
            self._number += 1
            self._schedule.add(group, Happening(at, ELEMENT, (source[0],), self._number, row))

        def as_it_comes(at: int, source: Source, row: Row) -> None:
            key = key_of(row)
            group = group_of(key)
            heard(0, source)
            self.mark(group)
            self._touched[group] = None
            self._element(at, key, group, row)

        return in_order if self._step.order == "event_time" else as_it_comes

    def due(self, groups: list[Group]) -> None:
        self._began = self._number
        self._happen(dict.fromkeys([*groups, *self._touched]))

    def clock(self, now: int) -> None:
        for known, name, number in self._unread:
            if self._is_set(known, name, number):
                known.timers[name] = known.timers[name]._replace(read=now)
                self._enter(known, name, known.timers[name])
        self._unread.clear()
        due: list[_Clock] = []
        later: list[_Clock] = []
        while self._clocks and self._clocks[0].due <= now:
            timer = heappop(self._clocks)
            (due if timer.number <= self._began else later).append(timer)
        for timer in later:
            heappush(self._clocks, timer)
        for clock in due:
            # An earlier one may have replaced or cancelled it, or the key may be forgotten.
            known = clock.known
            if self._is_set(known, clock.name, clock.number):
                self._fire(known, clock.name, known.latest)
                self._happen({known.group: None})

    def _happen(self, groups: Iterable[Group]) -> None:
        self._touched.clear()
        marks, grace = self.tracker.marks, self.grace
        self._schedule.happen([group for group in groups if group in marks], lambda g: marks[g] - grace, self._take)

    def _take(self, group: Group, happening: Happening) -> None:
        if happening.kind == ELEMENT:
            self._element(happening.at, self._key_of(happening.what), group, happening.what)
        elif happening.kind == TIMER:
            known, name = happening.what
            self._fire(known, name, happening.at)
        else:
            self._forget(happening.what, happening.at)

    def _element(self, at: int, key: Key, group: Group, row: Row) -> None:
        known = self._known.get(key)
        if known is None:
            known = Known(key, self._sorts_as(key), group, self._kind.state_type(), at)
        context = Context(key, Instant(at), self._now())
        if self._call(known, context, row, self._on_element, self._kind.element_type.of(row)):
            known.latest = max(known.latest, at)
            if not context.forgotten:
                self._forget_later(known)

    def _fire(self, known: Known, name: str, at: int) -> None:
        del known.timers[name]
        context = Context(known.key, Instant(at), self._now())
        self._call(known, context, (*known.key, name), self._on_timer, name)

    def _call(self, known: Known, context: Context, row: Row, body: Callable[..., Any], given: Any) -> bool:
        """Make a call, give what it returns, and keep what it changed; False if it failed."""
        state = self._copy(known.state)
        try:
            returned = body(given, state, context)
            rows = [] if returned is None else self._records(returned)
        except RowError as error:
            self.quarantine(error, row)
            return False
        source, time = collapsed(known.group), self._time
        for result in rows:
            at = None if time is None else result[time]
            self.output.element(context.at if at is None else at, source, result)
        if context.forgotten:
            self._drop(known)
            return True
        known.state = state
        self._known[known.key] = known
        for wake in context.wakes:
            self._wake(known, *wake)
        return True

    def _wake(self, known: Known, name: str, kind: str, moment: int | None) -> None:
        """Set or cancel a timer."""
        before = known.timers.pop(name, None)
        if before is not None and before.kind == EVENT:
            self._schedule.voided()
        if moment is None:
            return
        self._number += 1
        known.timers[name] = timer = _Timer(kind, moment, self.tracker.now(), self._number)
        self._enter(known, name, timer)

    def _enter(self, known: Known, name: str, timer: _Timer) -> None:
        """Put a timer where it will be found when it is due."""
        if timer.kind == EVENT:
            place = (known.sorts_as, name)
            self._schedule.add(known.group, Happening(timer.moment, TIMER, place, timer.number, (known, name)))
        elif timer.read is None:
            self._unread.append((known, name, timer.number))
        else:
            due = timer.read + timer.moment
            heappush(self._clocks, _Clock(due, known.sorts_as, name, timer.number, known))
            self._sweep_clocks()

    def _is_set(self, known: Known, name: str, number: int) -> bool:
        timer = known.timers.get(name)
        return timer is not None and timer.number == number and self._known.get(known.key) is known

    def _is_void(self, happening: Happening) -> bool:
        if happening.kind == ELEMENT:
            return False
        if happening.kind == TIMER:
            known, name = happening.what
            return not self._is_set(known, name, happening.number)
        known = happening.what
        return known.forgetting != happening.number or self._known.get(known.key) is not known

    def _sweep_clocks(self) -> None:
        """Timers that are set again and again leave entries behind, far in the future."""
        if len(self._clocks) > self._clocks_max:
            live = [clock for clock in self._clocks if self._is_set(clock.known, clock.name, clock.number)]
            self._clocks = sorted(live)
            self._clocks_max = 64 + 2 * len(live)

    def _forget_later(self, known: Known) -> None:
        """See to it that the key is forgotten when it had no element for so long."""
        if self._step.ttl is not None and known.forgetting is None:
            self._number += 1
            self._forget_at(known, self._number)

    def _forget_at(self, known: Known, number: int) -> None:
        known.forgetting = number
        at = known.latest + (self._step.ttl or 0)
        self._schedule.add(known.group, Happening(at, FORGET, (known.sorts_as,), number, known))

    def _forget(self, known: Known, at: int) -> None:
        """Forget a key, unless it had an element since this was put on the schedule."""
        known.forgetting = None
        if known.latest + (self._step.ttl or 0) > at:
            self._forget_later(known)
        else:
            self._drop(known)

    def _drop(self, known: Known) -> None:
        if self._known.get(known.key) is known:
            del self._known[known.key]
            entries = sum(timer.kind == EVENT for timer in known.timers.values()) + (known.forgetting is not None)
            self._schedule.voided(entries)

    def _now(self) -> Instant | None:
        now = self.tracker.now()
        return None if now is None else Instant(now)

    def state(self) -> Snapshot:
        elements = [
            [each.at, *each.place, each.number, each.what] for each in self._schedule.entries() if each.kind == ELEMENT
        ]
        keys = [
            [
                known.key,
                save_state(known.state),
                known.latest,
                [[name, *timer] for name, timer in known.timers.items()],
                known.forgetting,
            ]
            for known in self._known.values()
        ]
        return {"number": self._number, "elements": elements, "keys": keys, "touched": list(self._touched)}

    def set_state(self, state: Snapshot) -> None:
        self._known.clear()
        self._schedule.clear()
        self._clocks.clear()
        self._unread.clear()
        self._touched = dict.fromkeys(state["touched"])
        for at, device, number, saved_row in state["elements"]:
            row: Row = frozen(saved_row)
            group = self.grouping.of_key(self._key_of(row))
            self._schedule.add(group, Happening(at, ELEMENT, (device,), number, row))
        self._number = state["number"]
        for saved_key, saved, latest, timers, forgetting in state["keys"]:
            key: Key = frozen(saved_key)
            held = load_state(saved, self._kind.state_type)
            known = self._known[key] = Known(key, self._sorts_as(key), self.grouping.of_key(key), held, latest)
            for name, *timer in timers:
                known.timers[name] = _Timer(*timer)
                self._enter(known, name, known.timers[name])
            if forgetting is not None:
                self._forget_at(known, forgetting)
