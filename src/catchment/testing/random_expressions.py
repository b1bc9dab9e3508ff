"""Random well-typed expressions and rows, for tests that compare engines.

Everything is drawn from the `random.Random` that is passed in: a seeded one gives a corpus that is the same every
time, and hypothesis' `randoms()` one that shrinks. Values are the ones that break things: the ends of 64 bits, NaN,
-0.0, leap days, text beyond the basic plane.

>>> import random
>>> generated = RandomExpressions(random.Random(7), (SAMPLE,))
>>> node, row = generated.expression(), generated.row()
>>> len(row) == len(SAMPLE.fields)
True
"""

from __future__ import annotations

import math
import random
from typing import Any

from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node
from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    NULL,
    STR,
    Column,
    DataType,
    ListType,
    RecordType,
    Row,
    Schema,
)

SCALARS = (BOOL, INT, FLOAT, STR, INSTANT, DURATION)

_PLACE = Schema("Place", (Column("name", STR, nullable=True), Column("height_m", FLOAT)))
SAMPLE = Schema(
    "Sample",
    (
        *(Column(f"{kind}_{n}", kind) for kind in SCALARS for n in (1, 2)),
        *(Column(f"{kind}_or_null", kind, nullable=True) for kind in SCALARS),
        Column("readings", ListType(INT)),
        Column("place", RecordType(_PLACE), nullable=True),
    ),
)
"""A record with two fields of each scalar type, one of each that may be null, a list and a nested record."""

_VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False),
    "int": (0, 1, -1, 2, 3, -7, 10, 60, 2**31, 2**53, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)),
    "float": (
        *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 7.0, -3.0, 60.0, 1e-300, 1e16, 2.0**53, 1e300),
        *(math.nan, math.inf, -math.inf, 46.056947, -14.505783),
    ),
    "str": (
        "",
        "a",
        "abc",
        "ABC",
        " abc ",
        "straße",
        "ΑΣ",
        "12",
        "-7",
        "3.5",
        "nan",
        "1e3",
        "é",
        "e\u0301",
        "𝒳y",
        "2024",
    ),
    "instant": (
        *(0, 1, -1, 1_700_000_000_000_000, 951_782_400_000_000, 1_709_164_800_000_000, -2_208_988_800_000_000),
        *(-62_135_596_800_000_000, 253_402_300_799_999_999, 2**63 - 1, -(2**63)),
    ),
    "duration": (0, 1, -1, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000, -60_000_000, 2**62, -(2**63)),
}
_INSTANT_TEXTS = ("2024-02-29T12:00:00Z", "1969-12-31 23:59:59.5+01:00", "2023-02-29T00:00:00Z", "soon")
_ZONES = ("Europe/Zurich", "America/New_York", "Asia/Kolkata", "UTC", "Mars/Base")

# What gives each type, by the arguments' types. T stands for one scalar type, the same throughout.
_T = "T"
_PRODUCTIONS: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "bool": (
        *((name, (_T, _T)) for name in ("eq", "ne", "lt", "le", "gt", "ge", "same")),
        *((name, (INT, FLOAT)) for name in ("eq", "lt", "ge", "same")),
        *((name, (BOOL, BOOL)) for name in ("and", "or", "and", "or")),
        ("not", (BOOL,)),
        ("is_null", (_T,)),
        ("is_nan", (FLOAT,)),
        ("in_", (_T, _T, _T)),
        *((name, (STR, STR)) for name in ("starts_with", "ends_with", "contains")),
    ),
    "int": (
        *((name, (INT, INT)) for name in ("add", "sub", "mul", "floordiv", "mod")),
        *((name, (INT,)) for name in ("neg", "abs")),
        ("floordiv", (DURATION, DURATION)),
        *((name, (INSTANT,)) for name in ("year", "month", "day", "hour", "minute", "second", "weekday")),
        ("length", (STR,)),
        ("crc32", (STR,)),
    ),
    "float": (
        *((name, (FLOAT, FLOAT)) for name in ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "atan2")),
        *((name, (FLOAT, INT)) for name in ("add", "sub", "mul", "div", "least", "greatest")),
        *((name, (FLOAT,)) for name in ("neg", "abs", "sqrt", "exp", "ln", "sin", "cos", "radians", "degrees")),
        *((name, (FLOAT,)) for name in ("floor", "ceil", "round")),
        ("div", (INT, INT)),
        ("div", (DURATION, DURATION)),
        ("round_to", (FLOAT, FLOAT)),
        ("distance_m", (FLOAT, FLOAT, FLOAT, FLOAT)),
        ("infinity", ()),
        ("nan", ()),
    ),
    "str": (
        ("concat", (STR, STR)),
        *((name, (STR,)) for name in ("upper", "lower", "trim")),
        ("substring", (STR, INT, INT)),
        ("replace", (STR, STR, STR)),
    ),
    "instant": (
        ("add", (INSTANT, DURATION)),
        ("add", (DURATION, INSTANT)),
        ("sub", (INSTANT, DURATION)),
        ("floor_to", (INSTANT, DURATION)),
    ),
    "duration": (
        *((name, (DURATION, DURATION)) for name in ("add", "sub", "mod")),
        ("sub", (INSTANT, INSTANT)),
        ("mul", (DURATION, INT)),
        ("mul", (INT, DURATION)),
        ("floordiv", (DURATION, INT)),
        *((name, (DURATION,)) for name in ("neg", "abs")),
    ),
}
INEXACT = frozenset(("exp", "ln", "pow", "sin", "cos", "atan2", "radians", "degrees", "distance_m"))
"""Functions whose last digits depend on the mathematics library."""
_CASTS_TO: dict[str, tuple[DataType, ...]] = {
    "bool": (),
    "int": (FLOAT, STR, BOOL, INSTANT, DURATION),
    "float": (INT, STR),
    "str": (INT, BOOL, INSTANT),
    "instant": (INT, STR),
    "duration": (INT,),
}
_ORDERED = (INT, FLOAT, STR, INSTANT, DURATION)


