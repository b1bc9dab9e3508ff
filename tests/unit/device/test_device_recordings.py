"""Recordings played as sensors: at their pace, from where they were, past what cannot be read."""

from pathlib import Path

import pytest

from catchment.device.sensors.recordings import Torn, open_recording
from catchment.device.surroundings import Surroundings
from catchment.program.nodes import FieldRef
from catchment.program.sampling import BATTERY_LOW, Sampling, SlowDown
from catchment.program.types import (
    INSTANT,
    INT,
    STR,
    Column,
    Schema,
)
from tests.unit.device.sensor_bench import FIX, MAY_FIRST_US, OUTSIDE, TRACK, Told, made, rows, table


def test_a_track_is_played_at_its_own_pace(tmp_path: Path) -> None:
    path = tmp_path / "t.gpx"
    path.write_text(TRACK)
    told = Told()
    track = made(f"Fix=replay:{path}", FIX, told=told)
    assert track.sensor.recorded
    assert rows(track, 0) == [("ada", MAY_FIRST_US, 46.5, 13.7, 1614.6)]
    assert track.sensor.due_us(OUTSIDE) == 2_123_456
    assert rows(track, 2_000_000) == []
    assert rows(track, 2_200_000) == [("ada", MAY_FIRST_US + 2_123_456, 46.6, 13.8, None)]


def test_a_recording_is_played_faster_or_as_fast_as_it_is_taken(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "at,amount", *[f"{n * 1_000_000},{n}" for n in range(10)])
    fast = made(f"Reading=replay:{path},speed=4")
    assert [row[1] for row in rows(fast, 500_000)] == [0, 1, 2]
    fastest = made(f"Reading=replay:{path},speed=max")
    assert [row[1] for row in rows(fastest, 0, limit=4)] == [0, 1, 2, 3]
    assert len(rows(fastest, 0)) == 6
    assert fastest.sensor.ended
    assert fastest.sensor.due_us(OUTSIDE) is None


def test_a_recording_played_live_takes_the_moment_of_playing_it(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "at,amount", "5000000,1", "7000000,2")
    live = made(f"Reading=replay:{path},times=live")
    assert not live.sensor.recorded
    assert rows(live, 0) == [(0, 1, "")]
    assert rows(live, 2_000_000) == [(2_000_000, 2, "")]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "gpx", "tsv"])
def test_a_recording_goes_on_with_the_record_after_the_last_that_was_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"r.{kind}"
    lines = {
        "csv": ["at,lat_deg,lon_deg", *[f"{n},{n}.5,1" for n in range(9)]],
        "tsv": ["at\tlat_deg\tlon_deg", *[f"{n}\t{n}.5\t1" for n in range(9)]],
        "jsonl": [f'{{"at": {n}, "lat_deg": {n}.5, "lon_deg": 1}}' for n in range(9)],
        "gpx": [
            "<gpx>",
            *[f'<trkpt lat="{n}.5" lon="1"><time>1970-01-01T00:00:0{n}Z</time></trkpt>' for n in range(9)],
            "</gpx>",
        ],
    }
    table(path, *lines[kind])
    first = made(f"Fix=replay:{path},speed=max", FIX)
    seen = [row[2] for row in rows(first, 0, limit=4)]
    position = first.sensor.position()
    rows(first, 0, limit=2)  # taken, and lost with the process
    second = made(f"Fix=replay:{path},speed=max", FIX)
    second.sensor.resume(position, 0)
    assert seen + [row[2] for row in rows(second, 0)] == [n + 0.5 for n in range(9)]


def test_the_time_during_which_nobody_played_does_not_count(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "at,amount", *[f"{n * 1_000_000},{n}" for n in range(5)])
    first = made(f"Reading=replay:{path}")
    rows(first, 1_000_000)
    second = made(f"Reading=replay:{path}")
    second.sensor.resume(first.sensor.position(), 900_000_000)
    assert second.sensor.due_us(OUTSIDE) == 900_000_000
    assert [row[1] for row in rows(second, 901_000_000)] == [2, 3]


def test_cells_may_hold_line_breaks_and_positions_are_still_right(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "at,amount,note", '1,1,"two\nlines, one cell"', "2,2,plain", "", "3,3,ü")
    first = made(f"Reading=replay:{path},speed=max")
    assert rows(first, 0, limit=1) == [(1, 1, "two\nlines, one cell")]
    second = made(f"Reading=replay:{path},speed=max")
    second.sensor.resume(first.sensor.position(), 0)
    assert rows(second, 0) == [(2, 2, "plain"), (3, 3, "ü")]


def test_a_record_that_cannot_be_read_is_told_and_the_next_one_follows(tmp_path: Path) -> None:
    told = Told()
    path = table(tmp_path / "r.csv", "at,amount", "1,1", "2", "when,3", "4,4")
    assert rows(made(f"Reading=replay:{path},speed=max", told=told), 0) == [(1, 1, ""), (4, 4, "")]
    assert [line.split(":")[1].strip() for line in told.lines] == [
        "it has 1 cells under 2 columns",
        "at is 'when', which is no instant (invalid cast)",
    ]
    path = table(tmp_path / "r.jsonl", '{"at": 1, "amount": 1}', "{", '{"amount": 3}', '{"at": 4, "amount": 4}')
    told = Told()
    assert rows(made(f"Reading=replay:{path},speed=max", told=told), 0) == [(1, 1, ""), (4, 4, "")]
    assert "it does not say when it was taken" in told.lines[1]


def test_a_track_that_breaks_off_plays_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "t.gpx"
    path.write_text(TRACK[: TRACK.index('<trkpt lat="up"')] + "<trkpt lat=")
    recording = open_recording(path)
    assert [recording.next() is not None for _ in range(2)] == [True, True]
    assert isinstance(recording.next(), Torn)
    assert recording.next() is None


def test_records_without_a_moment_follow_the_interval(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "amount", "1", "2", "3")
    paced = made(f"Reading=replay:{path},every=10s")
    assert not paced.sensor.recorded
    assert [row[1] for row in rows(paced, 0)] == [1]
    assert [row[1] for row in rows(paced, 25_000_000)] == [2, 3]


def test_sampled_leaves_out_what_the_rules_would_not_have_read(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "at,amount", *[f"{n * 1_000_000},{n}" for n in range(20)])
    rules = Sampling(2_000_000, (SlowDown(BATTERY_LOW.node, 3), SlowDown(FieldRef("indoors"), 0)))
    sampled = made(f"Reading=replay:{path},speed=max,sampled=true", sampling=rules)
    assert [row[1] for row in rows(sampled, 0, limit=3)] == [0, 2, 4]
    assert [row[1] for row in rows(sampled, 0, limit=2, around=Surroundings(battery_low=True))] == [10, 16]
    assert rows(sampled, 0, around=Surroundings(indoors=True)) == []
    assert sampled.sensor.ended


def test_columns_of_other_names_and_units_are_found(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "speed,when,count", "x,1.5,7")
    schema = Schema("R", (Column("at", INSTANT, event_time=True), Column("speed", STR), Column("n", INT)))
    named = made(f"R=replay:{path},speed=max,at=when,n=count,unit=s,field.speed=speed", schema)
    assert rows(named, 0) == [(1_500_000, "x", 7)]
    path = table(tmp_path / "g.csv", "datetime,lat,lng,ele", "2008-10-23 02:53:04,39.9,116.3,")
    assert rows(made(f"Fix=replay:{path},speed=max", FIX), 0) == [("ada", 1_224_730_384_000_000, 39.9, 116.3, None)]
