"""Steps that treat each element by itself: where, select, map, flat_map, key_by, subscribe, union."""

from __future__ import annotations

from typing import Any

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.columns import conform, named_columns, surviving_keys
from catchment.program.expression import Expr
from catchment.program.function import Function, record_schema, require
from catchment.program.making.draft import Draft, Given, expression, given_by
from catchment.program.nodes import FieldRef, Node
from catchment.program.types import BOOL, FLOAT, NULL, Schema
from catchment.program.typing import infer


def where(given: Given, predicate: Any, at: SourceLine) -> Draft:
    """Keep the elements for which a boolean is true."""
    node = expression(predicate, (given.schema,), at)
    kind = infer(node, (given.schema,), at).type
    if kind not in (BOOL, NULL):
        raise ProgramError(
            "C200",
            f"where was given a value of type {kind}",
            why="a filter keeps the elements for which a boolean is true",
            fix="compare it with something: where(... > 0)",
            at=at,
        )
    return Draft(steps.Where(node), given.schema, given.keys)


def select(given: Given, target: Schema | None, columns: dict[str, Any], at: SourceLine) -> Draft:
    """New fields; those of the target that are not said are taken by name."""
    nodes = {name: expression(value, (given.schema,), at) for name, value in columns.items()}
    if target is not None:
        nodes = {**{name: FieldRef(name) for name in target.names if name in given.schema.names}, **nodes}
    return project(given, target, nodes, at)


def into(given: Given, target: Schema, at: SourceLine) -> Draft:
    """The fields of a record, taken by name; its event time is that of the element, whatever each calls it."""
    nodes: dict[str, Node] = {name: FieldRef(name) for name in target.names if name in given.schema.names}
    when, known = target.event_time, given.schema.event_time
    if when is not None and when not in nodes and known is not None:
        nodes[when] = FieldRef(known)
    return project(given, target, nodes, at)


def project(given: Given, target: Schema | None, nodes: dict[str, Node], at: SourceLine) -> Draft:
    """A select of these expressions, in the order of the target's fields."""
    columns = named_columns(nodes, (given.schema,), at)
    schema = conform(columns, target, (given.schema,), at)
    ordered = {column.name: column for column in columns}
    step = steps.Select(tuple(ordered[name] for name in schema.names if name in ordered), schema)
    return Draft(step, schema, surviving_keys(given.keys, step.columns))


def apply(given: Given, function: Any, at: SourceLine, *, many: bool) -> Draft:
    """A declared function of each element."""
    word = "flat_map" if many else "map"
    known = require(function, word)
    name = known.body.__name__
    takes = _taken(known)
    gives = record_schema(known.returns, f"the result of {name}")
    if known.many != many:
        raise ProgramError(
            "C201",
            f"{word} was given {name}, which gives {'many' if known.many else 'one'}",
            why="map gives one element for each, flat_map as many as the function lists",
            fix=f"use {'flat_map' if known.many else 'map'}",
            at=at,
        )
    if takes != given.schema or len(known.annotations) != 1:
        raise ProgramError(
            "C202",
            f"{name} takes {takes.name}, and the stream has {given.schema.name}",
            why="a function is given the elements of the stream it stands on, one at a time",
            fix=f"select({takes.name}, ...) first, or declare the function for {given.schema.name}",
            at=at,
        )
    return Draft(steps.Map(known.reference, gives, many), gives)


def _taken(known: Function[Any, Any]) -> Schema:
    first = known.annotations[0] if known.annotations else None
    return record_schema(first, f"the parameter of {known.body.__name__}")


def union(schema: Schema, others: tuple[object, ...], at: SourceLine) -> Draft:
    """The elements of all."""
    if not others:
        raise ProgramError(
            "C228",
            "union() has nothing to unite",
            why="it gives the elements of this stream and of the others",
            fix="name another stream: a.union(b)",
            at=at,
        )
    for other in [given_by(each, "union", at).schema for each in others]:
        if other.fingerprint != schema.fingerprint:
            raise ProgramError(
                "C203",
                f"union of {schema.name} and {other.name}: {_difference(schema, other)}",
                why="a stream holds elements of one record",
                fix="select(SomeRecord, ...) into the same record on both sides first",
                at=at,
            )
    return Draft(steps.Union(), schema)


def _difference(one: Schema, other: Schema) -> str:
    if one.names != other.names:
        return f"({', '.join(one.names)}) and ({', '.join(other.names)})"
    for mine, theirs in zip(one.fields, other.fields, strict=True):
        for word in ("type", "nullable", "step"):
            if getattr(mine, word) != getattr(theirs, word):
                return f"{mine.name} has {word} {getattr(mine, word)} and {getattr(theirs, word)}"
    return "their names differ"


def key_by(given: Given, keys: tuple[Any, ...], at: SourceLine) -> Draft:
    """Say which fields are the key."""
    names = tuple(_key(given.schema, key, at) for key in keys)
    if not names:
        raise ProgramError(
            "C206",
            "key_by() names no field",
            why="a keyed stream has state for each value of its key",
            fix="name a field: key_by(Fix.user)",
            at=at,
        )
    owner = next((name for name in names if given.schema.column(name).stamp is not None), None)
    return Draft(steps.KeyBy(names, owner), given.schema, names)


def _key(schema: Schema, key: Any, at: SourceLine) -> str:
    node = expression(key, (schema,), at) if isinstance(key, Expr | str) else None
    if not isinstance(node, FieldRef):
        raise ProgramError(
            "C204",
            f"key_by was given {'an expression' if isinstance(key, Expr) else repr(key)}, not a field",
            why="a key is a field, so that it has a name where the results go",
            fix="compute it with select(name=...) first, then key_by(that field)",
            at=at,
        )
    if infer(node, (schema,), at).type == FLOAT:
        raise ProgramError(
            "C205",
            f"{node.name} is a float and cannot be a key",
            why="two floats that should be the same key may differ in the last bit",
            fix="round it to whole steps with floor(...).cast(int), or key by another field",
            at=at,
        )
    return node.name


def subscribe(given: Given, function: Any, at: SourceLine) -> Draft:
    """Call a declared function with each element."""
    known = require(function, "subscribe")
    takes = record_schema(
        known.annotations[0] if known.annotations else None, f"the parameter of {known.body.__name__}"
    )
    if takes != given.schema or len(known.annotations) != 1:
        raise ProgramError(
            "C229",
            f"{known.body.__name__} is told of {takes.name}, and the stream has {given.schema.name}",
            why="a subscriber is called with each element of the stream that it subscribes to",
            fix=f"declare it as def {known.body.__name__}(element: {given.schema.name}) -> None",
            at=at,
        )
    return Draft(steps.Subscribe(known.reference), given.schema, given.keys)
