"""Golden vectors: what each function and each cast gives, as data that every engine is held to.

A file names a function or a cast and says what it means; its cases give types, and rows of arguments with what they
give: a value, null, or the reason why the row fails. Text stands for an instant (RFC 3339) and for bytes (hexadecimal),
since neither has a form of its own in YAML. `ulps` or `relative` is how far engines may be from a float, where the last
digits depend on their mathematics library.

>>> data_type("list[int]")
ListType(element=ScalarType(name='int'))
>>> agrees(0.0, -0.0), agrees(float("nan"), float("nan")), agrees(1, True)
(False, True, False)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catchment.program.nodes import Call, Cast, FieldRef, Literal, Node
from catchment.program.types import BYTES, Column, DataType, ListType, Row, ScalarType, Schema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Vector:
    """One row of arguments and what it gives: `fails` names a reason, or is None where `value` is the answer."""

    args: Row
    value: Any
    fails: str | None

    def __str__(self) -> str:
        return f"{self.args} {'fails: ' + self.fails if self.fails else f'is {self.value!r}'}"


@dataclass(frozen=True, slots=True)
class Case:
    """Vectors of one signature."""

    name: str
    takes: tuple[DataType, ...]
    gives: DataType
    vectors: tuple[Vector, ...]
    ulps: int
    relative: float

    @property
    def schema(self) -> Schema:
        """A record with the arguments as fields `a0`, `a1`, …, all of which may be null."""
        return Schema("Args", tuple(Column(f"a{i}", kind, nullable=True) for i, kind in enumerate(self.takes)))

    @property
    def node(self) -> Node:
        """The function or cast over those fields."""
        return self.over(tuple(FieldRef(name) for name in self.schema.names))

    def over(self, args: tuple[Node, ...]) -> Node:
        """The function or cast over any expressions of the types that it takes."""
        return Call(self.name, args) if not self.name.startswith("cast_") else Cast(args[0], self.gives)

    def constant(self, vector: Vector) -> Node | None:
        """The function over the vector's arguments as constants; None where one of them has no constant form."""
        args = tuple(_constant(value, kind) for value, kind in zip(vector.args, self.takes, strict=True))
        known = tuple(arg for arg in args if arg is not None)
        return self.over(known) if len(known) == len(args) else None

    def accepts(self, vector: Vector, value: Any) -> bool:
        """Whether an engine's value is the vector's."""
        if isinstance(vector.value, float) and isinstance(value, float) and (self.ulps or self.relative):
            bound = max(self.ulps * math.ulp(vector.value), self.relative * abs(vector.value))
            return agrees(vector.value, value) or abs(value - vector.value) <= bound
        return agrees(vector.value, value)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.takes))})"


@dataclass(frozen=True, slots=True)
class Golden:
    """One file: a function or a cast, what it means in a sentence or two, and its cases."""

    name: str
    about: str
    cases: tuple[Case, ...]


def load(folder: Path) -> Iterator[Golden]:
    """All files of the folder, in order of their names. Needs PyYAML."""
    import yaml

    for path in sorted(folder.glob("*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        name = content["function"] if "function" in content else f"cast_{content['cast'][0]}_to_{content['cast'][1]}"
        yield Golden(name, content["about"], tuple(_case(name, case) for case in content["cases"]))


def _case(name: str, content: dict[str, Any]) -> Case:
    takes = tuple(data_type(kind) for kind in content["takes"])
    gives = data_type(content["gives"])
    vectors = tuple(
        Vector(
            tuple(_value(value, kind) for value, kind in zip(row["of"], takes, strict=True)),
            _value(row["is"], gives) if "is" in row else None,
            row.get("fails"),
        )
        for row in content["rows"]
    )
    return Case(name, takes, gives, vectors, content.get("ulps", 0), content.get("relative", 0.0))


def data_type(name: str) -> DataType:
    """The type of that name."""
    if name.startswith("list["):
        return ListType(data_type(name[5:-1]))
    return ScalarType(name)


def _value(value: Any, kind: DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, ListType):
        return tuple(_value(item, kind.element) for item in value)
    match str(kind), value:
        case "instant", str():
            return (datetime.fromisoformat(value) - _EPOCH) // timedelta(microseconds=1)
        case "bytes", str():
            return bytes.fromhex(value)
        case "float", float():
            return value
        case "float", _:
            raise ValueError(f"{value!r} is to be a float: YAML needs a point in it, and a sign in its exponent")
        case _:
            return value


def _constant(value: Any, kind: DataType) -> Node | None:
    if isinstance(kind, ListType):
        return None
    if kind == BYTES and value is not None:
        return Call("unhex", (Literal(value.hex(), ScalarType("str")),))
    if isinstance(value, float) and math.isnan(value):
        return Call("nan", ())
    if isinstance(value, float) and math.isinf(value):
        return Call("infinity", ()) if value > 0 else Call("neg", (Call("infinity", ()),))
    return Literal(value, kind)


def agrees(expected: Any, actual: Any) -> bool:
    """Equal in type and value, where NaN equals itself and -0.0 is not 0.0."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, tuple):
        return len(expected) == len(actual) and all(map(agrees, expected, actual))
    if isinstance(expected, float):
        if math.isnan(expected):
            return math.isnan(actual)
        return bool(expected == actual) and math.copysign(1, expected) == math.copysign(1, actual)
    return bool(expected == actual)
