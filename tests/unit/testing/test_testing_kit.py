"""The kit for tests of programs: histories, devices on cue, runs, and mistakes with repairs that work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import catchment as cm
from catchment.errors import ProgramError
from catchment.plan.history import Element, Presence, Progress, Source, Tick
from catchment.testing import END, Device, History, alone, engines, register, run
from catchment.testing.engines import RESTART, begin


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float | None] = cm.field(default=None)


class Ping(cm.Record):
    device: cm.Field[str] = cm.key(stamp="device")
    at: cm.Field[cm.Instant] = cm.event_time()


def fix(at: int, user: str = "ada", speed_mps: float | None = None) -> Fix:
    return Fix(user=user, at=cm.Instant(at), speed_mps=speed_mps)


def counts() -> cm.Program:
    return alone(lambda fixes: fixes.key_by(Fix.user).window(cm.tumble(10)).agg(n=cm.count()), fixes=Fix)


def two_sources() -> cm.Program:
    return alone(lambda fixes, pings: fixes.where(Fix.speed_mps > 1), fixes=Fix, pings=Ping)


def refused(code: str, mistake: Callable[[], Any]) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        mistake()
    assert caught.value.code == code
    return caught.value


ADA = Source("ada-1", "ada")


def test_a_punctual_source_promises_the_time_of_each_reading() -> None:
    history = History(counts()).send(fix(5), {"user": "ada", "at": 7, "speed_mps": 3}).late(fix(6))
    assert list(history) == [
        Element("fixes/append", 5, ADA, ("ada", 5, None)),
        Progress("fixes/append", ADA, 5),
        Element("fixes/append", 7, ADA, ("ada", 7, 3.0)),
        Progress("fixes/append", ADA, 7),
        Element("fixes/append", 6, ADA, ("ada", 6, None)),
    ]


def test_the_clock_moves_only_when_it_is_told_to() -> None:
    history = History(counts()).send(fix(5)).quiet(30).jump(-20).tick(100)
    assert [entry for entry in history if isinstance(entry, Tick)] == [Tick(5), Tick(35), Tick(15), Tick(100)]


def test_presence_promises_and_ends() -> None:
    history = History(counts()).send(fix(5)).offline("ada-1").online("ada-1").promise(9).end("ada-1").restart()
    assert list(history)[2:] == [
        Presence(ADA, 5),
        Presence(ADA, None),
        Progress("fixes/append", ADA, 9),
        Progress("fixes/append", ADA, END),
        RESTART,
    ]


def test_a_source_is_who_the_stamped_fields_say_it_is() -> None:
    history = (
        History(two_sources()).send({"device": "lamp", "at": 1}, to="pings").send(fix(2), to="fixes", device="lamp")
    )
    assert [entry.source for entry in history if isinstance(entry, Element)] == [
        Source("lamp", None),
        Source("lamp", "ada"),
    ]
    unowned = alone(lambda knocks: knocks, knocks=cm.Beat)
    assert next(iter(History(unowned).send({"at": 1}))) == Element("knocks/append", 1, Source("device-1"), (1,))


def test_a_device_that_pauses_sends_afterwards_what_it_took() -> None:
    history = History(counts())
    phone = Device(history, "phone", owner="ada").takes(fix(1))
    phone.pauses().takes(fix(2))
    watch = Device(history, "watch", owner="ada").takes(fix(12))
    assert run(counts(), history)["alone"] == []
    phone.returns().takes(fix(11))
    watch.ends()
    ran = run(counts(), history)
    assert [(row["n"], row["window_end"]) for row in ran["alone"]] == [(2, 10)]
    assert ran.late("alone") == []


def test_a_device_that_crashes_is_away_and_its_outbox_is_not() -> None:
    history = History(counts())
    phone = Device(history, "phone", owner="ada").takes(fix(1)).crashes().takes(fix(3)).takes(fix(20))
    history.tick(10**12)
    assert run(counts(), history)["alone"] == []
    phone.returns()
    assert [row["n"] for row in run(counts(), history)["alone"]] == [2]


def test_a_run_is_asked_by_stream_by_step_and_by_delivery() -> None:
    program = cm.Program("speeds")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix).where(10 / Fix.speed_mps > 1)

    @program.stream(at=cm.CLOUD)
    def totals(fixes: cm.Stream[Fix]) -> Any:
        return fixes.key_by(Fix.user).state(n=cm.count())

    program.deliver(totals, by=cm.col("user"))
    program.sink(totals, "parquet", path="kept/")
    ran = run(program, [fix(1, speed_mps=2.0), fix(2, speed_mps=0.0), fix(3, "bob", speed_mps=3.0)])
    assert ran.records("fixes", Fix) == [fix(1, speed_mps=2.0), fix(3, "bob", speed_mps=3.0)]
    assert ran["totals"] == ran["deliver_totals"] == ran["parquet_totals"] == ran["deliver_totals/deliver"]
    assert ran["totals"] == [{"user": "ada", "at": 1, "n": 1}, {"user": "bob", "at": 3, "n": 1}]
    assert [result.source for result in ran.results("totals")] == [Source("", "ada"), Source("", "bob")]
    assert [(failure.step, failure.reason) for failure in ran.failures] == [("fixes/where", "division by zero")]


@pytest.mark.parametrize("engine", engines())
def test_a_run_may_be_restarted_anywhere(engine: str) -> None:
    history = History(counts()).send(fix(1)).restart().send(fix(2)).restart().end()
    assert [row["n"] for row in run(counts(), history, engine=engine)["alone"]] == [2]


def test_late_elements_of_either_side() -> None:
    program = alone(
        lambda fixes, others: fixes.key_by(Fix.user).zip(others.key_by(Fix.user), speed_mps=Fix.speed_mps),
        fixes=Fix,
        others=Fix,
    )
    history = History(program).send(fix(5), to="fixes").send(fix(5), to="others")
    history.late(fix(1), to="fixes").late(fix(2), to="others")
    ran = run(program, history)
    assert ([row["at"] for row in ran.late("alone")], [row["at"] for row in ran.late("alone", 1)]) == ([1], [2])


def test_a_reading_that_could_go_to_several_sources() -> None:
    history = History(two_sources())
    error = refused("T701", lambda: history.send(fix(1)))
    assert "fixes/append, pings/append" in error.why
    refused("T701", lambda: history.send(fix(1), to="nowhere"))
    history.send(fix(1), to=error.fix.rpartition("to=")[2].strip("'"))


def test_a_reading_that_does_not_fit_its_record() -> None:
    history = History(counts())
    assert "'speed'" in refused("T702", lambda: history.send({"user": "ada", "at": 1, "speed": 2})).why
    assert "lacks at" in refused("T702", lambda: history.send({"user": "ada"})).why
    assert "speed_mps" in refused("T702", lambda: history.send({"user": "ada", "at": 1, "speed_mps": "fast"})).why
    assert "Ping" in refused("T702", lambda: history.send(Ping(device="d", at=cm.Instant(1)))).why
    history.send({"user": "ada", "at": 1}).send(fix(2))


def test_a_device_that_goes_on_after_its_end() -> None:
    history = History(counts())
    phone = Device(history, "phone", owner="ada").takes(fix(1)).ends()
    refused("T703", lambda: phone.takes(fix(2)))
    Device(History(counts()), "phone", owner="ada").takes(fix(1)).pauses().takes(fix(2)).returns().ends()


def test_an_engine_that_is_not_there() -> None:
    refused("T704", lambda: run(counts(), [fix(1)], engine="steam"))
    register("steam", lambda graph: begin("reference", graph))
    assert run(counts(), [fix(1)], engine="steam")["alone"][0]["n"] == 1
    from catchment.testing.engines import _engines

    del _engines["steam"]


def test_a_stream_that_is_not_there_and_one_without_late_elements() -> None:
    ran = run(two_sources(), [])
    assert "alone" in refused("T710", lambda: ran["fast"]).why
    refused("T711", lambda: ran.late("alone"))
    assert ran["alone"] == []
    assert run(counts(), [fix(1)]).late("alone") == []
