"""Fields that steps compute: their types, whether they fit the record that the author declared, and what windows add.

Everything here is about schemas; `stream` is what an author calls.
"""

from __future__ import annotations

import msgspec

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.nodes import FieldRef, Node, replace
from catchment.program.types import FLOAT, INSTANT, INT, NULL, Column, Schema
from catchment.program.typing import infer


def scope_of(
    schema: Schema, keys: tuple[str, ...], other: Schema | None = None, other_keys: tuple[str, ...] = ()
) -> steps.Scope:
    """Whose promises close a window of a stream: its own devices' where the key is a stamped field.

    Of a pair, where both sides say so: an unstamped side would never promise anything to a group of its own.
    """
    stamps = [schema.column(key).stamp for key in keys]
    if other is not None:
        theirs = [other.column(key).stamp for key in other_keys]
        stamps = [mine if mine == his else None for mine, his in zip(stamps, theirs, strict=True)]
    return "own" if any(stamp is not None for stamp in stamps) else "all"


def named_columns(given: dict[str, Node], sides: tuple[Schema, ...], at: SourceLine) -> tuple[steps.Named, ...]:
    """Expressions with the types that they give."""
    if not given:
        raise ProgramError(
            "C218",
            "select() computes nothing",
            why="an element has at least one field",
            fix="name one: select(x=...)",
            at=at,
        )
    found = []
    for name, node in given.items():
        typed = infer(node, sides, at)
        found.append(steps.Named(name, node, typed.type, typed.nullable))
    return tuple(found)


def conform(
    columns: tuple[steps.Named, ...], target: Schema | None, sides: tuple[Schema, ...], at: SourceLine
) -> Schema:
    """The schema of computed columns: the target's, if they fit it, or one of their own."""
    if target is None:
        return Schema("_".join(s.name for s in sides) + "_selected", tuple(_column(c, sides) for c in columns))
    known = {c.name: c for c in columns}
    for column in target.fields:
        given = known.pop(column.name, None)
        if given is None:
            if not column.has_default:
                raise ProgramError(
                    "C219",
                    f"{target.name}.{column.name} is not computed",
                    why="the record declares it without a default",
                    fix=f"add {column.name}=..., or give it a default on {target.name}",
                    at=at,
                )
        elif given.type not in (column.type, NULL) and (given.type, column.type) != (INT, FLOAT):
            raise ProgramError(
                "C220",
                f"{target.name}.{column.name} is a {column.type} and is given a {given.type}",
                why="a record's fields have the types it declares",
                fix=f"convert it, or declare {column.name} with the type that it has",
                at=at,
            )
        elif column.stamp is not None and not _vouched(given, column, sides):
            raise ProgramError(
                "C225",
                f"{target.name}.{column.name} is stamped, and is computed here",
                why=f"a gateway vouches for the {column.stamp}; a computed value would claim what nobody vouches for",
                fix=f"take it from a field with stamp={column.stamp!r}, or leave the stamp out of {target.name}",
                at=at,
            )
        elif given.nullable and not column.nullable:
            raise ProgramError(
                "C221",
                f"{target.name}.{column.name} may not be null, and this may be",
                why="what it is computed from may be null",
                fix=f"use .or_else(...), or declare {column.name}: cm.Field[... | None]",
                at=at,
            )
    if known:
        extra = next(iter(known))
        raise ProgramError(
            "C222",
            f"{target.name} has no field {extra!r}",
            why=f"its fields are: {', '.join(target.names)}",
            fix=f"declare it on {target.name}, or leave it out",
            at=at,
        )
    return target


def window_columns(schema: Schema, keys: tuple[str, ...]) -> tuple[Column, ...]:
    """What every window's result begins with: the key, the window, and its revision."""
    return (
        *key_columns(schema, keys),
        Column("window_start", INSTANT),
        Column("window_end", INSTANT),
        Column("revision", INT),
        at_column(),
    )


def at_column() -> Column:
    """When a result of a window or state happened."""
    return Column("at", INSTANT, event_time=True)


