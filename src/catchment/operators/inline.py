"""How each function is written where it is used: the operators, and all else that is shorter than a call.

A writer asks for its arguments in the order in which they are to run, and each once; a second use is of a name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from catchment.operators.builtins import DAY_US, fail_domain, fail_zero, floor_to, greatest, least, overflow, stepper
from catchment.program.facts import INT64_MAX, INT64_MIN, Analysis
from catchment.program.functions import common
from catchment.program.nodes import Call, Literal, Node
from catchment.program.types import FLOAT, INT, DataType

__all__ = ["KNOWN", "LAST_FIRST", "WRITTEN", "Arguments", "among", "as_float", "constant", "is_atom", "stepper"]


class Writer(Protocol):
    """What the writers below need of an emitter."""

    analysis: Analysis

    def promoted(self, node: Node, to: DataType) -> str: ...
    def assign(self) -> str: ...
    def twice(self, text: str) -> tuple[str, str]: ...
    def bind(self, name: str, thing: Any) -> str: ...


def constant(value: bool | int | float | str | None) -> str:
    """A literal's source; a negative number in brackets, because `-1 .x` and `-1 ** 2` read otherwise."""
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


def is_atom(text: str) -> bool:
    """Whether repeating the source costs nothing."""
    return text.isidentifier() or text.isdecimal()


def as_float(text: str) -> str:
    """An int's source as a float: the nearest one, as every engine converts it."""
    return f"({text} * 1.0)"


class Arguments:
    """The arguments of a strict function, none of them null any more: those that were tested are names by now."""

    def __init__(self, emitter: Writer, node: Node, args: tuple[Node, ...], names: dict[int, str]) -> None:
        self._emitter = emitter
        self._args = args
        self._names = names
        self._next = 0
        self._wanted = _wanted(emitter.analysis, node, args)

    def at(self, index: int) -> str:
        """Source of one argument."""
        node = self._args[index]
        name = self._names.get(index)
        if name is None:
            return self._emitter.promoted(node, self._wanted or self._emitter.analysis[node].type)
        whole = self._wanted == FLOAT and self._emitter.analysis[node].type == INT
        return as_float(name) if whole else name

    def next(self) -> str:
        """Source of the next argument."""
        self._next += 1
        return self.at(self._next - 1)

    def rest(self) -> list[str]:
        """Source of all that are left."""
        return [self.next() for _ in range(self._next, len(self._args))]


