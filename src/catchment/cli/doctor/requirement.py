"""What the installed product says that it needs, read from its own metadata: `pyproject.toml` is said once.

Knows only the forms that our pyproject.toml uses: `>=`, `<`, `==` with or without `.*`, and one extra.

>>> wanted = parse('pandas>=2.2,<3; extra == "cloud"')
>>> wanted.extra, [wanted.allows(version) for version in ("2.1.4", "2.2", "2.3.3", "3.0.0")]
('cloud', [False, True, True, False])
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from importlib.metadata import requires

from catchment.errors import InternalError

_FORM = re.compile(
    r"""(?P<name>[\w.-]+) (?:\[[^\]]*\])? \s* (?P<bounds>[^;]*?) \s* (?:;\s*extra\s*==\s*['"](?P<extra>\w+)['"])?""",
    re.VERBOSE,
)
_BOUND = re.compile(r"(>=|==|<)\s*(\d+(?:\.\d+)*)(\.\*)?")
_COMPARISONS = {">=": operator.ge, "<": operator.lt, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A distribution, the versions that will do, and the extra that asks for it."""

    name: str
    bounds: tuple[tuple[str, tuple[int, ...]], ...]
    extra: str | None

    def allows(self, version: str) -> bool:
        """Whether this version will do. What follows the numbers (`rc1`, `.post2`, `+local`) is not looked at."""
        leading = re.match(r"\d+(?:\.\d+)*", version)
        numbers = tuple(int(part) for part in leading.group().split(".")) if leading else ()
        # `==4.3.*` and `<3` both mean "in the places that are given": 3.0.1 is not below 3.
        return all(_COMPARISONS[sign](_places(numbers, len(bound)), bound) for sign, bound in self.bounds)


def parse(line: str) -> Requirement:
    """One line of `Requires-Dist`."""
    form = _FORM.fullmatch(line.strip())
    bounds = [_BOUND.fullmatch(bound.strip()) for bound in form["bounds"].split(",") if bound] if form else []
    if form is None or None in bounds:
        raise InternalError(
            "E020",
            f"the requirement {line!r} is in a form that `catchment doctor` does not know",
            why="it reads >=, < and == from the product's own metadata, and nothing else was in pyproject.toml",
            fix="write the requirement with these signs, or teach catchment.cli.doctor.requirement the new one",
        )
    parsed = tuple((bound[1], tuple(map(int, bound[2].split(".")))) for bound in bounds if bound is not None)
    return Requirement(form["name"], parsed, form["extra"])


def requirements() -> list[Requirement]:
    """All that the installed product asks for."""
    return [parse(line) for line in requires("catchment") or ()]


def _places(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (numbers + (0,) * count)[:count]
