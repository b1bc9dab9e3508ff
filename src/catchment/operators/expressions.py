"""Expressions compiled to Python functions: what operators, the edge engine and batch loops on Spark run per element.

One expression becomes one function, a projection one function that builds the row, and a filter one that answers
True or False (null is False). An engine that fuses steps into a loop takes their source from `Emitter` instead. Over
two schemas the functions take the left and the right row. A row that fails raises `RowError`, and nothing else.

>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import FLOAT, Column
>>> fix = Schema("Fix", (Column("speed", FLOAT, nullable=True),))
>>> fast = Call("gt", (FieldRef("speed"), Literal(20.0, FLOAT)))
>>> compile_predicate(fast, (fix,))((25.0,)), compile_predicate(fast, (fix,))((None,))
(True, False)
>>> compile_row((FieldRef("speed"), fast), (fix,))((25.0,))
(25.0, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from catchment.operators.emission import Emitter, define
from catchment.program.nodes import FieldRef, Node
from catchment.program.returned import Functions
from catchment.program.types import Row, Schema

__all__ = ["Emitted", "Emitter", "compile_expression", "compile_predicate", "compile_row", "define", "emit"]


@dataclass(frozen=True, slots=True)
class Emitted:
    """Python source of one expression, and the objects that its free names stand for."""

    source: str
    bindings: dict[str, Any] = field(default_factory=dict)


def emit(
    node: Node,
    schemas: tuple[Schema, ...],
    functions: Functions | None = None,
    *,
    field: Callable[[FieldRef], str] | None = None,
    prefix: str = "t",
) -> Emitted:
    """One expression as source. For several in one loop use one `Emitter`, which shares what they have in common."""
    emitter = Emitter(schemas, functions, field, prefix)
    emitter.share(node)
    return Emitted(emitter.value(node), emitter.bindings)


def compile_expression(
    node: Node, schemas: tuple[Schema, ...], functions: Functions | None = None
) -> Callable[..., Any]:
    """A function from a row (of a join: from the left and the right row) to the value."""
    emitter = Emitter(schemas, functions)
    emitter.share(node)
    return _function(schemas, emitter.value(node), emitter)


def compile_row(
    columns: Sequence[Node], schemas: tuple[Schema, ...], functions: Functions | None = None
) -> Callable[..., Row]:
    """A function from a row to the row of these expressions' values."""
    emitter = Emitter(schemas, functions)
    emitter.share(*columns)
    return _function(schemas, "(" + "".join(f"{emitter.value(column)}, " for column in columns) + ")", emitter)


def compile_predicate(
    node: Node, schemas: tuple[Schema, ...], functions: Functions | None = None
) -> Callable[..., bool]:
    """A function from a row to whether the boolean is true."""
    emitter = Emitter(schemas, functions)
    emitter.share(node)
    nullable = emitter.analysis[node].nullable
    return _function(schemas, f"{emitter.truth(node)}{' is True' if nullable else ''}", emitter)


def _function(schemas: tuple[Schema, ...], source: str, emitter: Emitter) -> Callable[..., Any]:
    return define("left, right" if len(schemas) == 2 else "row", source, emitter.bindings)
