"""Progress and ticks: the least promise is the true one, and time is told as long as a window may be open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catchment.gateway.log import Entry, Kind, Marks, Reached, presence, reached_of
from catchment.gateway.log.progress import Progress, Ticker

SECOND = 1_000_000

_events = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 50)),
        st.tuples(st.just("presence"), st.integers(0, 3), st.just(""), st.integers(0, 1)),
    ),
    max_size=40,
)


def _entry(what: str, device: int, stream: str, value: int) -> Entry:
    if what == "presence":
        return presence(device=f"d{device}", user="u", online=bool(value), since=0, now=0)
    return Entry(kind=Kind.DATA, device=f"d{device}", stream=stream, promise_us=value, received_us=0)


def _by_definition(marks: Marks) -> dict[str, Reached]:
    streams = sorted({name for device in marks.devices.values() for name in device.streams})
    found = {}
    for name in streams:
        sources = [device for device in marks.devices.values() if name in device.streams]
        everyone = min(device.streams[name].promise_us for device in sources)
        there = [device.streams[name].promise_us for device in sources if device.online]
        found[name] = Reached(everyone, min(there, default=everyone))
    return found


@given(_events, st.integers(0, 40))
def test_the_least_promise_is_the_least_by_definition(events: list[tuple[str, int, str, int]], restart_at: int) -> None:
    marks = Marks()
    progress = Progress(marks)
    for index, event in enumerate(events):
        if index == restart_at:
            marks = Marks.from_bytes(marks.to_bytes())
            progress = Progress(marks)
        entry = _entry(*event)
        marks.apply(entry)
        progress.apply(entry)
        assert progress.reached() == _by_definition(marks)


def test_ticks_follow_data_and_end_when_no_window_can_be_open() -> None:
    marks = Marks()
    ticker = Ticker(marks, every_us=SECOND, horizon_us=10 * SECOND)
    assert ticker.due_us() is None and ticker.tick(now_us=99 * SECOND) is None, "nothing ever arrived"
    ticks = []
    data = Entry(kind=Kind.DATA, device="d", stream="s", promise_us=42, received_us=100 * SECOND)
    marks.apply(data)
    ticker.progress.apply(data)
    for now in range(100 * SECOND, 200 * SECOND, SECOND // 4):
        tick = ticker.tick(now_us=now)
        if tick is not None:
            marks.apply(tick)
            ticks.append(tick)
    assert [tick.received_us // SECOND for tick in ticks] == list(range(101, 111))
    assert reached_of(ticks[0]) == {"s": Reached(42, 42)}
    assert ticker.due_us() is None


def test_after_a_pause_data_is_followed_by_ticks_again() -> None:
    marks = Marks(data_us=0, tick_us=10 * SECOND)
    ticker = Ticker(marks, every_us=SECOND, horizon_us=10 * SECOND)
    assert ticker.due_us() is None
    marks.apply(Entry(kind=Kind.DATA, device="d", stream="s", received_us=500 * SECOND))
    due_us = ticker.due_us()
    assert due_us is not None and due_us <= 501 * SECOND
