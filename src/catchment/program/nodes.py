"""Expressions as data: a small, frozen, closed set of nodes that every site runs and the planner sees through.

Nodes compare and hash by structure, so a common sub-expression is simply an equal node. What a `Call` may name,
and what it means for nulls and numbers, is in `functions`; what an author writes is in `expression`.

>>> from catchment.program.types import FLOAT
>>> low = Call("lt", (FieldRef("level"), Literal(0.2, FLOAT)))
>>> sorted(fields(low))
['level']
>>> replace(low, lambda node: Literal(0.1, FLOAT) if node == FieldRef("level") else None).args[0].value
0.1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from catchment.program.types import DataType


class Literal(msgspec.Struct, frozen=True, tag_field="node", tag="literal"):
    """A constant. It carries its type, because 1, 1.0 and True are equal in Python and must not be here.

    NaN and the infinities are calls (`nan()`, `infinity()`), and bytes are `unhex(text)`: JSON has none of them.
    """

    value: bool | int | float | str | None
    type: DataType


class FieldRef(msgspec.Struct, frozen=True, tag_field="node", tag="field", omit_defaults=True):
    """A field of the input element. `record` is the class it was named on; `side` 1 is a join's right element."""

    name: str
    record: str | None = None
    side: int = 0


class GetField(msgspec.Struct, frozen=True, tag_field="node", tag="get"):
    """A field of a nested record."""

    of: Node
    name: str


class Call(msgspec.Struct, frozen=True, tag_field="node", tag="call"):
    """A built-in function (operators are functions too)."""

    function: str
    args: tuple[Node, ...]


class Cast(msgspec.Struct, frozen=True, tag_field="node", tag="cast"):
    """A conversion that fails, rather than guess, where the value does not fit."""

    of: Node
    to: DataType


class UserCall(msgspec.Struct, frozen=True, tag_field="node", tag="user"):
    """A declared Python function, named as `package:function@hash`."""

    function: str
    args: tuple[Node, ...]
    result: DataType
    nullable: bool = False


Node: TypeAlias = Literal | FieldRef | GetField | Call | Cast | UserCall


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Call() | UserCall():
            return node.args
        case Cast() | GetField():
            return (node.of,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def fields(node: Node, side: int = 0) -> frozenset[str]:
    """Names of the fields that the expression reads from one side."""
    return frozenset(n.name for n in walk(node) if isinstance(n, FieldRef) and n.side == side)


def replace(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The expression with each node for which `change` answers put in place of the old, from the top down."""
    new = change(node)
    if new is not None:
        return new
    match node:
        case Call():
            return Call(node.function, tuple(replace(arg, change) for arg in node.args))
        case UserCall():
            return msgspec.structs.replace(node, args=tuple(replace(arg, change) for arg in node.args))
        case Cast():
            return Cast(replace(node.of, change), node.to)
        case GetField():
            return GetField(replace(node.of, change), node.name)
        case _:
            return node
