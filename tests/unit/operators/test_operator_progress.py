"""The watermark of every group, against its definition evaluated from all events so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from catchment.operators.progress import Tracker, own, resolved
from catchment.plan.history import Source
from catchment.program.window import CLOSE_AND_REVISE, Closing, Offline

SOURCES = (Source("a1", "ada"), Source("a2", "ada"), Source("b1", "bob"), Source("", "bob"), Source("", None))
Event = tuple[Any, ...]

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("progress"), st.integers(0, 1), st.sampled_from(SOURCES), st.integers(0, 60)),
        st.tuples(st.just("heard"), st.integers(0, 1), st.sampled_from(SOURCES)),
        st.tuples(
            st.just("presence"), st.integers(0, 1), st.sampled_from(SOURCES), st.one_of(st.none(), st.integers(0, 9))
        ),
        st.tuples(st.just("tick"), st.integers(0, 1), st.integers(0, 80)),
        st.tuples(st.just("begin"), st.sampled_from(["ada", "bob", "eve"])),
    ),
    max_size=40,
)
CLOSINGS = st.builds(
    Closing,
    idle=st.sampled_from([5, 20]),
    offline=st.sampled_from([None, Offline(), Offline(12), CLOSE_AND_REVISE]),
)


class Definition:
    """P, heard, E and W as the definition has them: looked up among all events, nothing kept."""

    def __init__(self, ports: int, closing: Closing, group_of: Callable[[Source], Any] | None) -> None:
        self.ports = ports
        self.closing = closing
        self.group_of = group_of
        self.seen: list[Event] = []
        self.marks: dict[Any, float] = {}

    def take(self, event: Event) -> None:
        self.seen.append(event)
        groups = {event[1] for event in self.seen if event[0] == "begin"} | {None}
        groups |= {self.named(event[2]) for event in self.seen if event[0] in ("progress", "presence")}
        begun = set(self.marks)
        for group in groups if self.group_of is not None else {None}:
            if self.group_of is not None and group is None and not self.names_nobody():
                continue
            # An element changes no watermark, but that its group begins with one.
            if event[0] not in ("heard", "begin") or group not in begun:
                self.marks[group] = max(self.marks.get(group, -math.inf), self.watermark(group))

    def names_nobody(self) -> bool:
        return any(e[0] in ("progress", "presence") and e[2].device and e[2].owner is None for e in self.seen)

    def named(self, source: Source) -> Any:
        return None if self.group_of is None or source == Source("", None) else self.group_of(source)

    def watermark(self, group: Any) -> float:
        least = math.inf
        for port in range(self.ports):
            known = {e[2] for e in self.seen if e[0] in ("progress", "presence") and e[1] == port}
            mine = [s for s in known if self.group_of is None or s == Source("", None) or self.named(s) == group]
            if not mine:
                return -math.inf
            least = min(least, *(self.effective(port, source) for source in mine))
        return least

    def effective(self, port: int, source: Source) -> float:
        promises = [e[3] for e in self.seen if e[0] == "progress" and e[1] == port and e[2] == source]
        promised: float = max(promises, default=-math.inf)
        now: int | None = None
        heard: int | None = None
        away = False
        for event in self.seen:
            if event[0] == "tick" and event[1] == port:
                now = event[2] if now is None else max(now, event[2])
                heard = now if heard is None else heard
            elif event[0] in ("progress", "heard", "presence") and event[1:3] == (port, source):
                heard = now
                away = event[3] is not None if event[0] == "presence" else away
        if now is None or heard is None or source.device == "":
            return promised
        at_most = self.closing.offline.at_most if self.closing.offline is not None else None
        if away:
            return promised if at_most is None else max(promised, now - at_most)
        return max(promised, now - self.closing.idle) if now - heard >= self.closing.idle else promised


def feed(tracker: Tracker, event: Event) -> list[Any] | None:
    kind, *given_ = event
    return getattr(tracker, kind)(*given_)  # type: ignore[no-any-return]


def checked(events: Iterable[Event], ports: int, closing: Closing, group_of: Any, restart_at: int) -> None:
    definition = Definition(ports, closing, group_of)
    tracker = Tracker(ports, closing, group_of)
    told: dict[Any, int] = {}
    for number, event in enumerate(events):
        if event[0] != "begin" and event[1] >= ports:
            continue
        if event[0] == "begin" and group_of is None:
            continue
        if number == restart_at:
            carried = msgspec.msgpack.encode(tracker.snapshot())
            tracker = Tracker(ports, closing, group_of)
            tracker.restore(msgspec.msgpack.decode(carried))
        definition.take(event)
        risen = feed(tracker, event)
        expected = {group: mark for group, mark in definition.marks.items() if mark > -math.inf}
        assert tracker.marks == expected
        if risen is not None:
            # Each group whose watermark rose is told, and no other; what rose as a group began is told now.
            assert len(set(risen)) == len(risen)
            told.update((group, tracker.marks[group]) for group in risen)
            assert told == expected


@given(EVENTS, CLOSINGS, st.integers(0, 30))
def test_groups_of_owners(events: list[Event], closing: Closing, restart_at: int) -> None:
    checked(events, 1, resolved(closing, "own"), own("user"), restart_at)


@given(EVENTS, CLOSINGS, st.integers(0, 30))
def test_groups_of_owners_over_two_ports(events: list[Event], closing: Closing, restart_at: int) -> None:
    checked(events, 2, resolved(closing, "own"), own("user"), restart_at)


@given(EVENTS, CLOSINGS, st.integers(0, 30))
def test_one_group_of_all(events: list[Event], closing: Closing, restart_at: int) -> None:
    checked(events, 2, resolved(closing, "all"), None, restart_at)


def test_offline_left_out_waits_for_ones_own_and_an_hour_for_many() -> None:
    assert resolved(Closing(), "own").offline == Offline(None)
    assert resolved(Closing(), "all").offline == Offline(3_600_000_000)
    assert resolved(Closing(offline=CLOSE_AND_REVISE), "all").offline == CLOSE_AND_REVISE


def test_a_group_of_devices_is_named_by_the_device_or_by_the_owner_of_a_collapsed_source() -> None:
    group_of = own("device")
    assert [group_of(Source("a1", "ada")), group_of(Source("", "a1"))] == ["a1", "a1"]


def test_the_heaps_of_a_group_stay_as_small_as_the_group() -> None:
    tracker = Tracker(1, Closing(idle=5, offline=Offline(3)), None)
    sources = [Source(f"d{number}", None) for number in range(20)]
    for now in range(0, 2000, 7):
        for number, source in enumerate(sources):
            tracker.progress(0, source, now + number)
            if (now + number) % 3 == 0:
                tracker.presence(0, source, now if number % 2 else None)
        tracker.tick(0, now)
    (group,) = tracker._groups.values()
    assert [len(heap) <= len(sources) for heap in group.sides[0].heaps] == [True, True, True]
