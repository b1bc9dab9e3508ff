"""State machines as tables: every change of state is a named rule, and the rules draw the documentation.

Promises: a machine moves only by its rules, so what the reference shows is what the code does; whoever passes `watch`
sees each rule taken, which is how the simulator knows that all of them were.

>>> door = Table("door", ("open", "shut"), (Rule("push", ("open",), "a push", "shut", "click"),))
>>> print(door.markdown())
| at | when | then | does |
|---|---|---|---|
| open | a push | shut | click |
>>> machine = Machine(door, "open")
>>> machine.take("push"); machine.state
'shut'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from catchment.errors import InternalError


class Rule(NamedTuple):
    """At one of these states, when that happens, go there and do this. `to` "" stays where it is."""

    name: str
    at: tuple[str, ...]
    when: str
    to: str
    does: str


class Table:
    """The rules of one kind of machine."""

    def __init__(self, name: str, states: tuple[str, ...], rules: tuple[Rule, ...]) -> None:
        self.name = name
        self.states = states
        self.rules = {rule.name: rule for rule in rules}
        assert len(self.rules) == len(rules), f"{name}: two rules of one name"
        known = {*states, ""}
        assert all({*rule.at, rule.to} <= known for rule in rules), f"{name}: a rule names no state of it"

    def markdown(self) -> str:
        """The rules as a table."""
        lines = ["| at | when | then | does |", "|---|---|---|---|"]
        for rule in self.rules.values():
            lines.append(f"| {', '.join(rule.at)} | {rule.when} | {rule.to or 'stays'} | {rule.does} |")
        return "\n".join(lines)

    def mermaid(self) -> str:
        """The rules as a state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.states[0]}"]
        for rule in self.rules.values():
            lines.extend(f"    {at} --> {rule.to or at}: {rule.name}" for at in rule.at)
        return "\n".join(lines)


Watch = Callable[[str, Rule], None]


class Machine:
    """A state that moves by a table."""

    def __init__(self, table: Table, state: str, watch: Watch | None = None) -> None:
        self.state = state
        self._table = table
        self._watch = watch

    def take(self, name: str) -> None:
        """Move by that rule."""
        rule = self._table.rules[name]
        if self.state not in rule.at:
            raise InternalError(
                "S408",
                f"{self._table.name}: {name} at {self.state}",
                why=f"the table has this rule at {', '.join(rule.at)}",
                fix="this is a defect of ours: please report it with what led to it",
            )
        self.state = rule.to or self.state
        if self._watch is not None:
            self._watch(self._table.name, rule)
