"""The author's surface, where it is not a mistake: names, keys, schemas, code by reference, parameters."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from catchment.errors import ProgramError
from catchment.plan.document import read, write
from catchment.program.function import declared, reference_to
from catchment.program.plain import plain
from catchment.program.process import Process
from catchment.program.stream import Stream
from tests.unit.program.typed_surface import Faster, Fix, Speed, fixes, program, types


def test_the_typed_sample_builds_and_survives_its_journey() -> None:
    plan = cm.build(program)
    assert read(write(plan)) == plan
    assert [part.name for part in plan.parts] == ["fixes@device", "speeds@cloud", "deliver_windows@device"]


def test_every_step_of_the_typed_sample_is_one_that_runs() -> None:
    types(source(Fix), source(Speed).key_by(Speed.user))


class City(cm.Record):
    name: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    people: cm.Field[int] = cm.field(step=1)


def source(record: type[Any]) -> Stream[Any]:
    return cm.DeviceSite().sensor(record)


def test_a_key_that_may_be_null_may_be_null_in_results() -> None:
    made = source(City).key_by(City.name).window(cm.tumble(60)).agg(n=cm.count())
    assert made.schema.column("name").nullable
    assert made.schema.names == ("name", "window_start", "window_end", "revision", "at", "n")


def test_a_step_given_as_an_int_is_the_same_schema_after_its_journey() -> None:
    program = cm.Program("cities")

    @program.stream(at=cm.DEVICE)
    def cities(device: cm.DeviceSite) -> cm.Stream[City]:
        return device.sensor(City)

    back = read(write(cm.build(program)))
    (vertex,) = back.parts[0].vertices
    assert vertex.schemas[0].fingerprint == City.schema.fingerprint


def test_a_pair_waits_for_one_s_own_devices_only_where_both_sides_are_stamped() -> None:
    class Named(cm.Record):
        user: cm.Field[str] = cm.key()
        at: cm.Field[cm.Instant] = cm.event_time()

    speeds, names = source(Speed).key_by(Speed.user), source(Named).key_by(Named.user)

    def scope(stream: Stream[Any]) -> Any:
        return getattr(stream.declared.step, "scope", None)

    assert scope(speeds.join(speeds, within=cm.tumble(60), kmh=Speed.kmh)) == "own"
    assert scope(speeds.join(names, within=cm.tumble(60), kmh=Speed.kmh)) == "all"
    assert scope(names.join(speeds, within=cm.tumble(60), user=Named.user)) == "all"


def test_late_elements_are_asked_of_the_result_whatever_record_it_was_given() -> None:
    made = source(Speed).key_by(Speed.user).window(cm.tumble(60)).agg(Speed, kmh=cm.max(Speed.kmh))
    assert made.late.schema == Speed.schema
    with pytest.raises(ProgramError, match="C210"):
        _ = made.late.late
    with pytest.raises(ProgramError, match="C210"):
        _ = made.late_right
    pairs = source(Fix).key_by(Fix.user).join(source(Speed).key_by(Speed.user), within=cm.tumble(60), kmh=Speed.kmh)
    assert (pairs.late.schema, pairs.late_right.schema) == (Fix.schema, Speed.schema)


def test_a_field_by_name_is_one_that_the_stream_has() -> None:
    made = source(Speed).select(fast=Speed.kmh > 100)
    assert repr(made["fast"].kind) == repr((Speed.kmh > 100).kind)
    with pytest.raises(ProgramError) as refused:
        _ = made["kmh"]
    assert refused.value.code == "C121"
    assert refused.value.at is not None
    assert refused.value.at.file == __file__


def test_a_stream_says_what_it_cannot_do_and_what_it_is_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'wehre'"):
        _ = fixes.wehre  # type: ignore[attr-defined]
    assert not hasattr(fixes, "collect")
    assert not hasattr(fixes, "process")
    assert not hasattr(fixes.window(cm.tumble(60)), "where")
    assert not hasattr(Fix, "depth_m")


def test_one_stream_in_two_programs_is_refused_whoever_owns_the_first() -> None:
    other = cm.Program("other")
    with pytest.raises(ProgramError, match="C224"):

        @other.stream(at=cm.DEVICE)
        def both(device: cm.DeviceSite) -> cm.Stream[Fix]:
            return device.sensor(Fix).union(fixes)


def test_what_a_refused_stream_made_is_forgotten() -> None:
    program = cm.Program("again")
    with pytest.raises(ProgramError, match="C121"):

        @program.stream(at=cm.DEVICE)
        def wrong(device: cm.DeviceSite) -> cm.Stream[Fix]:
            return device.sensor(Fix).where(cm.col("depth_m") > 1)

    @program.stream(at=cm.DEVICE)
    def right(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    assert [vertex.id for part in cm.build(program).parts for vertex in part.vertices] == ["right/sensor"]


def test_parameters_are_frozen_and_the_same_after_a_journey() -> None:
    class Near(cm.Process[Fix, Fix, State]):
        places: tuple[tuple[float, float], ...]
        names: dict[str, int] = {"home": 1}  # noqa: RUF012

        def on_element(self, element: Fix, state: State, context: cm.Context) -> list[Fix]:
            return []

    given: Any = [[46.0, 11.0]]
    near = Near(places=given)
    assert near.parameters == {"names": {"home": 1}, "places": ((46.0, 11.0),)}
    assert near.places == ((46.0, 11.0),)


class State(cm.State):
    n: int = 0


SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_what_is_plain_stays_as_it_is(value: Any) -> None:
    try:
        once = plain(value, "value")
    except ProgramError as refused:
        assert refused.code == "C274"
        assert "inf" in repr(value)
    else:
        assert plain(once, "value") == once


@pytest.mark.parametrize("value", [float("inf"), 2**53, {1: 2}, {1, 2}, b"x", object(), Fix])
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(ProgramError, match="C274"):
        plain([value], "value")


CODE = """
import catchment as cm


