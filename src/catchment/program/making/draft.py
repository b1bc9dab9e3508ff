"""A step before it has a place: what it does, the fields that it gives, and the key that survives it."""

from __future__ import annotations

from typing import Any, NamedTuple

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.expression import Expr, literal
from catchment.program.nodes import FieldRef, Node, walk
from catchment.program.record import Record
from catchment.program.sampling import DEVICE_CONTEXT
from catchment.program.types import Schema


class Draft(NamedTuple):
    """What a stream makes a step of."""

    step: steps.Step
    schema: Schema
    keys: tuple[str, ...] = ()


class Given(NamedTuple):
    """The elements that a step is given: their fields and the key of the stream."""

    schema: Schema
    keys: tuple[str, ...]


def schema_of(record: type[Record] | None, at: SourceLine) -> Schema | None:
    """The fields of a record class, where one is given."""
    if record is None:
        return None
    if not (isinstance(record, type) and issubclass(record, Record)):
        raise ProgramError(
            "C286",
            f"{record!r} is not a record",
            why="what a step gives has the fields of a class that derives from cm.Record",
            fix="name such a class first, and computed fields by name: select(Speed, kmh=Fix.speed_mps * 3.6)",
            at=at,
        )
    return record.schema


def given_by(other: object, asked: str, at: SourceLine) -> Given:
    """What a further stream gives to a step."""
    given = getattr(other, "given", None)
    if not isinstance(given, Given):
        raise ProgramError(
            "C285",
            f"{asked} was given {other!r}, which is not a stream",
            why="it takes the elements of another stream beside those of this one",
            fix="name a stream: one that the function is given, or one that a step makes",
            at=at,
        )
    return given


def expression(value: Any, sides: tuple[Schema, ...], at: SourceLine) -> Node:
    """The node of an expression, a text of SQL, or a constant, over elements of these schemas."""
    if isinstance(value, str):
        from catchment.program.sql import parse  # sqlglot is loaded only where SQL is written

        known = {name.lower() for schema in sides for name in schema.names}
        if value.isidentifier() and value.lower() not in known | {"true", "false", "null"}:
            raise ProgramError(
                "C226",
                f"{value!r} is read as SQL, and there is no field of that name",
                why=f"a text beside expressions is SQL; the fields are: {', '.join(sorted(known)) or 'none'}",
                fix=f"name a field, or write \"'{value}'\" for the text itself",
                at=at,
            )
        return parse(value, sides, at)
    node = value.node if isinstance(value, Expr) else literal(value)
    device = next((n for n in walk(node) if isinstance(n, FieldRef) and n.record == DEVICE_CONTEXT.name), None)
    if device is not None and all(schema.name != DEVICE_CONTEXT.name for schema in sides):
        raise ProgramError(
            "C227",
            f"device.{device.name} is used outside of sampling",
            why="what a device knows of itself is asked when a sensor is read; no element carries it",
            fix=f"use it in the sensor's interval: adaptive(seconds(5), slow_down=4, when=device.{_said(device.name)})",
            at=at,
        )
    return node


def _said(name: str) -> str:
    return name.replace("battery_", "battery.")
