"""Expressions as Spark SQL text, for `expr` and `selectExpr`: native Catalyst, with the meaning of the golden vectors.

Two texts for each expression. `value` never raises, whatever the row: where the expression fails, it is null. `failure`
is null, or the reason why the row fails; there is none where nothing can fail. So a step selects both, sends the rows
that have a reason to quarantine and the others on, and no order in which Spark evaluates or moves what it is given can
end the query.

Inside Spark an instant and a duration are a BIGINT of microseconds, text is a STRING of the binary collation, and the
session has ANSI mode on and UTC as its time zone. A declared Python function is not native (`is_native`): its step
runs over Arrow batches.

>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import INT, Column, Schema
>>> point = Schema("Point", (Column("x", INT), Column("y", INT, nullable=True)))
>>> sql = SparkExpressions((point,))
>>> sum_of_both = Call("add", (FieldRef("x"), FieldRef("y")))
>>> sql.value(sum_of_both)
'try_add(`x`, `y`)'
>>> sql.failure(sum_of_both), sql.stages
("CASE WHEN __e1 IS NULL AND `y` IS NOT NULL THEN 'overflow' END", [['try_add(`x`, `y`) AS __e1']])
>>> sql.failure(Call("mod", (FieldRef("y"), Literal(60, INT)))) is None
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from catchment.engines.spark.casts_sql import CAST_FAILURES, CAST_VALUES
from catchment.engines.spark.failures_sql import FAILURES
from catchment.engines.spark.functions_sql import VALUES
from catchment.engines.spark.sql_text import Operands, column_name, literal, spark_type
from catchment.errors import InternalError
from catchment.program.facts import Analysis
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall, walk
from catchment.program.types import FLOAT, INT, NULL, DataType, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_REASON = "CAST(NULL AS STRING)"


def is_native(node: Node) -> bool:
    """Whether Catalyst can compute it: it calls no declared Python function."""
    return not any(isinstance(part, UserCall) for part in walk(node))


class SparkExpressions:
    """Writes expressions over rows of these schemas; `column` names a field (of a join `left.x`, `right.x`).

    What one text needs twice is not written twice, or texts would double with each level: it becomes a column of its
    own, named after `prefix`, that an earlier select computes. `select` does so, in as many selects as it takes.
    """

    def __init__(
        self,
        schemas: tuple[Schema, ...],
        column: Callable[[FieldRef], str] | None = None,
        prefix: str = "__e",
    ) -> None:
        self.analysis = Analysis(schemas)
        self._column = column or (_one_side if len(schemas) < 2 else _two_sides)
        self._prefix = prefix
        self._names: dict[Node, str] = {}
        self._stages: dict[str, int] = {}
        self.stages: list[list[str]] = []

    def value(self, node: Node, to: DataType | None = None) -> str:
        """SQL of the value, as that type where one is given; null where the expression fails."""
        facts = self.analysis[node]
        if facts.type == NULL:
            return f"CAST(NULL AS {spark_type(to)})" if to not in (None, NULL) else "NULL"
        if to == FLOAT and facts.type == INT:
            if isinstance(node, Literal) and node.value is not None:
                return literal(float(node.value), FLOAT)
            return f"CAST({self.value(node)} AS DOUBLE)"
        return self._names.get(node) or self._written(node)

    def named(self, node: Node, to: DataType | None = None) -> str:
        """The same in few words: what is more than a field becomes a column of an earlier select."""
        if not _is_short(node) and node not in self._names:
            sql = self._written(node)
            name = f"{self._prefix}{len(self._names) + 1}"
            stage = max((self._stages[used] + 1 for used in self._used(sql)), default=0)
            if stage == len(self.stages):
                self.stages.append([])
            self.stages[stage].append(f"{sql} AS {name}")
            self._names[node], self._stages[name] = name, stage
        return self.value(node, to)

    def _used(self, sql: str) -> list[str]:
        return [name for name in re.findall(rf"\b{self._prefix}[0-9]+\b", sql) if name in self._stages]

    def select(self, frame: DataFrame, *columns: str) -> DataFrame:
        """The frame with these columns, after the selects that compute what they name."""
        for stage in self.stages:
            frame = frame.selectExpr("*", *stage)
        return frame.selectExpr(*columns)

    def failure(self, node: Node) -> str | None:
        """SQL of the reason why the row fails, null where it does not; None where it cannot fail."""
        if not self.analysis[node].may_fail:
            return None
        match node:
            case Call("and", (left, right)):
                return self._lazy(left, "{} <=> FALSE", self.failure(right))
            case Call("or", (left, right)):
                return self._lazy(left, "{} <=> TRUE", self.failure(right))
            case Call("if_", (condition, then, otherwise)):
                yes, no = self.failure(then), self.failure(otherwise)
                chosen = yes
                if yes != no:
                    chosen = f"IF({self.named(condition)}, {yes or NO_REASON}, {no or NO_REASON})"
                return first_reason((self.failure(condition), chosen))
            case Call("coalesce", choices):
                reason = None
                for choice in reversed(choices):
                    reason = self._lazy(choice, "{} IS NOT NULL", reason)
                return reason
            case Call(name, args):
                own = FAILURES[name](self._operands(node, args)) if self.analysis[node].fails_here else None
                return first_reason((*map(self.failure, args), own))
            case Cast(of, to):
                pair = (str(self.analysis[of].type), str(to))
                own = CAST_FAILURES[pair](self._operands(node, (of,))) if self.analysis[node].fails_here else None
                return first_reason((self.failure(of), own))
            case GetField(of):
                return self.failure(of)
            case _:
                raise self._not_native(node)

    def _operands(self, node: Node, args: tuple[Node, ...]) -> Operands:
        return Operands(self, node, args, names=True)

    def _lazy(self, first: Node, decided: str, rest: str | None) -> str | None:
        """The first one's reason, else the rest's unless the first one's value has decided."""
        if rest is not None:
            rest = f"IF({decided.format(self.named(first))}, {NO_REASON}, {rest})"
        return first_reason((self.failure(first), rest))

    def row_failure(self, nodes: Iterable[Node]) -> str | None:
        """SQL of the first reason among several expressions of one row."""
        return first_reason(self.failure(node) for node in nodes)

    def _written(self, node: Node) -> str:
        match node:
            case Literal(value, kind):
                return literal(value, kind)
            case FieldRef():
                return self._column(node)
            case GetField(of, name):
                self.analysis[node]
                return f"({self.value(of)}).{column_name(name)}"
            case Cast(of, to):
                given = self.analysis[of].type
                if given in (to, NULL):
                    return self.value(of, to)
                operands = Operands(self, node, (of,), names=False)
                return operands.filled(CAST_VALUES[str(given), str(to)](operands))
            case Call(name, args):
                self.analysis[node]
                operands = Operands(self, node, args, names=False)
                return operands.filled(VALUES[name](operands))
            case _:
                raise self._not_native(node)

    def _not_native(self, node: Node) -> InternalError:
        return InternalError(
            "C137",
            f"{node!r} has no Spark SQL",
            why="a declared Python function runs over Arrow batches, not in Catalyst",
            fix="ask is_native before",
        )


def first_reason(reasons: Iterable[str | None]) -> str | None:
    """SQL of the first reason that is not null; None where there is nothing to ask."""
    known = [reason for reason in reasons if reason is not None]
    if not known:
        return None
    return known[0] if len(known) == 1 else f"coalesce({', '.join(known)})"


def _is_short(node: Node) -> bool:
    """Whether its SQL is short, and cheap to compute again."""
    match node:
        case Literal() | FieldRef() | Call(_, ()):
            return True
        case GetField(of):
            return _is_short(of)
        case _:
            return False


def _one_side(ref: FieldRef) -> str:
    return column_name(ref.name)


def _two_sides(ref: FieldRef) -> str:
    return f"{('left', 'right')[ref.side]}.{column_name(ref.name)}"
