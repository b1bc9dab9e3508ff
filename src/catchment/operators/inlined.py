"""Contents as source: what looks at an element and what adds it, to be placed in a function with all else that runs
for each element, or made functions of their own.

The source of looking assigns names and may raise `RowError`; that of adding uses these names, `at` and `order`, and
changes the list `summary`. So nothing is changed before all that can fail has run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Inlined:
    """Lines of source, and the objects that their free names stand for."""

    look: list[str]
    fails: bool
    """Whether looking can fail."""
    seen: list[str]
    """The names that looking assigns."""
    add: list[str]
    bindings: dict[str, Any] = field(default_factory=dict)

    def looking(self) -> Callable[[Any], Any]:
        """A function from a row to what is seen of it."""
        returned = f"return ({''.join(f'{name}, ' for name in self.seen)})"
        look: Callable[[Any], Any] = defined("look", "row", [*self.look, returned], self.bindings)
        return look

    def adding(self) -> Callable[[Any, Any, int, Any], None]:
        """A function that adds what was seen: (summary, seen, at, order)."""
        unpack = [f"{''.join(f'{name}, ' for name in self.seen)}= seen"] if self.seen else []
        lines = [*unpack, *self.add, "return None"]
        add: Callable[[Any, Any, int, Any], None] = defined("add", "summary, seen, at, order", lines, self.bindings)
        return add


def indented(lines: list[str], depth: int) -> list[str]:
    """The lines, so many levels deeper."""
    return ["    " * depth + line for line in lines]


def defined(name: str, parameters: str, lines: list[str], bindings: dict[str, Any]) -> Any:
    """The function of that body, where its free names are the bindings."""
    text = "\n".join([f"def {name}({parameters}):", *indented(lines, 1)])
    scope = dict(bindings)
    exec(compile(text, f"<{name}>", "exec"), scope)
    return scope[name]
