"""A plan survives its JSON, is the same bytes each time, and what is no plan is refused with what to do."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.plan.document import read, write
from catchment.plan.graph import graph_of
from catchment.plan.physical import Plan
from catchment.plan.place import place
from catchment.plan.portable import incoming, outgoing
from catchment.program import steps
from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    STR,
    Column,
    DataType,
    ListType,
    RecordType,
    Schema,
)
from tests.unit.plan.programs import everything, peir


@pytest.fixture(scope="module")
def plan() -> Plan:
    return place(graph_of(everything()))


def test_a_plan_is_read_as_it_was_written(plan: Plan) -> None:
    assert read(write(plan)) == plan


def test_a_plan_is_the_same_bytes_each_time(plan: Plan) -> None:
    assert write(read(write(plan))) == write(plan) == write(place(graph_of(everything())))
    assert plan.fingerprint == read(write(plan)).fingerprint != place(graph_of(peir())).fingerprint


def test_every_kind_of_step_is_in_the_plan_that_these_tests_write(plan: Plan) -> None:
    kinds = {type(vertex.step) for part in plan.parts for vertex in part.vertices}
    missing = {kind.__name__ for kind in steps.Step.__args__} - {kind.__name__ for kind in kinds}
    assert missing <= {"Moved", "Deliver"}, missing  # in the other program


def test_json_holds_no_number_that_a_browser_would_misread(plan: Plan) -> None:
    def numbers(tree: Any) -> list[int | float]:
        match tree:
            case dict():
                return [number for value in tree.values() for number in numbers(value)]
            case list():
                return [number for value in tree for number in numbers(value)]
            case bool() | str() | None:
                return []
            case _:
                return [tree]

    tree = json.loads(write(plan), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert all(math.isfinite(n) and abs(n) < 2**53 for n in numbers(tree))
    assert b'"1152921504606846976"' in write(plan)  # 2**60, as its digits
    assert b'"-Infinity"' in write(plan)


def test_the_folders_of_the_author_are_not_in_the_plan(plan: Plan) -> None:
    files = {vertex.line.file for part in plan.parts for vertex in part.vertices}
    assert files == {"programs.py"}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"", "C310"),
        (b"[]", "C310"),
        (b'{"program": "peir"}', "C310"),
        (b'{"format": "other", "version": 1}', "C310"),
        (b'{"format": "catchment-plan", "version": 2}', "C311"),
        (b'{"format": "catchment-plan", "version": 1}', "C312"),
    ],
)
def test_what_is_no_plan_is_refused(document: bytes, code: str) -> None:
    with pytest.raises(ProgramError) as refused:
        read(document)
    assert refused.value.code == code


def test_a_later_format_says_which_one_is_read_here() -> None:
    with pytest.raises(ProgramError, match="reads formats up to 1"):
        read(b'{"format": "catchment-plan", "version": 7, "new": {}}')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"source":["fixes/moved",0]', '"source":["fixes/gone",0]'),
        ('"inputs":[["fixes/sensor",0]]', '"inputs":[["fixes/sensor",1]]'),
        ('"outputs":["fixes"]', '"outputs":["other"]'),
        ('"schema":"', '"schema":"0'),
        ('"step":"where"', '"step":"whither"'),
        ('"within":60000000', '"within":"a minute"'),
    ],
)
def test_a_damaged_plan_is_refused(old: str, new: str) -> None:
    document = write(place(graph_of(peir()))).decode()
    assert old in document
    with pytest.raises(ProgramError) as refused:
        read(document.replace(old, new))
    assert refused.value.code == "C312"


def test_a_field_that_a_later_minor_version_adds_is_passed_over() -> None:
    document = json.loads(write(place(graph_of(peir()))))
    document["parts"][0]["comment"] = "new"
    assert read(json.dumps(document)) == place(graph_of(peir()))


def test_a_device_reads_its_part_without_the_author_s_module(plan: Plan) -> None:
    reading = (
        "import sys\n"
        "from catchment.plan.document import read\n"
        "plan = read(sys.stdin.buffer.read())\n"
        "print([part.name for part in plan.at('device')], 'tests.unit.plan.programs' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", reading], input=write(plan), capture_output=True, check=True)
    assert done.stdout.decode().strip() == "['fixes@device'] False"


SCALARS = {
    BOOL: st.booleans(),
    INT: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(),
    STR: st.text(),
    BYTES: st.binary(),
    INSTANT: st.integers(-(2**63), 2**63 - 1),
    DURATION: st.integers(-(2**63), 2**63 - 1),
}
TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(list(SCALARS)),
    lambda inner: st.one_of(
        inner.map(ListType),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: RecordType(Schema("R", tuple(Column(f"f{n}", kind) for n, kind in enumerate(kinds))))
        ),
    ),
    max_leaves=4,
)


def values(kind: DataType) -> st.SearchStrategy[Any]:
    match kind:
        case ListType(element):
            return st.lists(values(element), max_size=3).map(tuple)
        case RecordType(schema):
            return st.tuples(*(values(column.type) for column in schema.fields))
        case _:
            return st.none() | SCALARS[kind]


@given(st.data())
def test_any_value_survives_json(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    value = data.draw(values(kind))
    back = incoming(msgspec.json.decode(msgspec.json.encode(outgoing(value, kind))), kind)
    assert repr(back) == repr(value)  # NaN is itself, -0.0 is not 0.0, True is not 1
