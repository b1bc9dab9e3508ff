"""Sensors: recordings at their pace, made-up values, the machine's figures, and what does not fit."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.device.sampling import Rate
from catchment.device.schedule import Schedule
from catchment.device.sensors.fitting import Fitting, Unfit
from catchment.device.sensors.generate import Generator
from catchment.device.sensors.machine import Machine
from catchment.device.sensors.named import Made, Surrounded, duration_of, make, parse
from catchment.device.sensors.polled import Polled
from catchment.device.sensors.recordings import Torn, open_recording
from catchment.device.surroundings import Surroundings
from catchment.errors import ProgramError
from catchment.program import steps
from catchment.program.nodes import Call, FieldRef, Literal
from catchment.program.sampling import BATTERY_LOW, DEVICE_CONTEXT, Sampling, SlowDown
from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    STR,
    Column,
    ListType,
    Schema,
)

OUTSIDE = Surroundings()
FIX = Schema(
    "Fix",
    (
        Column("user", STR, key=True, stamp="user"),
        Column("at", INSTANT, event_time=True),
        Column("lat_deg", FLOAT),
        Column("lon_deg", FLOAT),
        Column("elevation_m", FLOAT, nullable=True),
    ),
)
READING = Schema(
    "Reading",
    (Column("at", INSTANT, event_time=True), Column("amount", INT), Column("note", STR, default="", has_default=True)),
)
TRACK = """<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
<trkpt lat="46.5" lon="13.7"><ele>1614.6</ele><time>2024-05-01T10:00:00Z</time></trkpt>
<trkpt lat="46.6" lon="13.8"><time>2024-05-01T10:00:02.1234567Z</time></trkpt>
<trkpt lat="up" lon="13.9"><time>2024-05-01T10:00:03Z</time></trkpt>
<trkpt lat="46.8" lon="13.9"><time>2024-05-01T10:00:06+02:00</time></trkpt>
</trkseg></trk></gpx>"""
MAY_FIRST_US = 1_714_557_600_000_000


class Told:
    """Who is told what was left out."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def around(self, now_us: int = 0) -> Surrounded:
        return Surrounded("phone", "ada", now_us, self.lines.append)


def made(text: str, schema: Schema = READING, *, told: Told | None = None, sampling: Sampling | None = None) -> Made:
    return make(parse(text), schema, sampling, (told or Told()).around())


def rows(sensor: Made, now_us: int, limit: int = 100, around: Surroundings = OUTSIDE) -> list[Any]:
    taken = sensor.sensor.take(now_us, around, limit)
    return [sensor.fitting.row(r.values, now_us if r.at_us is None else r.at_us) for r in taken]


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# -- recordings --------------------------------------------------------------------------------------------------------


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


# -- fitting -----------------------------------------------------------------------------------------------------------

EVERY = Schema(
    "Every",
    (
        Column("at", INSTANT, event_time=True),
        Column("yes", BOOL),
        Column("raw", BYTES),
        Column("took", DURATION),
        Column("xs", ListType(FLOAT)),
        Column("device", STR, stamp="device"),
    ),
)


