"""From our nodes to SQL that people can read and a database beside us can run: for Spark, PostgreSQL and DuckDB.

It means what our nodes mean for ordinary values. At the edges a database has its own mind (NaN, overflow, text that is
not a number): `DIFFERENCES` says where, and a test fails when one of them is gone. Instants and durations are columns
of whole microseconds. The exact text that the Spark engine runs is written by `engines.spark`, not here.

>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import INT, Column, Schema
>>> trip = Schema("Trip", (Column("km", INT),))
>>> to_sql(Call("mod", (FieldRef("km"), Literal(7, INT))), "postgres", (trip,))
'("km" % 7 + 7) % 7'
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp

from catchment.errors import ProgramError
from catchment.program.facts import Analysis
from catchment.program.functions import common
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node
from catchment.program.resolution import per_unit
from catchment.program.sql.templates import CASTS, TEMPLATES
from catchment.program.types import BOOL, DURATION, FLOAT, INSTANT, INT, NULL, STR, DataType, Schema

Tree: TypeAlias = exp.Expr

DIALECTS = ("spark", "postgres", "duckdb")

_TYPES = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "TEXT",
    "bytes": "BLOB",
    "instant": "BIGINT",
    "duration": "BIGINT",
}
_BINARY: dict[str, type[exp.Expr]] = {
    "add": exp.Add,
    "sub": exp.Sub,
    "mul": exp.Mul,
    "eq": exp.EQ,
    "ne": exp.NEQ,
    "lt": exp.LT,
    "le": exp.LTE,
    "gt": exp.GT,
    "ge": exp.GTE,
    "same": exp.NullSafeEQ,
    "and": exp.And,
    "or": exp.Or,
}
_DAY_US = 86_400_000_000
_OF_FLOATS = frozenset(
    [
        *["div", "is_nan", "sqrt", "exp", "ln", "pow", "sin", "cos", "atan2", "radians", "degrees"],
        *["floor", "ceil", "round", "round_to", "distance_m"],
    ]
)


def to_sql(node: Node, dialect: str, schemas: tuple[Schema, ...], tables: tuple[str | None, ...] | None = None) -> str:
    """The expression in that dialect; `tables` qualifies the fields of each side (a join's are `left` and `right`)."""
    if dialect not in DIALECTS:
        raise ProgramError(
            "C138",
            f"there is no SQL for {dialect!r}",
            why=f"expressions are printed for {', '.join(DIALECTS)}",
            fix="use one of them",
        )
    names = tables or ((None,) if len(schemas) < 2 else ("left", "right"))
    return _Writer(dialect, schemas, names).tree(node).sql(dialect=dialect)


class _Writer:
    def __init__(self, dialect: str, schemas: tuple[Schema, ...], tables: tuple[str | None, ...]) -> None:
        self.dialect = dialect
        self.analysis = Analysis(schemas)
        self.tables = tables

    def type(self, node: Node) -> DataType:
        return self.analysis[node].type

    def tree(self, node: Node, to: DataType | None = None) -> Tree:
        """The node as a tree of SQLGlot, as that type where one is given."""
        kind = self.type(node)
        if kind == NULL:
            return self.cast(exp.Null(), to) if to not in (None, NULL) else exp.Null()
        if to == FLOAT and kind == INT:
            if isinstance(node, Literal) and isinstance(node.value, int):
                return self.literal(float(node.value), FLOAT)
            return self.cast(self.written(node), FLOAT)
        return self.written(node)

    def cast(self, tree: Tree, kind: DataType | None) -> Tree:
        return exp.cast(tree, _TYPES[str(kind)])

    def literal(self, value: Any, kind: DataType) -> Tree:
        if value is None:
            return self.cast(exp.Null(), kind)
        if kind == BOOL:
            return exp.true() if value else exp.false()
        if kind == STR:
            return exp.Literal.string(value)
        number = exp.Literal.number(repr(abs(value)))
        negative = repr(value).startswith("-")
        return exp.Neg(this=number) if negative else number

    def written(self, node: Node) -> Tree:
        match node:
            case Literal(value, kind):
                return self.literal(value, kind)
            case FieldRef(name=name, side=side):
                table = self.tables[side]
                return exp.column(
                    exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True) if table else None
                )
            case GetField(of, name):
                return exp.Dot(this=_wrapped(self.tree(of)), expression=exp.to_identifier(name, quoted=True))
            case Cast(of, to):
                return self.converted(of, to)
            case Call():
                return self.call(node)
            case _:
                raise self.unprintable("a declared Python function")

    def converted(self, of: Node, to: DataType) -> Tree:
        given = self.type(of)
        if given in (to, NULL):
            return self.tree(of, to)
        key = f"{given}_{to}"
        if key in CASTS:
            return self.template(CASTS[key], key, (self.tree(of),))
        return self.tree(of) if {given, to} <= {INT, INSTANT, DURATION} else self.cast(self.tree(of), to)

    def call(self, node: Call) -> Tree:
        self.type(node)
        rewritten = self.rewritten(node)
        if rewritten is not None:
            return self.tree(rewritten)
        name = node.function
        shared = common(tuple(self.type(arg) for arg in node.args))
        wanted = FLOAT if name in _OF_FLOATS and shared not in (DURATION,) else shared
        if name == "if_":
            kind = self.type(node)
            condition, then, otherwise = node.args
            return exp.If(this=self.tree(condition), true=self.tree(then, kind), false=self.tree(otherwise, kind))
        args = tuple(self.operand(arg, node, wanted) for arg in node.args)
        if name in _BINARY:
            return _BINARY[name](this=_wrapped(args[0]), expression=_wrapped(args[1]))
        match name:
            case "not":
                return exp.Not(this=_wrapped(args[0]))
            case "neg":
                return exp.Neg(this=_wrapped(args[0]))
            case "is_null":
                return exp.Is(this=_wrapped(args[0]), expression=exp.Null())
            case "in_":
                return exp.In(this=_wrapped(args[0]), expressions=list(args[1:]))
            case "coalesce":
                return exp.Coalesce(this=args[0], expressions=list(args[1:]))
            case "null_if":
                if self.type(node) == shared:
                    return exp.Nullif(this=args[0], expression=args[1])
                equal = exp.EQ(this=_wrapped(args[0]), expression=_wrapped(args[1]))
                return exp.If(this=equal, true=exp.Null(), false=self.tree(node.args[0]))
            case "concat":
                joined = args[0]
                for other in args[1:]:
                    joined = exp.DPipe(this=joined, expression=_wrapped(other), safe=True)
                return joined
        floats = f"{name}_float"
        key = floats if wanted == FLOAT and floats in TEMPLATES else name
        return self.template(TEMPLATES[key], name, args)

    def operand(self, arg: Node, parent: Call, wanted: DataType | None) -> Tree:
        """An argument. A bare decimal beside nothing but constants would be exact arithmetic to a database."""
        tree = self.tree(arg, wanted)
        alone = all(isinstance(other, Literal) for other in parent.args)
        kind = self.type(arg)
        if alone and isinstance(arg, Literal) and arg.value is not None and FLOAT in (kind, wanted):
            return self.cast(tree, FLOAT)
        return tree

    def rewritten(self, node: Call) -> Node | None:
        """Some functions are a few of the others."""
        match node.function, node.args:
            case "hour" | "minute" | "second" as name, (at,):
                within, unit = {
                    "hour": (_DAY_US, 3_600_000_000),
                    "minute": (3_600_000_000, 60_000_000),
                    "second": (60_000_000, 1_000_000),
                }[name]
                return Call("floordiv", (Call("mod", (Cast(at, INT), _int(within))), _int(unit)))
            case "weekday", (at,):
                days = Call("floordiv", (Cast(at, INT), _int(_DAY_US)))
                return Call("mod", (Call("add", (days, _int(3))), _int(7)))
            case "floor_to", (at, every):
                whole = Cast(at, INT)
                return Cast(Call("sub", (whole, Call("mod", (whole, Cast(every, INT))))), INSTANT)
            case "round_to", (value, step):
                constant = step.value if isinstance(step, Literal) else None
                inverse = per_unit(float(constant)) if isinstance(constant, int | float) and constant > 0 else None
                if inverse is not None:
                    many = Literal(inverse, FLOAT)
                    return Call("div", (Call("round", (Call("mul", (value, many)),)), many))
                return Call("mul", (Call("round", (Call("div", (value, step)),)), step))
            case "div" | "floordiv" | "mod" as name, (left, right) if self.type(left) == DURATION:
                other = Cast(right, INT) if self.type(right) == DURATION else right
                return Call(name, (Cast(left, INT), other))
            case _:
                return None

    def template(self, forms: dict[str, str], name: str, args: tuple[Tree, ...]) -> Tree:
        """The dialect's form of a function with the arguments in place."""
        text = forms.get(self.dialect, forms.get(""))
        if text is None:
            raise self.unprintable(name)
        places = {place: _wrapped(arg) for place, arg in zip("abcd", args, strict=False)}
        return exp.replace_placeholders(_parsed(text, self.dialect if self.dialect in forms else "duckdb"), **places)

    def unprintable(self, what: str) -> ProgramError:
        return ProgramError(
            "C139",
            f"{what} cannot be written as SQL for {self.dialect}",
            why=f"{self.dialect} has no function that means the same",
            fix="compute it in a step before, and use its field",
        )


@lru_cache(maxsize=256)
def _parse(text: str, dialect: str) -> Tree:
    return sqlglot.parse_one(text, read=dialect)


def _parsed(text: str, dialect: str) -> Tree:
    return _parse(text, dialect).copy()


def _int(value: int) -> Literal:
    return Literal(value, INT)


def _wrapped(tree: Tree) -> Tree:
    """In brackets where another operator could tear it apart."""
    loose = isinstance(tree, exp.Binary | exp.Unary | exp.In | exp.Between) and not isinstance(
        tree, exp.Paren | exp.Dot
    )
    return exp.Paren(this=tree) if loose else tree
