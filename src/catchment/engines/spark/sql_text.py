"""The small parts of Spark SQL text: names, literals, types, and the operands that a function's text is made of.

>>> from catchment.program.types import INT
>>> print(literal("it's ${x}", STR), literal(-1, INT), literal(0.1, FLOAT), column_name("a`b"))
'it\\'s \\u0024{x}' (-1L) 0.1D `a``b`
>>> print(spark_type(ListType(FLOAT)))
ARRAY<DOUBLE>
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Protocol

from catchment.program.facts import Analysis, Facts
from catchment.program.functions import common
from catchment.program.nodes import Call, Literal, Node
from catchment.program.types import BOOL, FLOAT, STR, DataType, ListType, RecordType

_TYPES = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "STRING",
    "bytes": "BINARY",
    "instant": "BIGINT",
    "duration": "BIGINT",
    "null": "VOID",
}


def spark_type(kind: DataType | None) -> str:
    """The type's name in Spark's schema language."""
    match kind:
        case ListType(element):
            return f"ARRAY<{spark_type(element)}>"
        case RecordType(schema):
            fields = ", ".join(f"{column_name(column.name)}: {spark_type(column.type)}" for column in schema.fields)
            return f"STRUCT<{fields}>"
        case _:
            return _TYPES[str(kind)]


def column_name(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any, kind: DataType) -> str:
    """A constant; NaN and the infinities are no literals here."""
    if value is None:
        return f"CAST(NULL AS {spark_type(kind)})"
    if kind == BOOL:
        return "TRUE" if value else "FALSE"
    if kind == STR:
        return text(value)
    number = f"{value!r}D" if kind == FLOAT else f"{int(value)}L"
    return f"({number})" if number.startswith("-") else number


def text(value: str) -> str:
    """A string in quotes. A dollar is spelt out: Spark replaces `${...}` in all SQL that it parses."""
    return "'" + re.sub(r"[\\'$\x00-\x1f]", _escape, value) + "'"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in "\\'" else f"\\u{ord(character):04x}"


class Writer(Protocol):
    """What operands need of the one who writes expressions."""

    analysis: Analysis

    def value(self, node: Node, to: DataType | None = None) -> str: ...
    def named(self, node: Node, to: DataType | None = None) -> str: ...


class Operands:
    """The arguments of one function: their SQL as it wants them, and what is known of each.

    While a value is written they are placeholders, to see how often each is used: `filled` puts the SQL in, and a name
    where SQL that is more than a field would stand twice. In the text of a failure they are always names.
    """

    def __init__(self, writer: Writer, node: Node, args: tuple[Node, ...], *, names: bool) -> None:
        self._writer = writer
        self._names = names
        self._node = node
        self._placed: dict[str, tuple[int, DataType | None]] = {}
        self.nodes = args
        self.result = writer.analysis[node]
        self.facts: tuple[Facts, ...] = tuple(writer.analysis[arg] for arg in args)
        self.common = common(tuple(facts.type for facts in self.facts)) if isinstance(node, Call) else None

    def __getitem__(self, index: int) -> str:
        """SQL of an argument as it is."""
        return self._placeholder(index, None)

    def a(self, index: int, kind: DataType | None = None) -> str:
        """SQL of an argument as that type, or as the type that all arguments have in common."""
        return self._placeholder(index, kind or self.common)

    def all(self, kind: DataType | None = None) -> list[str]:
        """SQL of all arguments, as `a` has it."""
        return [self.a(index, kind) for index in range(len(self.nodes))]

    @property
    def own(self) -> str:
        """A name for the value of the function itself: in the text of its failure."""
        return self._writer.named(self._node)

    def _placeholder(self, index: int, kind: DataType | None) -> str:
        if self._names:
            return self._writer.named(self.nodes[index], kind)
        token = f"\x01{index}:{kind}\x02"
        self._placed[token] = (index, kind)
        return token

    def filled(self, sql: str) -> str:
        """The SQL with the arguments in place."""
        uses = Counter(index for token, (index, _) in self._placed.items() for _ in range(sql.count(token)))
        for token, (index, kind) in self._placed.items():
            write = self._writer.named if uses[index] > 1 else self._writer.value
            sql = sql.replace(token, write(self.nodes[index], kind))
        return sql

    def constant(self, index: int) -> Any:
        """The argument's value where it is a constant that is not null."""
        node = self.nodes[index]
        return node.value if isinstance(node, Literal) else None

    def known(self, *but: int) -> str:
        """` AND x IS NOT NULL` for each argument that may be null, except those."""
        return "".join(
            f" AND {self[index]} IS NOT NULL"
            for index, facts in enumerate(self.facts)
            if facts.nullable and index not in but
        )

    def where_known(self, sql: str) -> str:
        """The SQL, but null where an argument is: for functions of Spark that pass over nulls."""
        test = self.known().removeprefix(" AND ")
        return f"CASE WHEN {test} THEN {sql} END" if test else sql
