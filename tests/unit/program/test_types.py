"""Types and schemas where they refuse what an engine, and not an author's program, asks of them."""

from __future__ import annotations

import pytest

from catchment.errors import ProgramError
from catchment.program.nodes import Call, FieldRef, UserCall
from catchment.program.returned import guarded
from catchment.program.types import FLOAT, INT, STR, Column, Schema
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


def test_a_function_of_another_version_is_not_guessed() -> None:
    with refused("C126"):
        infer(Call("cube", (FieldRef("floor"),)), (OLD,))


def test_a_declared_function_that_is_not_here_is_named() -> None:
    with refused("C130"):
        guarded(UserCall("peir:speed@0123456789ab", (FieldRef("floor"),), FLOAT), {})
