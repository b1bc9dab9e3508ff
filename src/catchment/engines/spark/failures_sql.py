"""SQL that says why a function fails on Spark: null where it does not, else the reason of `program.row_error`.

The arguments themselves are known not to have failed, since their reasons come first. A null among them is no failure.
"""

from __future__ import annotations

from collections.abc import Callable

from catchment.engines.spark.functions_sql import INFINITY, LEAST_WHOLE, ZONED, is_zone
from catchment.engines.spark.sql_text import Operands, text
from catchment.program.facts import INT64_MIN
from catchment.program.row_error import DIVISION_BY_ZERO, DOMAIN, INVALID_HEX, OVERFLOW, UNKNOWN_ZONE
from catchment.program.types import DURATION, FLOAT, INSTANT, STR


def reasons(*branches: tuple[str, str]) -> str:
    """The reason of the first condition that holds."""
    return f"CASE {' '.join(f'WHEN {condition} THEN {text(reason)}' for condition, reason in branches)} END"


def _lost(of: Operands) -> str:
    """Null, though no argument is: 64 bits did not hold it."""
    return reasons((f"{of.own} IS NULL{of.known()}", OVERFLOW))


def _divide(of: Operands) -> str:
    zero = (f"{of[1]} = 0{of.known(1)}", DIVISION_BY_ZERO)
    leaves = of.result.whole and of.facts[0].low == INT64_MIN and of.facts[1].low <= -1 <= of.facts[1].high
    may_be_zero = not (of.facts[1].whole and not of.facts[1].low <= 0 <= of.facts[1].high)
    overflow = (f"{of[0]} = {LEAST_WHOLE} AND {of[1]} = -1", OVERFLOW)
    return reasons(*([zero] if may_be_zero else []), *([overflow] if leaves else []))


def _remainder(of: Operands) -> str:
    return reasons((f"{of[1]} = 0{of.known(1)}", DIVISION_BY_ZERO))


def _least_whole(of: Operands) -> str:
    return reasons((f"{of[0]} = {LEAST_WHOLE}", OVERFLOW))


def _power(of: Operands) -> str:
    base, exponent = of.a(0, FLOAT), of.a(1, FLOAT)
    root = f"{base} < 0D AND {base} > - {INFINITY} AND abs({exponent}) < {INFINITY} AND {exponent} != rint({exponent})"
    return reasons((f"({base} = 0D AND {exponent} < 0D) OR ({root})", DOMAIN))


def _round_to(of: Operands) -> str:
    step = of.a(1, FLOAT)
    return reasons((f"NOT ({step} > 0D AND {step} < {INFINITY}){of.known(1)}", DOMAIN))


def _floor_to(of: Operands) -> str:
    lost = (f"{of.own} IS NULL{of.known()}", OVERFLOW)
    if of.facts[1].low > 0:
        return reasons(lost)
    return reasons((f"{of.a(1, DURATION)} <= 0L{of.known(1)}", DOMAIN), lost)


def _unhex(of: Operands) -> str:
    # Spark reads an odd digit as if a zero stood before it.
    return reasons((f"({of.own} IS NULL OR length({of.a(0, STR)}) % 2 = 1){of.known()}", INVALID_HEX))


def _in_zone(of: Operands) -> str:
    outside = f"{of.a(0, INSTANT)} NOT {ZONED}{of.known(0)}"
    return reasons((f"NOT {is_zone(of)}{of.known()}", UNKNOWN_ZONE), (outside, OVERFLOW))


FAILURES: dict[str, Callable[[Operands], str]] = {
    "add": _lost,
    "sub": _lost,
    "mul": _lost,
    "div": _remainder,
    "floordiv": _divide,
    "mod": _remainder,
    "neg": _least_whole,
    "abs": _least_whole,
    "sqrt": lambda of: reasons((f"{of.a(0, FLOAT)} < 0D", DOMAIN)),
    "ln": lambda of: reasons((f"{of.a(0, FLOAT)} <= 0D", DOMAIN)),
    "pow": _power,
    "round_to": _round_to,
    "floor_to": _floor_to,
    "unhex": _unhex,
    "in_zone": _in_zone,
}
"""SQL of the reason, by the function's name; asked for only where the facts say that it may fail."""