def key_columns(schema: Schema, keys: tuple[str, ...]) -> tuple[Column, ...]:
    """The fields of a key, as a result carries them."""
    return tuple(Column(c.name, c.type, nullable=c.nullable, key=True, stamp=c.stamp) for c in map(schema.column, keys))


def unlike(given: tuple[Column, ...], names: tuple[str, ...], at: SourceLine) -> None:
    """Refuses two fields of one name in a result."""
    taken = [column.name for column in given]
    twice = next((name for name in (*taken, *names) if (*taken, *names).count(name) > 1), None)
    if twice is not None:
        raise ProgramError(
            "C264",
            f"the result has two fields {twice!r}",
            why=f"a result begins with its key and what its step says of it: {', '.join(taken)}",
            fix=f"give yours another name, or rename {twice} with select(...) before this step",
            at=at,
        )


def plain_columns(fields: tuple[Column, ...]) -> tuple[Column, ...]:
    """Fields of an element that a result carries; the window's own take the place of those of their names."""
    return tuple(
        c for c in fields if not c.event_time and c.name not in ("window_start", "window_end", "revision", "at")
    )


def _vouched(given: steps.Named, column: Column, sides: tuple[Schema, ...]) -> bool:
    match given.value:
        case FieldRef(name, _, side):
            return sides[side].column(name).stamp == column.stamp
        case _:
            return False


def _column(named: steps.Named, sides: tuple[Schema, ...]) -> Column:
    match named.value:
        case FieldRef(name, _, side):
            old = sides[side].column(name)
            return Column(
                named.name,
                old.type,
                nullable=old.nullable,
                key=old.key,
                event_time=old.event_time and side == 0,
                step=old.step,
                unit=old.unit,
                stamp=old.stamp,
            )
        case _:
            return Column(named.name, named.type, nullable=named.nullable)


def surviving_keys(keys: tuple[str, ...], columns: tuple[steps.Named, ...]) -> tuple[str, ...]:
    """The key, if all of it is carried over unchanged."""
    kept = {c.name for c in columns if isinstance(c.value, FieldRef) and c.value.name == c.name}
    return keys if all(key in kept for key in keys) else ()


def by_name(target: Schema, sides: tuple[Schema, Schema]) -> dict[str, Node]:
    """Fields of a pair that a record takes by name, the left side first."""
    left, right = sides
    found: dict[str, Node] = {}
    for name in target.names:
        if name in left.names:
            found[name] = FieldRef(name, side=0)
        elif name in right.names:
            found[name] = FieldRef(name, side=1)
    return found


def sided(node: Node, sides: tuple[Schema, Schema], at: SourceLine) -> Node:
    """Fields named on the right record's class belong to the right side."""
    left, other = sides

    def place(found: Node) -> Node | None:
        if not isinstance(found, FieldRef) or found.side == 1:
            return None
        names_right = found.record == other.name and found.record != left.name
        only_right = found.record is None and found.name not in left.names and found.name in other.names
        return FieldRef(found.name, found.record, 1) if names_right or only_right else None

    return replace(node, place)


def outer_side(schema: Schema, optional: bool) -> Schema:
    """The schema of a side that may be absent: all its fields may be null."""
    if not optional:
        return schema
    return Schema(schema.name, tuple(msgspec.structs.replace(c, nullable=True) for c in schema.fields))


def check_keys(left: Schema, keys: tuple[str, ...], right: Schema, right_keys: tuple[str, ...], at: SourceLine) -> None:
    """Both sides of a pair must have keys of the same types."""
    if [left.column(k).type for k in keys] != [right.column(k).type for k in right_keys]:
        raise ProgramError(
            "C223",
            f"the keys differ: ({', '.join(keys)}) and ({', '.join(right_keys)})",
            why="elements are paired where their keys are equal, so both sides need keys of the same types",
            fix="key both by the same kind of field: a.key_by(A.user), b.key_by(B.user)",
            at=at,
        )
