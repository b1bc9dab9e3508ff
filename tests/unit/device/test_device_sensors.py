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
from catchment.device.sensors.named import duration_of, parse
from catchment.device.sensors.polled import Polled
from catchment.device.sensors.recordings import open_recording
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
from tests.unit.device.sensor_bench import FIX, OUTSIDE, READING, Told, made, rows, table

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