class RandomExpressions:
    """Draws expressions over `schemas`, and rows for them; `exact` leaves out what differs in its last digits."""

    def __init__(self, rng: random.Random, schemas: tuple[Schema, ...], *, exact: bool = False) -> None:
        self._rng = rng
        self._schemas = schemas
        self._productions = {
            kind: tuple(made for made in productions if not (exact and made[0] in INEXACT))
            for kind, productions in _PRODUCTIONS.items()
        }

    def row(self, side: int = 0) -> Row:
        """A row of that side's schema."""
        return tuple(self._value(column.type, column.nullable) for column in self._schemas[side].fields)

    def _value(self, kind: DataType, nullable: bool) -> Any:
        if nullable and self._rng.random() < 0.3:
            return None
        match kind:
            case ListType(element):
                return tuple(self._value(element, False) for _ in range(self._rng.randrange(4)))
            case RecordType(schema):
                return tuple(self._value(column.type, column.nullable) for column in schema.fields)
            case _:
                return self._scalar(kind)

    def _scalar(self, kind: DataType) -> Any:
        if kind == BYTES:
            return bytes.fromhex(self._rng.choice(("", "00ff", "e4bd")))
        if kind == STR and self._rng.random() < 0.1:
            return self._rng.choice(_INSTANT_TEXTS)
        if kind in (INT, FLOAT) and self._rng.random() < 0.5:
            small = self._rng.randrange(-20, 100)
            return small if kind == INT else small / 4
        return self._rng.choice(_VALUES[str(kind)])

    def expression(self, depth: int = 4, kind: DataType | None = None) -> Node:
        """An expression of that type, or of any scalar type, at most so deep."""
        wanted = kind if kind is not None else self._rng.choice(SCALARS)
        if depth <= 0 or self._rng.random() < 0.12:
            return self._leaf(wanted)
        pick = self._rng.random()
        if pick < 0.12:
            return Call("if_", (self.expression(depth - 1, BOOL), *self._two(depth, wanted)))
        if pick < 0.2:
            return Call("coalesce", self._two(depth, wanted))
        if pick < 0.24:
            return Call("null_if", self._two(depth, wanted))
        if pick < 0.28 and wanted != BOOL:
            return Call(self._rng.choice(("least", "greatest")), self._two(depth, wanted))
        if pick < 0.4 and _CASTS_TO[str(wanted)]:
            return Cast(self.expression(depth - 1, self._rng.choice(_CASTS_TO[str(wanted)])), wanted)
        if pick < 0.43 and (nested := self._nested(depth, wanted)) is not None:
            return nested
        if pick < 0.46 and wanted == INSTANT:
            zone = Literal(self._rng.choice(_ZONES), STR)
            return Call("in_zone", (self.expression(depth - 1, INSTANT), zone))
        name, params = self._rng.choice(self._productions[str(wanted)])
        one = self._rng.choice(_ORDERED if name in ("lt", "le", "gt", "ge") else SCALARS)
        return Call(name, tuple(self.expression(depth - 1, one if param == _T else param) for param in params))

    def _two(self, depth: int, kind: DataType) -> tuple[Node, Node]:
        second = INT if kind == FLOAT and self._rng.random() < 0.2 else kind
        return self.expression(depth - 1, kind), self.expression(depth - 1, second)

    def _nested(self, depth: int, wanted: DataType) -> Node | None:
        for side, schema in enumerate(self._schemas):
            for column in schema.fields:
                ref = FieldRef(column.name, schema.name, side)
                match column.type:
                    case RecordType(inner):
                        names = [c.name for c in inner.fields if c.type == wanted]
                        if names and self._rng.random() < 0.6:
                            return GetField(ref, self._rng.choice(names))
                    case ListType(element) if element == wanted:
                        if self._rng.random() < 0.3:
                            return Call("size", (ref,))
                        return Call("item", (ref, self.expression(depth - 1, INT)))
                    case _:
                        pass
        return None

    def _leaf(self, kind: DataType) -> Node:
        pick = self._rng.random()
        if pick < 0.05:
            return Literal(None, NULL if pick < 0.02 else kind)
        found = [
            FieldRef(column.name, schema.name, side)
            for side, schema in enumerate(self._schemas)
            for column in schema.fields
            if column.type == kind
        ]
        if found and pick < 0.75:
            return self._rng.choice(found)
        value = self._scalar(kind)
        if isinstance(value, float) and not math.isfinite(value):
            return Call("nan" if math.isnan(value) else "infinity", ())
        return Literal(value, kind)
