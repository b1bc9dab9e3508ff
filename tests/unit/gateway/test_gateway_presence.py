"""Presence: away means away, not a change of cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catchment.gateway.log import Entry, Online
from catchment.gateway.presence import LINGER_US, SILENCE_US, Presence

SECOND = 1_000_000


def _said(entries: list[Entry]) -> list[tuple[str, bool, int]]:
    return [(entry.device, entry.count == Online.ONLINE, entry.base_us) for entry in entries]


def test_a_connection_is_presence_and_its_lasting_end_is_absence() -> None:
    presence = Presence()
    assert _said(presence.connect("d", "ada", now_us=0)) == [("d", True, 0)]
    presence.disconnect("d", now_us=50)
    assert presence.due(now_us=50 + LINGER_US - 1) == []
    assert _said(presence.due(now_us=50 + LINGER_US)) == [("d", False, 50)]
    assert presence.next_due_us() is None and presence.connected == 0


def test_a_short_break_is_not_spoken_of() -> None:
    presence = Presence()
    presence.connect("d", "ada", now_us=0)
    presence.disconnect("d", now_us=SECOND)
    assert presence.connect("d", "ada", now_us=2 * SECOND) == []
    assert presence.due(now_us=1000 * SECOND) == []


def test_two_connections_of_one_device_are_one_presence() -> None:
    presence = Presence()
    presence.connect("d", "ada", now_us=0)
    assert presence.connect("d", "ada", now_us=1) == []
    presence.disconnect("d", now_us=2)
    assert presence.due(now_us=1000 * SECOND) == [] and presence.connected == 1


def test_a_device_that_speaks_by_http_is_there_until_it_is_silent_for_long() -> None:
    presence = Presence()
    assert _said(presence.heard("d", "ada", now_us=0)) == [("d", True, 0)]
    assert presence.heard("d", "ada", now_us=SILENCE_US - 1) == []
    assert presence.due(now_us=SILENCE_US) == []
    assert _said(presence.due(now_us=2 * SILENCE_US)) == [("d", False, SILENCE_US - 1)]


def test_a_device_that_said_how_long_it_sleeps_is_not_away_before() -> None:
    presence = Presence()
    presence.heard("d", "ada", now_us=0, sleep_us=3600 * SECOND)
    assert presence.due(now_us=3600 * SECOND) == []
    assert _said(presence.due(now_us=3600 * SECOND + LINGER_US)) == [("d", False, 0)]


def test_after_a_restart_who_was_there_may_come_back() -> None:
    presence = Presence()
    presence.adopt({"back": "u", "gone": "u", "moved": "u"}, now_us=100)
    presence.release(lambda device: device == "moved")
    assert presence.connect("back", "u", now_us=101) == [], "the log says that it is there"
    assert _said(presence.due(now_us=100 + LINGER_US)) == [("gone", False, 100)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["connect", "disconnect", "heard", "due"]), st.integers(0, 20 * SECOND)), max_size=40
    )
)
def test_what_is_said_alternates_and_ends_in_absence(steps: list[tuple[str, int]]) -> None:
    presence = Presence()
    now, open_connections = 0, 0
    said: list[bool] = []
    for what, wait_us in steps:
        now += wait_us
        entries = presence.due(now_us=now)
        if what == "connect":
            entries += presence.connect("d", "u", now_us=now)
            open_connections += 1
        elif what == "disconnect" and open_connections:
            presence.disconnect("d", now_us=now)
            open_connections -= 1
        elif what == "heard":
            entries += presence.heard("d", "u", now_us=now)
        said += [online for _, online, _ in _said(entries)]
    for _ in range(open_connections):
        presence.disconnect("d", now_us=now)
    said += [online for _, online, _ in _said(presence.due(now_us=now + 10 * SILENCE_US))]
    assert said == [bool(i % 2 == 0) for i in range(len(said))] and len(said) % 2 == 0