def test_values_become_what_the_field_is() -> None:
    fit = Fitting(EVERY, device="phone", user="ada", unit="ms")
    values = {"yes": "Yes", "raw": "00ff", "took": "1.5", "xs": [1, 2.5], "device": "somebody else"}
    assert fit.row(values, 9) == (9, True, b"\x00\xff", 1500, (1.0, 2.5), "phone")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"yes": "maybe"}, "yes is 'maybe'"),
        ({"raw": "xyz"}, "raw is 'xyz'"),
        ({"took": "soon"}, "took is 'soon'"),
        ({"took": True}, "took is True"),
        ({"xs": "1,2"}, "xs is '1,2'"),
        ({"xs": None}, "it has no xs"),
        ({"took": 1e300}, "took is 1e+300"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(change: dict[str, Any], why: str) -> None:
    fit = Fitting(EVERY, device="phone", user="ada")
    values = {"yes": True, "raw": b"", "took": 1, "xs": [], **change}
    with pytest.raises(Unfit, match="^" + why.replace("+", r"\+")):
        fit.row(values, 0)


@given(st.dictionaries(st.sampled_from(["at", "amount", "note"]), st.none() | st.text() | st.floats() | st.integers()))
def test_no_value_whatever_breaks_a_device(values: dict[str, Any]) -> None:
    fit = Fitting(READING, device="phone", user="ada")
    try:
        at_us = fit.moment(values)
        row = fit.row(values, at_us or 0)
    except Unfit:
        return
    assert all(isinstance(value, kind) for value, kind in zip(row, (int, int, str), strict=True))


# -- made-up values, and the machine's ---------------------------------------------------------------------------------


def test_a_generator_gives_the_same_values_in_every_run_and_from_every_position() -> None:
    schema = Schema("W", (Column("n", INT), Column("v", FLOAT), Column("w", STR), Column("b", BOOL)))
    one, other = Generator(schema, seed=4, low=-5, high=5, count=200), Generator(schema, seed=4, low=-5, high=5)
    values = [one.read(0) for _ in range(200)]
    other.resume(b"150")
    assert [other.read(0) for _ in range(50)] == values[150:]
    assert one.spent
    assert one.read(0) is None
    floats = [value["v"] for value in values if value is not None]
    assert -5 <= min(floats) < -3 < 3 < max(floats) <= 5
    assert Generator(schema, seed=5).read(0) != Generator(schema, seed=4).read(0)


def test_the_machines_figures_are_read_by_name(tmp_path: Path) -> None:
    for name, text in {
        "proc/loadavg": "0.42 0.36 0.29 1/123 4567",
        "proc/meminfo": "MemTotal:  1000 kB\nMemAvailable:  250 kB\n",
        "proc/uptime": "350735.47 234388.90",
        "sys/class/thermal/thermal_zone0/temp": "48312\n",
        "sys/class/power_supply/BAT0/capacity": "37\n",
        "sys/class/power_supply/BAT0/status": "Discharging\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    names = ["load_1_min", "memory_free_bytes", "uptime_s", "temperature_celsius", "battery_level", "battery_charging"]
    schema = Schema("M", tuple(Column(name, FLOAT, nullable=True) for name in names))
    read = Machine(schema, root=tmp_path).read(0)
    assert read is not None
    assert list(read.values()) == [0.42, 256_000, 350735.47, 48.312, 0.37, False]
    bare = Machine(schema, root=tmp_path / "nothing").read(0)
    assert bare is not None
    assert set(bare.values()) == {None}


def test_a_figure_that_no_machine_has_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"D623.*'mood' for M") as refused:
        Machine(Schema("M", (Column("mood", FLOAT),)))
    assert "load_1_min" in refused.value.why


# -- polling and its rules ---------------------------------------------------------------------------------------------


class Counter:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def read(self, at_us: int) -> dict[str, int] | None:
        self.asked.append(at_us)
        return {"amount": len(self.asked)}


def test_rules_stretch_and_pause_and_the_cadence_comes_back() -> None:
    rules = Sampling(10, (SlowDown(BATTERY_LOW.node, 4), SlowDown(FieldRef("indoors"), 0)))
    probe = Counter()
    sensor = Polled(probe, Rate(rules), now_us=0)
    for now_us in range(0, 200, 5):
        around = Surroundings(battery_low=50 <= now_us < 100, indoors=100 <= now_us < 150)
        sensor.take(now_us, around, 1)
    assert probe.asked == [0, 10, 20, 30, 40, 80, 150, 160, 170, 180, 190]


def test_a_cadence_survives_a_restart_but_not_another_boot() -> None:
    sensor = Polled(Counter(), Rate(Sampling(60)), now_us=5)
    sensor.take(5, OUTSIDE, 1)
    again = Polled(Counter(), Rate(Sampling(60)), now_us=20)
    again.resume(sensor.position(), 20)
    assert again.due_us(OUTSIDE) == 65
    rebooted = Polled(Counter(), Rate(Sampling(60)), now_us=1)
    rebooted.resume(sensor.position(), 1)
    assert rebooted.due_us(OUTSIDE) == 1


def test_a_rule_that_cannot_be_computed_holds_nothing_up() -> None:
    # 1 / battery_level fails at zero.
    rule = Call("gt", (Call("div", (Literal(1.0, FLOAT), FieldRef("battery_level"))), Literal(2.0, FLOAT)))
    rate = Rate(Sampling(10, (SlowDown(rule, 3),)))
    assert rate.interval_us(Surroundings(battery_level=0.25)) == 30
    assert rate.interval_us(Surroundings(battery_level=0.0)) == 10
    assert [column.name for column in DEVICE_CONTEXT.fields] == [
        "battery_level",
        "battery_low",
        "indoors",
        "connected",
        "metered",
        "pressure",
    ]


# -- sensors by name, and a plan's -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["gps", "gps=", "=replay:x.csv", "gps=telepathy", "gps=replay:x.csv,y.csv"],
)
def test_what_is_no_sensor_is_refused(text: str) -> None:
    with pytest.raises(ProgramError, match="D625"):
        parse(text)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("speed=0", "speed=0 plays nothing"),
        ("speed=quick", "quick"),
        ("times=sometimes", "times=sometimes is neither"),
        ("sampled=perhaps", "sampled=perhaps is neither"),
        ("then=what", "then=what is neither"),
        ("unit=years", "unit=years is none of"),
        ("every=often", "'often' is no length of time"),
        ("colour=red", "'colour' is no option of replay, and no field of Reading"),
    ],
)
def test_an_option_that_says_nothing_is_refused(tmp_path: Path, options: str, why: str) -> None:
    path = table(tmp_path / "r.csv", "at,amount", "1,1")
    with pytest.raises(ProgramError, match="D625") as refused:
        made(f"Reading=replay:{path},{options}")
    assert why in refused.value.why


