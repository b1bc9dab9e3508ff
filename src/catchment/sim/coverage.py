"""Coverage: what has happened so far, so that a run can say that everything did.

What may happen is known beforehand: every kind of misfortune, and every rule of the protocol's tables. A run over many
seeds fails if one of them never came up, because then nothing was shown about it.

>>> coverage = Coverage()
>>> coverage.hit("network", "loss"); coverage.hit("network", "loss")
>>> coverage.counts[("network", "loss")], coverage.never({("network", "loss"), ("network", "delay")})
(2, [('network', 'delay')])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from catchment.sync.table import Rule, Table


class Coverage:
    """Counts of what happened, by kind and name."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def hit(self, kind: str, name: str) -> None:
        """It happened."""
        self.counts[kind, name] += 1

    def rule(self, table: str, rule: Rule) -> None:
        """A machine moved by that rule: what machines take as `watch`."""
        self.counts[table, rule.name] += 1

    def add(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Take over what another run saw."""
        self.counts.update(counts)

    def never(self, expected: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """What should have happened and did not."""
        return sorted(set(expected) - set(self.counts))

    def table(self, expected: Iterable[tuple[str, str]]) -> str:
        """All of it, one line each, what never happened marked."""
        names = sorted({*expected, *self.counts})
        width = max((len(f"{kind}: {name}") for kind, name in names), default=0)
        lines = []
        for kind, name in names:
            count = self.counts[kind, name]
            lines.append(f"{f'{kind}: {name}':{width}}  {count if count else 'NEVER':>10}")
        return "\n".join(lines)


def rules_of(*tables: Table) -> set[tuple[str, str]]:
    """Every rule of these tables, as `Coverage` counts them."""
    return {(table.name, name) for table in tables for name in table.rules}
