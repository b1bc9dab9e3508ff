"""Types of expressions: what a node gives, given the schemas of what it reads. Refuses what no engine could run.

>>> from catchment.program.types import FLOAT, Column
>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> fix = Schema("Fix", (Column("speed", FLOAT, nullable=True),))
>>> infer(Call("lt", (FieldRef("speed"), Literal(3.0, FLOAT))), (fix,))
Typed(type=ScalarType(name='bool'), nullable=True)
"""

from __future__ import annotations

from catchment.errors import ProgramError, SourceLine
from catchment.program.functions import CASTS, FUNCTIONS, YIELDS_NULL, Typed
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall
from catchment.program.types import NULL, RecordType, ScalarType, Schema


def infer(node: Node, schemas: tuple[Schema, ...], at: SourceLine | None = None) -> Typed:
    """The type of an expression over elements of these schemas (the second one is a join's right side)."""
    match node:
        case Literal():
            return Typed(node.type, node.value is None)
        case FieldRef():
            return _field(node, schemas, at)
        case GetField():
            inner = infer(node.of, schemas, at)
            if not isinstance(inner.type, RecordType):
                raise ProgramError(
                    "C122",
                    f"{inner.type} has no field {node.name!r}",
                    why="only a nested record has fields",
                    fix="name a field of the stream's own record",
                    at=at,
                )
            column = inner.type.schema.column(node.name)
            return Typed(column.type, column.nullable or inner.nullable)
        case Cast():
            return _cast(node, infer(node.of, schemas, at), at)
        case UserCall():
            for arg in node.args:
                infer(arg, schemas, at)
            return Typed(node.result, node.nullable)
        case Call():
            return _call(node, tuple(infer(arg, schemas, at) for arg in node.args), at)


def _field(node: FieldRef, schemas: tuple[Schema, ...], at: SourceLine | None) -> Typed:
    if node.side >= len(schemas):
        raise ProgramError(
            "C123",
            f"{node.name} is asked of the right side, and there is none here",
            why="only a join has two sides",
            fix="use right() inside a join only",
            at=at,
        )
    schema = schemas[node.side]
    if node.record is not None and node.record != schema.name:
        raise ProgramError(
            "C120",
            f"{node.record}.{node.name} is used on a stream of {schema.name}",
            why=f"an element here has the fields of {schema.name}: {', '.join(schema.names)}",
            fix=f"use a field of {schema.name}, or keep {node.name} in the select before this step",
            at=at,
        )
    if node.name not in schema.names:
        raise ProgramError(
            "C121",
            f"{schema.name} has no field {node.name!r}",
            why=f"its fields are: {', '.join(schema.names) or 'none'}",
            fix="use one of them, or keep the field in the select before this step",
            at=at,
        )
    column = schema.column(node.name)
    return Typed(column.type, column.nullable)


def _cast(node: Cast, given: Typed, at: SourceLine | None) -> Typed:
    if given.type in (node.to, NULL):
        return Typed(node.to, given.nullable)
    names = (str(given.type), str(node.to))
    if names not in CASTS or not isinstance(node.to, ScalarType):
        possible = ", ".join(sorted(to for source, to in CASTS if source == names[0])) or "nothing"
        raise ProgramError(
            "C125",
            f"cannot convert {names[0]} to {names[1]}",
            why=f"{names[0]} converts to {possible} with the same meaning on every engine",
            fix="convert in two steps, or write a declared function",
            at=at,
        )
    return Typed(node.to, given.nullable)


def _call(node: Call, args: tuple[Typed, ...], at: SourceLine | None) -> Typed:
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise ProgramError(
            "C126",
            f"there is no function {node.function!r}",
            why="expressions are a closed set that every engine runs",
            fix="use a built-in, or declare a Python function with @function",
            at=at,
        )
    kind = function.rule(tuple(arg.type for arg in args))
    if kind is None:
        given = ", ".join(str(arg.type) for arg in args) or "nothing"
        raise ProgramError(
            "C124",
            f"{node.function.rstrip('_')} does not take {given}",
            why=f"it takes {function.takes}",
            fix="convert an argument with .cast(...), or use another field",
            at=at,
        )
    return Typed(kind, _nullable(node, args))


def _nullable(node: Call, args: tuple[Typed, ...]) -> bool:
    match node.function:
        case "is_null" | "same":
            return False
        case "coalesce":
            return all(arg.nullable for arg in args)
        case "if_":
            return args[1].nullable or args[2].nullable
        case "least" | "greatest":
            return all(arg.nullable for arg in args)
        case name:
            return name in YIELDS_NULL or any(arg.nullable for arg in args)


def step_of(node: Node, schema: Schema) -> float | None:
    """The resolution of an expression, where it is known: such values are summed exactly."""
    match node:
        case FieldRef():
            return schema.column(node.name).step if node.name in schema.names else None
        case Call("add" | "sub", (left, right)):
            steps = {step_of(left, schema), step_of(right, schema)}
            return steps.pop() if len(steps) == 1 else None
        case Call("neg" | "abs", (inner,)):
            return step_of(inner, schema)
        case _:
            return None