def test_a_recording_that_cannot_be_played_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    table(tmp_path / "notes.txt", "hello")
    table(tmp_path / "page.gpx", "<html></html>")
    with pytest.raises(ProgramError, match="D620"):
        open_recording(tmp_path / "notes.txt")
    for name in ("missing.csv", "empty.csv", "page.gpx"):
        with pytest.raises(ProgramError, match="D621"):
            open_recording(tmp_path / name)


def test_another_file_in_the_place_of_the_recording_is_noticed(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "at,amount", *[f"{n},{n}" for n in range(50)])
    first = made(f"Reading=replay:{path},speed=max")
    rows(first, 0, limit=40)
    table(path, "at,amount", "1,1")
    second = made(f"Reading=replay:{path},speed=max")
    with pytest.raises(ProgramError, match="D622"):
        second.sensor.resume(first.sensor.position(), 0)


def test_a_sensor_of_ones_own_is_made_by_its_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("vendor_of_a_test")
    module.open = lambda schema, port="": Counter()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vendor_of_a_test", module)
    own = made("Reading=python:vendor_of_a_test:open,port=7,power=gps", sampling=Sampling(10))
    assert rows(own, 0) == [(0, 1, "")]
    assert own.power == "gps"
    with pytest.raises(ProgramError, match="D624"):
        made("Reading=python:nowhere_at_all:open")


def test_a_time_on_the_command_line_is_read_or_refused() -> None:
    assert duration_of("--poll", "2min") == 120_000_000
    with pytest.raises(ProgramError, match="D628"):
        duration_of("--poll", "soon")


def schedule(sources: dict[str, steps.Step], *texts: str, told: list[tuple[str, str, str]] | None = None) -> Schedule:
    heard = told if told is not None else []
    return Schedule(
        sources,
        [parse(text) for text in texts],
        Told().around(),
        lambda *words: heard.append(words),
    )


def test_every_sensor_of_a_plan_has_one_that_reads_it() -> None:
    sources: dict[str, steps.Step] = {"a/sensor": steps.Sensor(READING, "meter"), "b/append": steps.Append(FIX)}
    with pytest.raises(ProgramError, match="D627") as missing:
        schedule(sources)
    assert "--sensor meter=" in missing.value.fix
    with pytest.raises(ProgramError, match="D626") as stray:
        schedule(sources, "meter=generate", "compass=generate")
    assert "Fix, meter" in stray.value.why
    assert schedule(sources, "meter=generate").steps == ("a/sensor",)


def test_a_timer_beats_by_itself() -> None:
    beats = schedule({"t/timer": steps.Timer(Schema("Beat", (Column("at", INSTANT, event_time=True),)), 30)})
    assert [reading.row(7) for reading in beats.take(0, OUTSIDE, 9)] == [(7,)]
    assert beats.due_us(OUTSIDE) == 30


def test_a_sensor_that_fails_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def read(self, at_us: int) -> dict[str, int]:
            raise OSError("the wire is loose")

    module = ModuleType("broken_in_a_test")
    module.open = lambda schema: Broken()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "broken_in_a_test", module)
    told: list[tuple[str, str, str]] = []
    both = schedule(
        {"a/sensor": steps.Sensor(READING, "broken"), "b/sensor": steps.Sensor(READING, "meter")},
        "broken=python:broken_in_a_test:open",
        "meter=generate",
        told=told,
    )
    assert [reading.step for reading in both.take(0, OUTSIDE, 9)] == ["b/sensor"]
    assert told == [("sensor failed", "a/sensor", "OSError: the wire is loose")]