@cm.function
def doubled(x: float) -> float:
    return {factor} * x


class Outer:
    @staticmethod
    def inner(x: float) -> float:
        return x
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A module of an author's, as it is installed at a site; made again with other source."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(factor: str) -> Any:
        name = "installed_code"
        path = tmp_path / f"{name}.py"
        path.write_text(CODE.format(factor=factor))
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        import linecache

        linecache.checkcache(str(path))
        return importlib.import_module(name)

    return installed


def test_code_is_found_by_its_reference_and_held_to_its_hash(module: Callable[[str], Any]) -> None:
    reference = module("2").doubled.reference
    assert reference.startswith("installed_code:doubled@")
    # Elsewhere: another process, where nothing was declared yet.
    from catchment.program import function

    function._declared.pop(reference)
    assert declared(reference).body(3.0) == 6.0
    function._declared.pop(reference)
    module("3000")
    with pytest.raises(ProgramError) as refused:
        declared(reference)
    assert refused.value.code == "C143"
    assert reference.rpartition("@")[2] in refused.value.why


@pytest.mark.parametrize("name", ["no_such_package:f", "installed_code:missing", "installed_code:Outer.missing"])
def test_code_that_is_not_installed_is_named(module: Callable[[str], Any], name: str) -> None:
    module("2")
    with pytest.raises(ProgramError) as refused:
        declared(f"{name}@0123456789ab")
    assert refused.value.code == "C142"
    assert name.partition(":")[0] in refused.value.fix


def test_a_script_s_functions_belong_to_the_module_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(x: float) -> float:
        return x

    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/somewhere/peir.py", raising=False)
    monkeypatch.setattr(body, "__module__", "__main__")
    assert reference_to(body).startswith("peir:")


def test_a_process_is_what_it_says_it_is() -> None:
    assert issubclass(Faster, Process)
    assert Faster.runs_on == (cm.DEVICE, cm.REGION, cm.FLEET, cm.CLOUD)
    assert (Faster.element_type, Faster.output_type) == (Fix, Speed)
    with pytest.raises(ProgramError, match="C147"):

        class Nowhere(cm.Process[Fix, Fix, State]):
            runs_on = ()
