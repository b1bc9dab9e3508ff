"""Types and schemas where they refuse what an engine, and not an author's program, asks of them."""

from __future__ import annotations

import pytest

from catchment.errors import ProgramError
from catchment.program.nodes import Call, FieldRef, UserCall
from catchment.program.returned import guarded
from catchment.program.types import FLOAT, INT, STR, Column, ListType, RecordType, Schema
from catchment.program.typing import infer

OLD = Schema("Fix", (Column("user", STR, key=True), Column("floor", INT)))


def refused(code: str) -> pytest.RaisesExc[ProgramError]:
    return pytest.raises(ProgramError, match=rf"\[{code}\]")


def test_a_position_is_of_a_field_that_is_there() -> None:
    assert OLD.position("floor") == 1
    with refused("C110"):
        OLD.position("depth_m")


def test_rows_of_another_schema_are_read_where_only_defaults_were_added() -> None:
    newer = Schema("Fix", (*OLD.fields, Column("city", STR, default="", has_default=True)))
    assert newer.adapt(OLD)(("ada", 3)) == ("ada", 3, "")
    with refused("C111"):
        Schema("Fix", (*OLD.fields, Column("city", STR))).adapt(OLD)
    with refused("C111"):
        Schema("Fix", (Column("user", STR), Column("floor", FLOAT))).adapt(OLD)


def heard(*fields: Column, many: bool) -> Schema:
    kind = RecordType(Schema("Hotspot", fields))
    return Schema("Scan", (Column("heard", ListType(kind) if many else kind, nullable=True),))


DBM, SSID = Column("dbm", FLOAT), Column("ssid", STR, nullable=True)
BAND = Column("band", STR, default="2.4 GHz", has_default=True)


@pytest.mark.parametrize("many", [False, True])
def test_a_nested_record_may_gain_a_field_with_a_default(many: bool) -> None:
    adapt = heard(BAND, DBM, SSID, many=many).adapt(heard(SSID, DBM, many=many))
    written, read = ("home", -60.0), ("2.4 GHz", -60.0, "home")
    assert adapt((None,)) == (None,)
    assert adapt(((written, None) if many else written,)) == ((read, None) if many else read,)


@pytest.mark.parametrize("many", [False, True])
def test_what_describes_a_nested_field_may_change_and_what_it_holds_may_not(many: bool) -> None:
    old, of = heard(DBM, SSID, many=many), "heard[]" if many else "heard"
    described = heard(Column("dbm", FLOAT, step=1.0, unit="dBm"), SSID, many=many)
    assert described.adapt(old)(("as it is",)) == ("as it is",)
    ways = {
        f"{of}.dbm was float and is int": (Column("dbm", INT), SSID),
        f"{of}.ssid may be null in what was written": (DBM, Column("ssid", STR)),
        f"{of}.floor is new and has no default": (DBM, SSID, Column("floor", INT)),
    }
    for reason, fields in ways.items():
        assert heard(*fields, many=many).difference(old) == reason


def test_a_function_of_another_version_is_not_guessed() -> None:
    with refused("C126"):
        infer(Call("cube", (FieldRef("floor"),)), (OLD,))


def test_a_declared_function_that_is_not_here_is_named() -> None:
    with refused("C130"):
        guarded(UserCall("peir:speed@0123456789ab", (FieldRef("floor"),), FLOAT), {})
