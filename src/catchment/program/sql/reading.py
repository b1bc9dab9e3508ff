"""From a string of SQL to our nodes; what has no meaning on every engine is refused by name.

Field names are taken as written, or in any case where that names one field. In a join `left.speed` and `right.speed`
say the side, as do the records' names; a name that only one side has needs neither.

>>> from catchment.program.types import FLOAT, STR, Column
>>> fix = Schema("Fix", (Column("user", STR), Column("speed_mps", FLOAT)))
>>> parse("speed_mps * 3.6 > 50", (fix,)).function
'gt'
>>> parse("user LIKE 'a%'", (fix,)).function
'starts_with'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from catchment.errors import ProgramError, SourceLine
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node
from catchment.program.sql.names import (
    CASTS_TO,
    EXTRACTS,
    FUNCTION_NAMES,
    OPERATORS,
    SIMPLE,
    UNITS_US,
    UNREPEATABLE,
    UNREPEATABLE_NAMES,
    closest,
)
from catchment.program.types import BOOL, DURATION, FLOAT, INT, NULL, STR, RecordType, Schema
from catchment.program.typing import infer

# DuckDB's grammar is the standard's with `//`, `**` and `==`, which an author of Python writes.
_GRAMMAR = "duckdb"

# What SQLGlot notes about a node without changing what we make of it.
_NOTES = frozenset({"safe", "typed", "coalesce", "ignore_nulls", "big_int", "_type"})


def parse(text: str, schemas: tuple[Schema, ...], at: SourceLine | None = None) -> Node:
    """The expression that the text writes, over elements of these schemas (the second one is a join's right side)."""
    node = Reader(text, schemas, at).read()
    infer(node, schemas, at)
    return node


def _unreadable(text: str, error: SqlglotError, at: SourceLine | None) -> ProgramError:
    found: dict[str, Any] = (getattr(error, "errors", None) or [{}])[0]
    token = found.get("highlight") or ""
    place = f" at {token!r} (column {found['col']})" if token and found.get("col") else ""
    return ProgramError(
        "C131",
        f"{text!r} is not an expression of SQL{place}",
        why=str(found.get("description") or str(error).splitlines()[0] or "nothing is there")
        .partition(" for <")[0]
        .rstrip("."),
        fix="write one value or condition, such as speed_mps * 3.6 > 50 AND user IS NOT NULL",
        at=at,
    )


class Reader:
    """One text being read."""

    def __init__(self, text: str, schemas: tuple[Schema, ...], at: SourceLine | None) -> None:
        self.text = text
        self.schemas = schemas
        self.at = at

    def read(self) -> Node:
        """The node of the whole text."""
        try:
            tree = sqlglot.parse_one(self.text, read=_GRAMMAR)
        except SqlglotError as error:
            raise _unreadable(self.text, error, self.at) from None
        return self.node(tree)

    def node(self, tree: exp.Expr) -> Node:
        """The node of a tree; every part of the tree must be understood."""
        if tree.args.get("negate"):
            positive = tree.copy()
            positive.set("negate", None)
            return Call("not", (self.node(positive),))
        operator = OPERATORS.get(type(tree))
        if operator is not None:
            return Call(operator, self.parts(tree, "this", "expression"))
        simple = SIMPLE.get(type(tree))
        if simple is not None:
            return Call(simple, self.all(tree, "this", "expression", "expressions", "zone", "replacement"))
        if isinstance(tree, UNREPEATABLE):
            raise self.changing(tree)
        method = getattr(self, f"_{type(tree).__name__.lower()}", None)
        if method is None:
            raise self.refuse(tree)
        result: Node = method(tree)
        return result

    def parts(self, tree: exp.Expr, *names: str) -> tuple[Node, ...]:
        """Exactly these parts, and no others."""
        self.only(tree, *names)
        if any(not isinstance(tree.args.get(name), exp.Expr) for name in names):
            raise self.refuse(tree)
        return tuple(self.node(tree.args[name]) for name in names)

    def all(self, tree: exp.Expr, *names: str) -> tuple[Node, ...]:
        """Those of these parts that are there, lists flattened, and no others."""
        self.only(tree, *names)
        found = [tree.args[name] for name in names if tree.args.get(name)]
        flat = [item for part in found for item in (part if isinstance(part, list) else [part])]
        return tuple(self.node(item) for item in flat)

    def only(self, tree: exp.Expr, *names: str) -> None:
        """Refuse a tree that says more than these parts: nothing that was written is passed over."""
        for name, value in tree.args.items():
            if name not in names and name not in _NOTES and value not in (None, False, []):
                raise self.refuse(tree)

    def refuse(self, tree: exp.Expr, why: str = "", fix: str = "") -> ProgramError:
        """What is refused, as it was written."""
        written = tree.sql(_GRAMMAR) or self.text
        aggregate = isinstance(tree, exp.AggFunc)
        return ProgramError(
            "C132",
            f"{written} has no meaning in an expression" + (f" (in {self.text!r})" if written != self.text else ""),
            why=why
            or (
                "an expression looks at one element; an aggregate needs a window or a stateful stream"
                if aggregate
                else "an expression is one value computed from one element, by functions that every engine runs"
            ),
            fix=fix or ("use .window(...).agg(...)" if aggregate else "use a built-in function, or a declared one"),
            at=self.at,
        )

    def changing(self, tree: exp.Expr) -> ProgramError:
        """What gives another value each time that it is asked."""
        return self.refuse(
            tree,
            why="an expression gives the same whenever and wherever it is computed, so it has no clock and no chance",
            fix="use the element's event time, or crc32(key) % 100 for sampling",
        )

    # One method for each kind of tree, by its name in SQLGlot.

    def _paren(self, tree: exp.Paren) -> Node:
        return self.parts(tree, "this")[0]

    def _boolean(self, tree: exp.Boolean) -> Node:
        return Literal(bool(tree.this), BOOL)

    def _null(self, tree: exp.Null) -> Node:
        return Literal(None, NULL)

    def _literal(self, tree: exp.Literal) -> Node:
        return Literal(tree.this, STR) if tree.is_string else self.number(tree.this)

    def _neg(self, tree: exp.Neg) -> Node:
        inner = tree.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self.number(f"-{inner.this}")
        return Call("neg", self.parts(tree, "this"))

    def number(self, text: str) -> Node:
        """An int where it has no point and no exponent, else a float."""
        if any(mark in text for mark in ".eE"):
            return Literal(float(text), FLOAT)
        value = int(text)
        if not -(2**63) <= value < 2**63:
            raise ProgramError(
                "C133",
                f"{text} does not fit 64 bits (in {self.text!r})",
                why="whole numbers have 64 bits on every engine",
                fix=f"write it as a float: {text}.0",
                at=self.at,
            )
        return Literal(value, INT)

    def _column(self, tree: exp.Column) -> Node:
        path = [part.name for part in tree.parts]
        if len(path) > 1:
            sides = self.sides(path[0])
            if sides:
                return self.nested(self.field(path[1], sides), path[2:], tree)
        return self.nested(self.field(path[0], range(len(self.schemas))), path[1:], tree)

    def _dot(self, tree: exp.Dot) -> Node:
        return self.nested(self.node(tree.this), [tree.expression.name], tree)

    def sides(self, name: str) -> list[int]:
        """Which sides a qualifier names."""
        if len(self.schemas) == 2 and name.lower() in ("left", "right"):
            return [("left", "right").index(name.lower())]
        return [side for side, schema in enumerate(self.schemas) if schema.name.lower() == name.lower()]

    def field(self, name: str, sides: Sequence[int]) -> Node:
        """The field of that name on one of these sides."""
        for spelt in (str, str.lower):
            pairs = [(side, other) for side in sides for other in self.schemas[side].names]
            found = [(side, other) for side, other in pairs if spelt(other) == spelt(name)]
            if len(found) == 1:
                (side, exact) = found[0]
                return FieldRef(exact, self.schemas[side].name, side)
            if found:
                raise ProgramError(
                    "C134",
                    f"{name} may be any of {len(found)} fields (in {self.text!r})",
                    why="it is " + " or ".join(f"{self.schemas[side].name}.{other}" for side, other in found),
                    fix=f"write left.{name} or right.{name}" if len(sides) > 1 else f"write it exactly: {found[0][1]}",
                    at=self.at,
                )
        known = [other for side in sides for other in self.schemas[side].names]
        near = closest(name, known)
        raise ProgramError(
            "C135",
            f"there is no field {name!r} (in {self.text!r})",
            why=f"the fields are: {', '.join(known) or 'none'}",
            fix=f"use {near}" if near else "use one of them; text stands in single quotes",
            at=self.at,
        )

    def nested(self, node: Node, path: list[str], tree: exp.Expr) -> Node:
        """A field of a field."""
        for name in path:
            if not isinstance(infer(node, self.schemas, self.at).type, RecordType):
                raise self.refuse(tree, why="only a nested record has fields", fix="name a field of the record itself")
            node = GetField(node, name)
        return node

    def _nullsafeneq(self, tree: exp.NullSafeNEQ) -> Node:
        return Call("not", (Call("same", self.parts(tree, "this", "expression")),))

    def _is(self, tree: exp.Is) -> Node:
        self.only(tree, "this", "expression")
        match tree.expression:
            case exp.Null():
                return Call("is_null", (self.node(tree.this),))
            case exp.Boolean():
                return Call("same", (self.node(tree.this), self.node(tree.expression)))
            case _:
                raise self.refuse(tree, fix="use IS NULL, IS TRUE, IS NOT DISTINCT FROM, or is_nan(...)")

    def _between(self, tree: exp.Between) -> Node:
        value, low, high = self.parts(tree, "this", "low", "high")
        return Call("and", (Call("ge", (value, low)), Call("le", (value, high))))

    def _in(self, tree: exp.In) -> Node:
        self.only(tree, "this", "expressions")
        if not tree.expressions:
            raise self.refuse(tree, why="nothing is listed", fix="list at least one value")
        return Call("in_", (self.node(tree.this), *map(self.node, tree.expressions)))

    def _like(self, tree: exp.Like) -> Node:
        self.only(tree, "this", "expression")
        pattern = tree.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise self.refuse(tree, why="a pattern is a constant", fix="use contains(...) or starts_with(...)")
        inner = pattern.this.strip("%")
        if "%" in inner or "_" in inner or "\\" in inner:
            raise self.refuse(
                tree,
                why="only a % at the ends means the same everywhere",
                fix="combine starts_with, contains and ends_with, or write a declared function",
            )
        function = {
            (False, False): "eq",
            (False, True): "starts_with",
            (True, False): "ends_with",
            (True, True): "contains",
        }[pattern.this.startswith("%"), pattern.this.endswith("%")]
        return Call(function, (self.node(tree.this), Literal(inner, STR)))

    def _case(self, tree: exp.Case) -> Node:
        self.only(tree, "this", "ifs", "default")
        result = self.node(tree.args["default"]) if tree.args.get("default") else Literal(None, NULL)
        for branch in reversed(tree.args["ifs"]):
            test = self.node(branch.this)
            if tree.this:
                test = Call("eq", (self.node(tree.this), test))
            result = Call("if_", (test, self.node(branch.args["true"]), result))
        return result

    def _if(self, tree: exp.If) -> Node:
        self.only(tree, "this", "true", "false")
        otherwise = tree.args.get("false")
        return Call(
            "if_",
            (
                self.node(tree.this),
                self.node(tree.args["true"]),
                self.node(otherwise) if otherwise else Literal(None, NULL),
            ),
        )

    def _least(self, tree: exp.Expr) -> Node:
        first, *rest = self.all(tree, "this", "expressions")
        if not rest:
            raise self.refuse(tree, why="there is nothing to compare with", fix="give two values or more")
        result = first
        for other in rest:
            result = Call("least" if isinstance(tree, exp.Least) else "greatest", (result, other))
        return result

    _greatest = _least

    def _trim(self, tree: exp.Trim) -> Node:
        what, where = tree.args.get("expression"), tree.args.get("position")
        if (what is not None and what.name != " ") or (where is not None and str(where).upper() != "BOTH"):
            raise self.refuse(tree, why="trim takes spaces from both ends", fix="use trim(text), or replace(...)")
        self.only(tree, "this", "expression", "position")
        return Call("trim", (self.node(tree.this),))

    def _substring(self, tree: exp.Substring) -> Node:
        # SQL counts from 1, and a missing length is all that follows.
        self.only(tree, "this", "start", "length")
        start = self.node(tree.args["start"])
        if isinstance(start, Literal) and isinstance(start.value, int):
            start = Literal(start.value - 1, INT)
        else:
            start = Call("sub", (start, Literal(1, INT)))
        length = tree.args.get("length")
        return Call(
            "substring", (self.node(tree.this), start, self.node(length) if length else Literal(2**31 - 1, INT))
        )

    def _round(self, tree: exp.Round) -> Node:
        self.only(tree, "this", "decimals")
        value, decimals = self.node(tree.this), tree.args.get("decimals")
        if decimals is None:
            return Call("round", (value,))
        if not (isinstance(decimals, exp.Literal) and decimals.this.isdecimal()):
            raise self.refuse(tree, why="decimals are a constant, 0 or more", fix="use round_to(value, step)")
        return Call("round_to", (value, Literal(float(f"1e-{decimals.this}"), FLOAT)))

    def _extract(self, tree: exp.Extract) -> Node:
        self.only(tree, "this", "expression")
        function = EXTRACTS.get(tree.this.name.lower())
        if function is None:
            raise self.refuse(tree, why=f"parts of an instant are: {', '.join(EXTRACTS)}", fix="use one of them")
        return Call(function, (self.node(tree.expression),))

    def _timestamptrunc(self, tree: exp.TimestampTrunc) -> Node:
        self.only(tree, "this", "unit")
        unit = UNITS_US.get(tree.args["unit"].name.lower())
        if unit is None or tree.args["unit"].name.lower() == "week":
            raise self.refuse(tree, why="months and years differ in length", fix="use floor_to(at, INTERVAL '1 day')")
        return Call("floor_to", (self.node(tree.this), Literal(unit, DURATION)))

    _datetrunc = _timestamptrunc

    def _interval(self, tree: exp.Interval) -> Node:
        self.only(tree, "this", "unit")
        unit = tree.args.get("unit")
        scale = UNITS_US.get(unit.name.lower().removesuffix("s")) if isinstance(unit, exp.Var) else None
        amount = tree.this.name if isinstance(tree.this, exp.Literal) else ""
        if scale is not None and re.fullmatch(r"-?[0-9]{1,18}", amount):
            return Literal(int(amount) * scale, DURATION)
        raise self.refuse(
            tree,
            why=f"a duration is a whole number of one of: {', '.join(UNITS_US)}",
            fix="write INTERVAL '90 seconds', or combine: INTERVAL '1 hour' + INTERVAL '30 minutes'",
        )

    def _cast(self, tree: exp.Cast) -> Node:
        self.only(tree, "this", "to")
        to = CASTS_TO.get(tree.to.this.name)
        if to is None or tree.to.expressions:
            raise self.refuse(
                tree,
                why=f"types here are: {', '.join(sorted({name.lower() for name in CASTS_TO}))}",
                fix="use one of them: BIGINT, DOUBLE, VARCHAR, TIMESTAMP or BOOLEAN",
            )
        return Cast(self.node(tree.this), to)

    def _anonymous(self, tree: exp.Anonymous) -> Node:
        name = FUNCTION_NAMES.get(tree.name.lower())
        if tree.name.lower() in UNREPEATABLE_NAMES:
            raise self.changing(tree)
        if name is None:
            near = closest(tree.name.lower(), FUNCTION_NAMES)
            raise ProgramError(
                "C136",
                f"there is no function {tree.name} (in {self.text!r})",
                why="expressions are a closed set that every engine runs",
                fix=f"use {near}" if near else "use a built-in, or declare a Python function with @function",
                at=self.at,
            )
        return Call(name, tuple(map(self.node, tree.expressions)))
