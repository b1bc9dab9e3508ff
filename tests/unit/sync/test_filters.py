"""Filters of sync streams: what is left out can be told from what is kept, within the bound that was promised."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.program.sync import dead_reckoning, significant_change, trend
from catchment.program.types import FLOAT, INSTANT, INT, STR, Column, Duration, Schema
from catchment.sync.filters import ChangeFilter, DeadReckoner, Element, StreamFilter, make_filter

FIX = Schema(
    "Fix",
    (
        Column("at", INSTANT, event_time=True),
        Column("lat_deg", FLOAT, nullable=True, step=1e-6),
        Column("lon_deg", FLOAT, nullable=True, step=1e-6),
        Column("user", STR),
    ),
)
SECOND = 1_000_000
RADIUS_M = 6_371_008.8


def distance_m(here: tuple[float, float], there: tuple[float, float]) -> float:
    """The great circle, by the haversine: not the formula that the filter uses."""
    lat1, lon1, lat2, lon2 = map(math.radians, (*here, *there))
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * RADIUS_M * math.asin(math.sqrt(h))


def kept_of(track: list[Element], one: StreamFilter) -> list[Element]:
    return [*[kept for element in track for kept in one.offer(element)], *one.flush()]


def rounded(value: float) -> float:
    return round(value * 1e6) / 1e6


steps = st.tuples(st.integers(1, 30), st.floats(-300, 300), st.floats(-300, 300), st.booleans())
tracks = st.tuples(st.floats(-80, 80), st.floats(-179, 179), st.lists(steps, min_size=1, max_size=60))


def track_of(start_lat: float, start_lon: float, moves: list[tuple[int, float, float, bool]]) -> list[Element]:
    """A walk of straight legs and corners, in metres per step."""
    at, lat, lon, elements = 0, start_lat, start_lon, []
    north = east = 0.0
    for seconds, new_north, new_east, turn in moves:
        if turn:
            north, east = new_north, new_east
        at += seconds * SECOND
        lat += north / 111_195
        lon += east / (111_195 * math.cos(math.radians(lat)))
        elements.append(Element((at, lat, lon, "ada"), at, at))
    return elements


@given(tracks, st.sampled_from([1.0, 10.0, 50.0]))
@settings(max_examples=100, deadline=None)
def test_every_position_left_out_lies_within_the_bound_of_the_line_in_time(
    walk: tuple[float, float, list[tuple[int, float, float, bool]]], within: float
) -> None:
    track = track_of(*walk)
    kept = kept_of(track, make_filter(dead_reckoning("lat_deg", "lon_deg", within=within), FIX))
    assert kept[0] == track[0]
    assert kept[-1] == track[-1]
    assert all(element in track for element in kept)
    for element in track:
        after = next(index for index, one in enumerate(kept) if one.at_us >= element.at_us)
        b, a = kept[after], kept[max(after - 1, 0)]
        share = 0.0 if b.at_us == a.at_us else (element.at_us - a.at_us) / (b.at_us - a.at_us)
        # As the receiver sees it: what is kept was rounded to its steps.
        lat, lon = [rounded(a.row[i]) + share * (rounded(b.row[i]) - rounded(a.row[i])) for i in (1, 2)]
        assert distance_m((element.row[1], element.row[2]), (lat, lon)) <= within


def test_straight_motion_costs_two_elements_and_a_stop_none() -> None:
    one = make_filter(dead_reckoning("lat_deg", "lon_deg", within=10), FIX)
    moving = [Element((t, 48 + t * 1e-10, 11.0, "ada"), t, t) for t in range(0, 100 * SECOND, SECOND)]
    assert len(kept_of(moving, one)) == 2


def test_nothing_waits_longer_than_hold() -> None:
    declared = dead_reckoning("lat_deg", "lon_deg", within=10, hold=Duration(30 * SECOND))
    one = make_filter(declared, FIX)
    parked = [Element((t, 48.0, 11.0, "ada"), t, t) for t in range(0, 100 * SECOND, SECOND)]
    assert [element.at_us // SECOND for element in kept_of(parked, one)] == [0, 30, 60, 90, 99]


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 48.0, 11.0), (1, None, 11.0), (2, 48.0, 11.0), (3, 48.0, 11.0)],
        [(0, 48.0, 11.0), (1, math.nan, 11.0), (2, 48.0, 11.0), (3, 48.0, 11.0)],
        [(0, 48.0, 179.9999), (1, 48.0, -179.9999), (2, 48.0, -179.9998), (3, 48.0, -179.9997)],
        [(5, 48.0, 11.0), (5, 48.0, 11.0), (4, 48.0, 11.0), (6, 48.0, 11.0)],
    ],
)
def test_what_no_line_can_tell_is_kept(rows: list[tuple[int, float | None, float]]) -> None:
    one = make_filter(dead_reckoning("lat_deg", "lon_deg", within=10), FIX)
    track = [Element((at * SECOND, lat, lon, "ada"), at * SECOND, 0) for at, lat, lon in rows]
    kept = kept_of(track, one)
    assert kept == [element for element in track if element in kept]
    assert kept[:2] == track[:2]


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(-10, 10)), min_size=1, max_size=60))
def test_numbers_that_move_steadily_are_told_within_their_bound(moves: list[tuple[int, float]]) -> None:
    schema = Schema("T", (Column("at", INSTANT, event_time=True), Column("x", FLOAT)))
    at, track = 0, []
    for step, value in moves:
        at += step
        track.append(Element((at, value), at, at))
    kept = kept_of(track, DeadReckoner(trend("x", within=0.5), schema))
    for element in track:
        after = next(index for index, one in enumerate(kept) if one.at_us >= element.at_us)
        b, a = kept[after], kept[max(after - 1, 0)]
        share = 0.0 if b.at_us == a.at_us else (element.at_us - a.at_us) / (b.at_us - a.at_us)
        assert abs(a.row[1] + share * (b.row[1] - a.row[1]) - element.row[1]) <= 0.5


def test_three_fields_share_the_bound() -> None:
    schema = Schema("A", (Column("at", INSTANT, event_time=True), *(Column(n, FLOAT) for n in "xyz")))
    one = make_filter(trend("x", "y", "z", within=1.0), schema)
    track = [Element((t, 0.0, 0.0, 0.5 * (t % 2)), t, t) for t in range(1, 9)]
    assert len(kept_of(track, one)) == 2
    track = [Element((t, 0.0, 0.0, 5.0 * (t % 2)), t, t) for t in range(1, 9)]
    assert len(kept_of(track, make_filter(trend("x", "y", "z", within=1.0), schema))) == 8


@given(tracks, st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_a_restart_between_any_two_elements_changes_nothing(
    walk: tuple[float, float, list[tuple[int, float, float, bool]]], cut: int
) -> None:
    for declared in (
        dead_reckoning("lat_deg", "lon_deg", within=10),
        significant_change("lat_deg", "lon_deg", by=1e-3, at_least_every=Duration(60 * SECOND)),
    ):
        track = track_of(*walk)
        whole = kept_of(track, make_filter(declared, FIX))
        one = make_filter(declared, FIX)
        first = [kept for element in track[:cut] for kept in one.offer(element)]
        another = make_filter(declared, FIX)
        another.restore(one.state())
        assert another.held == one.held
        assert [*first, *kept_of(track[cut:], another)] == whole


def test_a_bound_that_rounding_alone_would_use_up_is_refused() -> None:
    coarse = Schema("C", (Column("x", FLOAT, step=1.0),))
    with pytest.raises(ProgramError, match="S451"):
        make_filter(trend("x", within=0.5), coarse)
    make_filter(trend("x", within=0.6), coarse)


class TestSignificantChange:
    SCHEMA = Schema("S", (Column("x", FLOAT, nullable=True), Column("n", INT)))

    def kept(self, values: list[float | None], **more: Duration) -> list[float | None]:
        one = ChangeFilter(significant_change("x", by=1.0, **more), self.SCHEMA)
        track = [Element((value, 0), at * SECOND, at) for at, value in enumerate(values)]
        return [element.row[0] for element in kept_of(track, one)]

    def test_an_element_is_compared_with_the_last_one_kept(self) -> None:
        assert self.kept([0.0, 0.6, 1.2, 1.3, 0.3, 0.2]) == [0.0, 1.2, 0.2]

    def test_null_and_nan_are_values_of_their_own(self) -> None:
        kept = self.kept([0.0, None, None, math.nan, math.nan, 0.0])
        assert [repr(value) for value in kept] == ["0.0", "None", "nan", "0.0"]

    def test_silence_has_an_end(self) -> None:
        assert len(self.kept([5.0] * 10, at_least_every=Duration(3 * SECOND))) == 4
