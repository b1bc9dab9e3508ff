"""What is known about an expression before any row is seen: its type, whole-number bounds, and whether it can fail.

An engine leaves out the checks that the facts make needless: `at % 60_000_000` never overflows, `x / 2` never divides
by zero, and a chain of them needs no quarantine. The facts are safe: a bound may be wide, never wrong.

>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import INT, Column, Schema
>>> known = Analysis((Schema("P", (Column("n", INT),)),))
>>> hour = Call("mod", (FieldRef("n"), Literal(24, INT)))
>>> known[hour].low, known[hour].high, known[hour].may_fail
(0, 23, False)
>>> known[Call("add", (FieldRef("n"), hour))].may_fail
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from catchment.program.functions import FUNCTIONS
from catchment.program.nodes import Call, Cast, Literal, Node, UserCall, children
from catchment.program.types import DURATION, FLOAT, INSTANT, INT, NULL, DataType, Schema
from catchment.program.typing import infer

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_WHOLE = (INT, INSTANT, DURATION)
_FULL = (INT64_MIN, INT64_MAX)
_TEXT_LENGTH_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Facts:
    """`low`..`high` bound a whole number; `fails_here` is about the node alone, `may_fail` also about what is below."""

    type: DataType
    nullable: bool
    low: int
    high: int
    fails_here: bool
    may_fail: bool
    never_nan: bool

    @property
    def whole(self) -> bool:
        """An int, an instant or a duration: 64 bits on every engine."""
        return self.type in _WHOLE


class Analysis:
    """Facts of expressions over elements of these schemas, each found once."""

    def __init__(self, schemas: tuple[Schema, ...]) -> None:
        self.schemas = schemas
        self._known: dict[Node, Facts] = {}

    def __getitem__(self, node: Node) -> Facts:
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._find(node)
        return known

    def _find(self, node: Node) -> Facts:
        below = tuple(self[child] for child in children(node))
        typed = infer(node, self.schemas)
        low, high = _FULL
        fails_here = False
        never_nan = typed.type != FLOAT
        match node:
            case Literal(value):
                never_nan = True
                if isinstance(value, int):
                    low = high = int(value)
            case Cast():
                given = below[0]
                low, high = (given.low, given.high) if given.whole else (0, 1) if str(given.type) == "bool" else _FULL
                fails_here = given.type not in (node.to, NULL) and _cast_fails(str(given.type), str(node.to))
                never_nan = never_nan or given.whole
            case UserCall():
                fails_here = True
            case Call(name, args):
                low, high, overflows = _bounds(name, typed.type, below)
                fails_here = overflows or _fails(name, args, below)
                never_nan = never_nan or name in _NEVER_NAN
            case _:
                pass
        return Facts(
            type=typed.type,
            nullable=typed.nullable,
            low=low,
            high=high,
            fails_here=fails_here,
            may_fail=fails_here or any(facts.may_fail for facts in below),
            never_nan=never_nan,
        )


def can_fail(node: Node, schemas: tuple[Schema, ...]) -> bool:
    """Whether a row can fail in this expression, so that the step which holds it needs a way to quarantine."""
    return Analysis(schemas)[node].may_fail


_NEVER_NAN = frozenset({"infinity"})


def _cast_fails(given: str, to: str) -> bool:
    return given == "str" or (given, to) in {("float", "int"), ("instant", "str")}


def _fails(name: str, args: tuple[Node, ...], below: tuple[Facts, ...]) -> bool:
    """Whether the function itself may fail for a reason other than overflow of 64 bits, given what is below."""
    if not FUNCTIONS[name].may_fail:
        return False
    match name:
        case "add" | "sub" | "mul" | "neg" | "abs":
            return False
        case "div" | "floordiv" | "mod":
            return not _never_zero(args[1], below[1])
        case "pow":
            power = _number(args[1])
            return power is None or power < 0 or not float(power).is_integer()
        case "sqrt":
            root = _number(args[0])
            return root is None or root < 0
        case "ln":
            value = _number(args[0])
            return value is None or value <= 0
        case "round_to":
            step = _number(args[1])
            return step is None or not (step > 0 and math.isfinite(step))
        case "floor_to":
            return below[1].low <= 0
        case _:
            return True


def _number(node: Node) -> int | float | None:
    return node.value if isinstance(node, Literal) and isinstance(node.value, int | float) else None


def _never_zero(node: Node, facts: Facts) -> bool:
    if facts.whole:
        return not facts.low <= 0 <= facts.high
    value = _number(node)
    return value is not None and value != 0


Bounds = tuple[int, int]


def _bounds(name: str, kind: DataType, below: tuple[Facts, ...]) -> tuple[int, int, bool]:
    """Bounds of a whole-number result within 64 bits, and whether the true result may lie outside."""
    if name in _KNOWN_RANGES:
        return (*_KNOWN_RANGES[name], False)
    find = _RANGES.get(name)
    if find is None or kind not in _WHOLE or not all(facts.whole or facts.type == NULL for facts in below[-2:]):
        return (*_FULL, False)
    low, high = find(*((facts.low, facts.high) for facts in below[-2:]))
    return max(low, INT64_MIN), min(high, INT64_MAX), low < INT64_MIN or high > INT64_MAX


def _corners(operate: Callable[[int, int], int], left: Bounds, right: Bounds) -> Bounds:
    values = [operate(a, b) for a in left for b in right]
    return min(values), max(values)


def _floor_divide(left: Bounds, right: Bounds) -> Bounds:
    # On either side of zero the quotient moves one way with each operand, so the extremes are at the corners.
    divisors = [b for b in (*right, -1, 1) if b != 0 and right[0] <= b <= right[1]]
    quotients = [a // b for a in left for b in divisors] or [0]
    return min(quotients), max(quotients)


def _modulo(_: Bounds, right: Bounds) -> Bounds:
    return min(right[0] + 1, 0), max(right[1] - 1, 0)


def _absolute(given: Bounds) -> Bounds:
    low, high = given
    return 0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def _floor_to(left: Bounds, right: Bounds) -> Bounds:
    return left[0] - max(right[1] - 1, 0), left[1]


_RANGES: dict[str, Callable[..., Bounds]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: _corners(lambda x, y: x * y, a, b),
    "floordiv": _floor_divide,
    "mod": _modulo,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "floor_to": _floor_to,
    # The last two arguments of if_ are its branches.
    "if_": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
}

_KNOWN_RANGES: dict[str, Bounds] = {
    "year": (-290308, 294247),
    "month": (1, 12),
    "day": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "weekday": (0, 6),
    "length": (0, _TEXT_LENGTH_MAX),
    "size": (0, _TEXT_LENGTH_MAX),
    "crc32": (0, 2**32 - 1),
}
