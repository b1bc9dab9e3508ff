"""Sessions: runs of elements of a key with less than a gap between neighbours, which merge where one bridges two."""

from __future__ import annotations

from typing import Any, NamedTuple

from catchment.operators.aggregates.aggregate import Summary, frozen
from catchment.operators.contents import Contents
from catchment.operators.contract import Port, Quarantine, Snapshot
from catchment.operators.keys import Grouping, Key, collapsed, key_of
from catchment.operators.members import Group
from catchment.operators.ordering import sortable_key
from catchment.operators.waiting import Take, Waiting
from catchment.operators.windows.agenda import Agenda
from catchment.plan.history import Source
from catchment.program.row_error import RowError
from catchment.program.steps import Scope
from catchment.program.types import Row, Schema
from catchment.program.window import SessionWindow


class _Session:
    __slots__ = ("first", "last", "summary")

    def __init__(self, first: int, last: int, summary: Summary) -> None:
        self.first = first
        self.last = last
        self.summary = summary


class _Held:
    """The open sessions of a key, and when it is looked at next: not after the first of them ends."""

    __slots__ = ("group", "key", "next_end", "sessions")

    def __init__(self, key: Key, group: Group) -> None:
        self.key = key
        self.group = group
        self.sessions: list[_Session] = []
        self.next_end: int | None = None


class _Due(NamedTuple):
    end: int
    sorts_as: Any
    held: _Held
    session: _Session


class Sessions(Waiting):
    """A summary for each open session."""

    def __init__(
        self, window: SessionWindow, keys: tuple[str, ...], scope: Scope, schema: Schema, contents: Contents
    ) -> None:
        super().__init__(Grouping.of(schema, keys, scope), window.closing, scope)
        self._gap = window.gap
        self._contents = contents
        self._key_of = key_of(schema, keys)
        self._sorts_as = sortable_key(schema, keys)
        self._held: dict[Key, _Held] = {}
        self._closing: Agenda[_Held] = Agenda()
        self._arrived = 0

    def take(self, port: int, late: Port, quarantine: Quarantine) -> Take:
        key_of, group_of, heard = self._key_of, self.grouping.of_key, self.tracker.heard
        gap, grace, look = self._gap, self.grace, self._contents.look

        def take(at: int, source: Source, row: Row) -> None:
            key = key_of(row)
            group = group_of(key)
            heard(0, source)
            mark = self.mark(group)
            held = self._held.get(key)
            sessions = held.sessions if held is not None else []
            near = [session for session in sessions if session.first - gap < at < session.last + gap]
            if not near and mark >= at + gap + grace:
                late.element(at, source, row)
                return
            try:
                seen = look(row)
            except RowError as error:
                quarantine(error, row)
                return
            if held is None:
                held = self._held[key] = _Held(key, group)
            self._arrived += 1
            session = self._joined(held, near, at)
            self._contents.add(session.summary, seen, at, (at, source[0], self._arrived))
            self._schedule(held, session.last + gap)

        return take

    def _joined(self, held: _Held, near: list[_Session], at: int) -> _Session:
        """The session of an element: a new one, or those near to it as one."""
        if not near:
            held.sessions.append(_Session(at, at, self._contents.empty()))
            return held.sessions[-1]
        session, *others = near
        for other in others:
            session.summary = self._contents.merge(session.summary, other.summary)
            held.sessions.remove(other)
        session.first = min(at, *(each.first for each in near))
        session.last = max(at, *(each.last for each in near))
        return session

    def _schedule(self, held: _Held, end: int) -> None:
        if held.next_end is None or end < held.next_end:
            held.next_end = end
            self._closing.add(held.group, end, held)

    def due(self, groups: list[Group]) -> None:
        found: list[_Due] = []
        for group in groups:
            closed = self.tracker.marks[group] - self.grace
            for end, held in self._closing.due(group, closed):
                if held.next_end == end:
                    found += self._closed(held, closed)
        if len(found) > 1:
            found.sort(key=lambda due: due[:2])
        for end, _, held, session in found:
            rows, failure = self._contents.rows((*held.key, session.first, end, 0, end - 1), session.summary)
            if failure is not None:
                self.quarantine(failure, rows[0])
                continue
            for row in rows:
                self.output.element(end - 1, collapsed(held.group), row)

    def _closed(self, held: _Held, closed: int) -> list[_Due]:
        gap = self._gap
        found = [
            _Due(session.last + gap, self._sorts_as(held.key), held, session)
            for session in held.sessions
            if session.last + gap <= closed
        ]
        held.sessions = [session for session in held.sessions if session.last + gap > closed]
        held.next_end = None
        if held.sessions:
            self._schedule(held, min(session.last for session in held.sessions) + gap)
        else:
            del self._held[held.key]
        return found

    def state(self) -> Snapshot:
        save = self._contents.save
        held = [
            [held.key, held.next_end, [[s.first, s.last, save(s.summary)] for s in held.sessions]]
            for held in self._held.values()
        ]
        return {"arrived": self._arrived, "held": held}

    def set_state(self, state: Snapshot) -> None:
        self._arrived = state["arrived"]
        self._held.clear()
        self._closing.clear()
        for saved_key, next_end, sessions in state["held"]:
            key: Key = frozen(saved_key)
            held = self._held[key] = _Held(key, self.grouping.of_key(key))
            held.sessions = [_Session(first, last, self._contents.load(saved)) for first, last, saved in sessions]
            self._schedule(held, next_end)