# What takes only floats, and what decides by its arguments' common type.
_OF_FLOATS = frozenset(
    (
        *("is_nan", "sqrt", "exp", "ln", "pow", "sin", "cos", "atan2", "radians", "degrees"),
        *("floor", "ceil", "round", "round_to", "distance_m", "div"),
    )
)
_OF_ONE_TYPE = frozenset(
    ("add", "sub", "mul", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge", "least", "greatest")
)


def _wanted(analysis: Analysis, node: Node, args: tuple[Node, ...]) -> DataType | None:
    if not isinstance(node, Call):
        return None
    if node.function in _OF_FLOATS:
        return FLOAT
    if node.function in _OF_ONE_TYPE:
        return common(tuple(analysis[arg].type for arg in args))
    return None


def among(value: Any, candidates: tuple[Any, ...]) -> bool | None:
    """SQL's IN."""
    if value is None:
        return None
    for candidate in candidates:
        # Not Python's `in`, which takes a NaN for equal to itself.
        if value == candidate:
            return True
    return None if None in candidates else False


def _known(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def chosen(left: Any, right: Any) -> Any:
        if left is None:
            return right
        return left if right is None else choose(left, right)

    return chosen


KNOWN: dict[str, Callable[[Any, Any], Any]] = {"least": _known(least), "greatest": _known(greatest)}
"""`least` and `greatest` of values that may be null, which they skip."""

LAST_FIRST = frozenset({"div", "floordiv", "mod", "contains"})
"""Functions whose source runs the last argument before the first."""


def _checked(emitter: Writer, node: Node, text: str) -> str:
    """A whole number tested to fit 64 bits, if it may not; the test is chosen to cost least."""
    facts = emitter.analysis[node]
    if not (facts.whole and facts.fails_here):
        return text
    high, low = facts.high == INT64_MAX, facts.low == INT64_MIN
    name = emitter.assign()
    # Most cheaply by bits, which also stops at the one number that has 64 and fits: overflow() lets it pass.
    test = ".bit_length() > 63" if high and low else f" > {INT64_MAX}" if high else f" < {INT64_MIN}"
    return f"({emitter.bind('overflow', overflow)}({name}) if ({name} := {text}){test} else {name})"


def _arithmetic(operator: str) -> Callable[[Writer, Call, Arguments], str]:
    def write(emitter: Writer, node: Call, args: Arguments) -> str:
        left = args.next()
        return _checked(emitter, node, f"({left} {operator} {args.next()})")

    return write


def _comparison(operator: str) -> Callable[[Writer, Call, Arguments], str]:
    return lambda emitter, node, args: f"({args.next()} {operator} {args.next()})"


def _quotient(operator: str) -> Callable[[Writer, Call, Arguments], str]:
    def write(emitter: Writer, node: Call, args: Arguments) -> str:
        dividend, divisor = (emitter.analysis[arg] for arg in node.args)
        value = node.args[1].value if isinstance(node.args[1], Literal) else None
        if value or (divisor.whole and not divisor.low <= 0 <= divisor.high):
            text = f"({args.at(0)} {operator} {args.at(1)})"
            guard = ""
        else:
            first, again = emitter.twice(args.at(1))
            text = f"({args.at(0)} {operator} {again})"
            guard = f"{text} if {first} else {emitter.bind('fail_zero', fail_zero)}()"
        # Only the least number by -1 leaves the 64 bits.
        leaves = operator == "//" and dividend.whole and dividend.low == INT64_MIN and divisor.low <= -1 <= divisor.high
        if not leaves:
            return f"({guard})" if guard else text
        name = emitter.assign()
        checked = f"({emitter.bind('overflow', overflow)}({name}) if ({name} := {text}) > {INT64_MAX} else {name})"
        return f"({checked}{guard.removeprefix(text)})" if guard else checked

    return write


def _negate(emitter: Writer, node: Call, args: Arguments) -> str:
    return _checked_above(emitter, node, f"(-{args.next()})")


def _absolute(emitter: Writer, node: Call, args: Arguments) -> str:
    return _checked_above(emitter, node, f"{emitter.bind('abs', abs)}({args.next()})")


def _checked_above(emitter: Writer, node: Node, text: str) -> str:
    if not emitter.analysis[node].fails_here:
        return text
    name = emitter.assign()
    return f"({emitter.bind('overflow', overflow)}({name}) if ({name} := {text}) > {INT64_MAX} else {name})"


def _is_nan(emitter: Writer, node: Call, args: Arguments) -> str:
    first, again = emitter.twice(args.next())
    return f"({first} != {again})"


def _of_domain(test: str, function: Callable[[float], float]) -> Callable[[Writer, Call, Arguments], str]:
    def write(emitter: Writer, node: Call, args: Arguments) -> str:
        called = emitter.bind(function.__name__, function)
        if not emitter.analysis[node].fails_here:
            return f"{called}({args.next()})"
        first, again = emitter.twice(args.next())
        return f"({emitter.bind('fail_domain', fail_domain)}() if {first} {test} else {called}({again}))"

    return write


def _chosen(operator: str, function: Callable[[Any, Any], Any]) -> Callable[[Writer, Call, Arguments], str]:
    def write(emitter: Writer, node: Call, args: Arguments) -> str:
        if emitter.analysis[node].type == FLOAT:
            return f"{emitter.bind(function.__name__, function)}({args.next()}, {args.next()})"
        first, again = emitter.twice(args.next())
        second, second_again = emitter.twice(args.next())
        return f"({again} if {first} {operator} {second} else {second_again})"

    return write


def _concat(emitter: Writer, node: Call, args: Arguments) -> str:
    return f"({' + '.join(args.rest())})"


def _contains(emitter: Writer, node: Call, args: Arguments) -> str:
    part = args.at(1)
    return f"({part} in {args.at(0)})"


def _method(name: str) -> Callable[[Writer, Call, Arguments], str]:
    def write(emitter: Writer, node: Call, args: Arguments) -> str:
        of = args.next()
        return f"{of}.{name}({', '.join(args.rest())})"

    return write


def _clock(unit_us: int, units: int, shift: int = 0) -> Callable[[Writer, Call, Arguments], str]:
    def write(emitter: Writer, node: Call, args: Arguments) -> str:
        counted = f"{args.next()} // {unit_us}"
        return f"(({counted} + {shift}) % {units})" if shift else f"({counted} % {units})"

    return write


def _floor_to(emitter: Writer, node: Call, args: Arguments) -> str:
    every = node.args[1]
    if not (isinstance(every, Literal) and isinstance(every.value, int) and every.value > 0):
        return f"{emitter.bind('floor_to', floor_to)}({args.next()}, {args.next()})"
    first, again = emitter.twice(args.next())
    return _checked(emitter, node, f"({first} - {again} % {args.next()})")


WRITTEN: dict[str, Callable[[Any, Call, Arguments], str]] = {
    "add": _arithmetic("+"),
    "sub": _arithmetic("-"),
    "mul": _arithmetic("*"),
    "div": _quotient("/"),
    "floordiv": _quotient("//"),
    "mod": _quotient("%"),
    "neg": _negate,
    "abs": _absolute,
    "eq": _comparison("=="),
    "ne": _comparison("!="),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "not": lambda emitter, node, args: f"(not {args.next()})",
    "is_nan": _is_nan,
    "nan": lambda emitter, node, args: emitter.bind("nan", math.nan),
    "infinity": lambda emitter, node, args: emitter.bind("infinity", math.inf),
    "sqrt": _of_domain("< 0.0", math.sqrt),
    "ln": _of_domain("<= 0.0", math.log),
    "least": _chosen("<=", least),
    "greatest": _chosen(">=", greatest),
    "concat": _concat,
    "trim": lambda emitter, node, args: f"{args.next()}.strip(' ')",
    "upper": _method("upper"),
    "lower": _method("lower"),
    "starts_with": _method("startswith"),
    "ends_with": _method("endswith"),
    "contains": _contains,
    "hour": _clock(3_600_000_000, 24),
    "minute": _clock(60_000_000, 60),
    "second": _clock(1_000_000, 60),
    # 1 January 1970 was a Thursday.
    "weekday": _clock(DAY_US, 7, shift=3),
    "floor_to": _floor_to,
}
"""Functions whose source is written in place; all others are called (`builtins.CALLS`)."""
