"""Where elements enter a sync stream: sampled down while away, filtered, promised, appended, all in one transaction.

Promises: the filter's state, the elements it let through and the promise are stored together, so a crash neither loses
an element that the filter held nor breaks its bound; what is sampled away is counted. The promise never runs ahead of
an element that is held back. Knows the outbox and a policy that may change at any time; must not know links' details,
sockets or clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from catchment.program.sync import Sync
from catchment.program.types import Row, Schema
from catchment.sync.filters import Element, StreamFilter, make_filter
from catchment.sync.outbox import Appended, Outbox, OutboxError, Stamp
from catchment.sync.policy import Door


class Intake:
    """One stream of one device."""

    def __init__(self, outbox: Outbox, stream: str, schema: Schema, policy: Sync) -> None:
        self.stream = stream
        self.schema = schema
        self.policy = policy
        self._outbox = outbox
        self._door = Door()
        self._filter: StreamFilter | None = None
        self._event_time = None if schema.event_time is None else schema.position(schema.event_time)
        outbox.bind(stream, policy.outbox)
        self._make_filter()

    def change(self, policy: Sync) -> Appended:
        """Follow another policy from now on. What the old filter held goes out: the new one knows nothing of it."""
        released = self.release()
        self.policy = policy
        self._outbox.bind(self.stream, policy.outbox)
        self._make_filter(restore=False)
        return released

    def link(self, *, connected: bool, now_us: int) -> None:
        """The connection came or went."""
        self._door = self._door.link(connected=connected, now_us=now_us)

    def append(
        self, rows: Sequence[Row], *, stamp: Stamp, readings_us: Sequence[int], promise_us: int | None = None
    ) -> Appended:
        """Take elements in, each with its reading of the boot clock.

        With `promise_us`, nothing that is appended later is older than that. Outside a transaction of the caller,
        elements that a troubled disk does not take are refused and counted; inside one, it raises.
        """
        door, kept = self._door.admit(self.policy, len(rows), readings_us[0] if readings_us else 0)
        elements = [self._element(rows[index], readings_us[index], stamp) for index in kept]
        return self._store(elements, door, len(rows) - len(kept), None if promise_us is None else (promise_us, stamp))

    def release(self) -> Appended:
        """Let go what the filter holds."""
        return self._store([], self._door, 0, None, flush=True)

    def reload(self) -> None:
        """A transaction around the last appends came to nothing: the filter goes back to what is stored."""
        self._make_filter()

    def release_at_us(self) -> int | None:
        """The reading at which the filter has held its element long enough."""
        if self._filter is None or self._filter.held is None or self.policy.filter is None:
            return None
        hold = getattr(self.policy.filter, "hold", None)
        return None if hold is None else self._filter.held.reading_us + hold

    def _store(
        self,
        elements: list[Element],
        door: Door,
        left_out: int,
        promise: tuple[int, Stamp] | None,
        *,
        flush: bool = False,
    ) -> Appended:
        alone = not self._outbox.in_transaction
        try:
            with self._outbox.transaction():
                # Also if the transaction is a caller's and fails later.
                self._outbox.on_failure(self._memory())
                self._door = door
                return self._pass(elements, left_out, promise, flush)
        except OutboxError:
            if not alone:
                raise
            self._door = door
            self._outbox.give_up(self.stream, len(elements))
            self._outbox.give_up(self.stream, left_out, thinned=True)
            return Appended(0, len(elements))

    def _memory(self) -> Callable[[], None]:
        """What brings the filter and the door back to now."""
        filter_, door = self._filter, self._door
        state = None if filter_ is None else filter_.state()

        def restore() -> None:
            self._filter, self._door = filter_, door
            if filter_ is not None and state is not None:
                filter_.restore(state)

        return restore

    def _pass(self, elements: list[Element], left_out: int, promise: tuple[int, Stamp] | None, flush: bool) -> Appended:
        if left_out:
            self._outbox.give_up(self.stream, left_out, thinned=True)
        through = list(elements)
        if self._filter is not None:
            through = [kept for element in elements for kept in self._filter.offer(element)]
            if flush:
                through.extend(self._filter.flush())
            self._outbox.save_state(self._key, self._filter.state())
        outcome = Appended(0)
        for stamp, group in _by_stamp(through):
            part = self._outbox.append(
                self.stream,
                self.schema,
                [element.row for element in group],
                stamp=stamp,
                readings_us=[element.reading_us for element in group],
            )
            outcome = Appended(*[a + b for a, b in zip(_counts(outcome), _counts(part), strict=True)])
        if promise is not None:
            until_us, stamp = promise
            held = None if self._filter is None else self._filter.held
            if held is not None:
                until_us = min(until_us, held.at_us)
            self._outbox.promise(self.stream, until_us, stamp=stamp)
        return outcome

    def _make_filter(self, *, restore: bool = True) -> None:
        declared = self.policy.filter
        self._filter = None if declared is None else make_filter(declared, self.schema)
        # The state belongs to one declaration and one shape of rows; another start with others begins anew.
        shape = "" if declared is None else msgspec.json.encode(declared).decode()
        self._key = f"filter/{self.stream}/{self.schema.fingerprint}/{shape}"
        if self._filter is not None and restore:
            try:
                state = self._outbox.load_state(self._key)
            except OutboxError:
                return
            if state is not None:
                self._filter.restore(state)

    def _element(self, row: Row, reading_us: int, stamp: Stamp) -> Element:
        at_us = reading_us if self._event_time is None else row[self._event_time]
        return Element(row, reading_us if at_us is None else at_us, reading_us, _STAMPS.encode(stamp))


_STAMPS = msgspec.msgpack.Encoder()


def _by_stamp(elements: list[Element]) -> list[tuple[Stamp, list[Element]]]:
    """Neighbours of one clock together: an element that was held may be of an earlier one."""
    groups: list[tuple[Stamp, list[Element]]] = []
    tag = None
    for element in elements:
        if element.tag != tag:
            tag = element.tag
            groups.append((msgspec.msgpack.decode(tag, type=Stamp), []))
        groups[-1][1].append(element)
    return groups


def _counts(outcome: Appended) -> tuple[int, int, int]:
    return outcome.accepted, outcome.refused, outcome.given_up
