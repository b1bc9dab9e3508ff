"""A text of SQL that stands in no step yet, as in `when("speed_mps > 2", "fast")`: its fields are found out later.

Names are taken as written, and are looked up, with their types, when the expression is put into a step.

>>> parse_unplaced("best.dbm > -70").function
'gt'
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catchment.errors import SourceLine
from catchment.program.nodes import FieldRef, GetField, Node
from catchment.program.sql.reading import Reader


def parse_unplaced(text: str, at: SourceLine | None = None) -> Node:
    """The expression that the text writes, over the fields of whatever element comes."""
    return _Unplaced(text, (), at).read()


class _Unplaced(Reader):
    def field(self, name: str, sides: Sequence[int]) -> Node:
        return FieldRef(name)

    def nested(self, node: Node, path: list[str], tree: exp.Expr) -> Node:
        for name in path:
            node = GetField(node, name)
        return node
