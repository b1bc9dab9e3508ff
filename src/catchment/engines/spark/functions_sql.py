"""SQL of each function's value for Spark. It raises on no row: where the function fails, it is null or of no account.

Spark differs from our meaning in this, and the texts make up for it: NaN equals itself and is greater than all (here it
compares false), `%` has the sign of the dividend, `div` truncates, `floor` gives a BIGINT, `least` and `greatest` pass
over nulls, `isnan(null)` is false. Where facts or constants make that needless, the plain operator is written.
"""

from __future__ import annotations

from collections.abc import Callable

from catchment.engines.spark.sql_text import Operands, literal, text
from catchment.program.facts import INT64_MIN
from catchment.program.resolution import per_unit
from catchment.program.types import DURATION, FLOAT, INSTANT, INT, STR

LEAST_WHOLE = f"({INT64_MIN}L)"
NAN = "CAST('NaN' AS DOUBLE)"
INFINITY = "CAST('Infinity' AS DOUBLE)"
_WHOLE_FLOATS = "9007199254740992.0D"  # beyond it every float is a whole number
_EARTH_DIAMETER_M = "12742017.6D"
DAY_US = 86_400_000_000

Write = Callable[[Operands], str]


def _arithmetic(operator: str, trying: str) -> Write:
    def write(of: Operands) -> str:
        kind = FLOAT if of.result.type == FLOAT else None
        left, right = (of.a(0, kind), of.a(1, kind)) if kind else (of[0], of[1])
        return f"{trying}({left}, {right})" if of.result.fails_here else f"({left} {operator} {right})"

    return write


def _divide(of: Operands) -> str:
    kind = FLOAT if of.common == INT or of.common == FLOAT else None
    left, right = (of.a(0, kind), of.a(1, kind)) if kind else (f"CAST({of[0]} AS DOUBLE)", f"CAST({of[1]} AS DOUBLE)")
    return f"try_divide({left}, {right})" if of.result.fails_here else f"({left} / {right})"


def _modulo(of: Operands) -> str:
    left, right = of.a(0), of.a(1)
    divisor = of.constant(1)
    if of.common == FLOAT:
        if divisor is not None and divisor > 0:
            rest = f"{left} % {right}"
            # Adding 0.0 takes the sign from a zero.
            return f"(CASE WHEN {rest} < 0D THEN {rest} + {right} ELSE {rest} + 0D END)"
        rest = f"try_mod({left}, {right})"
        # The sign of the divisor; not by two constants, which Spark takes for equal.
        zero = f"IF({right} < 0D, - abs({rest}), abs({rest}))"
        differ = f"({rest} < 0D) != ({right} < 0D)"
        return f"(CASE WHEN {rest} = 0D THEN {zero} WHEN {differ} THEN {rest} + {right} ELSE {rest} END)"
    if of.facts[1].low > 0:
        return f"pmod({left}, {right})"
    rest = f"try_mod({left}, {right})"
    differ = f"({rest} < 0L AND {right} > 0L) OR ({rest} > 0L AND {right} < 0L)"
    return f"(CASE WHEN {differ} THEN {rest} + {right} ELSE {rest} END)"


def _floor_divide(of: Operands) -> str:
    if of.common == FLOAT:
        return _floor_divide_floats(of.a(0), of.a(1))
    left, right = of[0], of[1]
    if of.facts[1].low > 0:
        # The sign bit of the remainder is the 1 to take off.
        return f"({left} div {right} + shiftright({left} % {right}, 63))"
    rest = f"try_mod({left}, {right})"
    less = f"CASE WHEN {rest} != 0L AND ({rest} < 0L) != ({right} < 0L) THEN 1L ELSE 0L END"
    quotient = f"{left} div nullif({right}, 0L) - {less}"
    # ANSI mode refuses this one quotient rather than giving null.
    return f"(CASE WHEN {left} = {LEAST_WHOLE} AND {right} = -1L THEN NULL ELSE {quotient} END)"


def _floor_divide_floats(left: str, right: str) -> str:
    """As Python has it: the quotient of what the remainder leaves, which is whole but for rounding."""
    rest = f"try_mod({left}, {right})"
    less = f"CASE WHEN {rest} != 0D AND ({rest} < 0D) != ({right} < 0D) THEN 1D ELSE 0D END"
    quotient = f"(try_divide({left} - {rest}, {right}) - {less})"
    floored = floor_float(quotient)
    nearest = f"CASE WHEN {quotient} - {floored} > 0.5D THEN {floored} + 1D ELSE {floored} END"
    return f"(CASE WHEN {quotient} = 0D THEN try_divide({left}, {right}) * 0D ELSE {nearest} END)"


def floor_float(value: str) -> str:
    """The greatest whole number that is not above, as a float."""
    return f"(CASE WHEN abs({value}) < {_WHOLE_FLOATS} THEN CAST(floor({value}) AS DOUBLE) ELSE {value} END)"


def _ceil(of: Operands) -> str:
    value = of.a(0, FLOAT)
    return f"(CASE WHEN abs({value}) < {_WHOLE_FLOATS} THEN CAST(ceil({value}) AS DOUBLE) ELSE {value} END)"


def _negate(of: Operands) -> str:
    return f"try_subtract(0L, {of[0]})" if of.result.fails_here else f"(- {of[0]})"


def _absolute(of: Operands) -> str:
    return f"abs(nullif({of[0]}, {LEAST_WHOLE}))" if of.result.fails_here else f"abs({of[0]})"


def _compare(operator: str, guarded: int | None) -> Write:
    """`guarded` is the side of which a NaN makes Spark's answer true; None: the answer is wrong where both are NaN."""

    def write(of: Operands) -> str:
        return compare(of, operator, guarded)

    return write


def compare(of: Operands, operator: str, guarded: int | None) -> str:
    """A comparison as IEEE 754 has it, where floats are compared."""
    left, right = of.a(0), of.a(1)
    plain = f"{left} {operator} {right}"
    if of.common != FLOAT:
        return f"({plain})"
    side = guarded if guarded is not None else 0
    harmless = of.facts[side].never_nan or (guarded is None and of.facts[1].never_nan)
    if harmless:
        return f"({plain})"
    value, other = (left, right) if side == 0 else (right, left)
    nullable = of.facts[1 - side].nullable
    if operator == "!=":
        also = f" AND {other} IS NOT NULL" if nullable else ""
        return f"({plain} OR (isnan({value}){also}))"
    # Where the other is null the answer is null, not false.
    unless = f"(NOT isnan({value}) OR {other} IS NULL)" if nullable else f"NOT isnan({value})"
    return f"({plain} AND {unless})"


def _in(of: Operands) -> str:
    value, *candidates = of.all()
    if of.common != FLOAT:
        return f"({value} IN ({', '.join(candidates)}))"
    # Not IN, which in a long list tells -0.0 from 0.0.
    tests = []
    for index, candidate in enumerate(candidates, 1):
        plain = f"{value} = {candidate}"
        if of.facts[0].never_nan or of.facts[index].never_nan:
            tests.append(plain)
        else:
            nullable = of.facts[index].nullable
            tests.append(f"({plain} AND (NOT isnan({value}){f' OR {candidate} IS NULL' if nullable else ''}))")
    return f"({' OR '.join(tests)})"


def _null_if(of: Operands) -> str:
    if of.common != FLOAT:
        return f"nullif({of.a(0)}, {of.a(1)})"
    return f"(CASE WHEN {compare(of, '=', None)} THEN NULL ELSE {of[0]} END)"


def _power(of: Operands) -> str:
    base, exponent = of.a(0, FLOAT), of.a(1, FLOAT)
    if of.constant(1) is not None:
        return f"pow({base}, {exponent})"
    # Java gives NaN where IEEE 754 gives 1.
    one = f"({base} = 1D AND {exponent} IS NOT NULL) OR ({base} = -1D AND abs({exponent}) = {INFINITY})"
    return f"(CASE WHEN {one} THEN 1D ELSE pow({base}, {exponent}) END)"


def _round_to(of: Operands) -> str:
    value, step = of.a(0, FLOAT), of.constant(1)
    if step is not None:
        if of.result.fails_here:
            return "CAST(NULL AS DOUBLE)"
        inverse = per_unit(float(step))
        return _stepped(value, literal(inverse if inverse is not None else float(step), FLOAT), inverse is not None)
    given = of.a(1, FLOAT)
    inverse_sql = f"rint(try_divide(1D, {given}))"
    whole = f"{inverse_sql} >= 1D AND abs({inverse_sql} * {given} - 1D) < 1e-9D"
    usable = f"{given} > 0D AND {given} < {INFINITY}"
    by_inverse, by_step = _stepped(value, inverse_sql, True), _stepped(value, given, False)
    return f"(CASE WHEN {usable} THEN CASE WHEN {whole} THEN {by_inverse} ELSE {by_step} END END)"


def _stepped(value: str, factor: str, inverse: bool) -> str:
    steps = f"{value} * {factor}" if inverse else f"try_divide({value}, {factor})"
    nearest = f"(rint({steps}) + 0D)"
    back = f"try_divide({nearest}, {factor})" if inverse else f"{nearest} * {factor}"
    return f"(CASE WHEN abs({steps}) < {_WHOLE_FLOATS} THEN {back} ELSE {value} END)"


def _distance(of: Operands) -> str:
    lat1, lon1, lat2, lon2 = of.all(FLOAT)
    north = f"pow(sin(radians({lat2} - {lat1}) * 0.5D), 2D)"
    east = f"pow(sin(radians({lon2} - {lon1}) * 0.5D), 2D)"
    half = f"{north} + cos(radians({lat1})) * cos(radians({lat2})) * {east}"
    # At most 1, where rounding went beyond; by `greatest`, because a NaN must pass.
    return of.where_known(f"({_EARTH_DIAMETER_M} * asin(sqrt(- greatest(-1D, - ({half})))))")


def _substring(of: Operands) -> str:
    start, length = of.constant(1), of.constant(2)
    if start is not None and start >= 0 and length is not None:
        return f"substring({of[0]}, {min(start, 2**31 - 2) + 1}, {max(0, min(length, 2**31 - 1))})"
    first = f"CAST(least(greatest({of.a(1, INT)}, 0L), 2147483646L) AS INT) + 1"
    left = f"greatest({of.a(2, INT)}, 0L) + least({of.a(1, INT)}, 0L)"
    many = f"CAST(least(greatest({left}, 0L), 2147483647L) AS INT)"
    return of.where_known(f"substring({of.a(0, STR)}, {first}, {many})")


def _calendar(part: str) -> Write:
    return lambda of: f"CAST({part}(timestamp_micros({of.a(0, INSTANT)})) AS BIGINT)"


def _clock(within_us: int, unit_us: int) -> Write:
    return lambda of: f"(pmod({of.a(0, INSTANT)}, {within_us}L) div {unit_us}L)"


def _weekday(of: Operands) -> str:
    # 1 January 1970 was a Thursday.
    week = f"{7 * DAY_US}L"
    return f"((pmod({of.a(0, INSTANT)}, {week}) + {3 * DAY_US}L) % {week} div {DAY_US}L)"


def _floor_to(of: Operands) -> str:
    at, every = of.a(0, INSTANT), of.a(1, DURATION)
    if of.facts[1].low > 0:
        rest = f"pmod({at}, {every})"
        return f"try_subtract({at}, {rest})" if of.result.fails_here else f"({at} - {rest})"
    return f"(CASE WHEN {every} > 0L THEN try_subtract({at}, pmod({at}, nullif(greatest({every}, 1L), 0L))) END)"


# A day inside the years 1 to 9999, so that no time zone leads out of them.
ZONED = "BETWEEN (-62135510400000000L) AND 253402214399999999L"


def is_zone(of: Operands) -> str:
    """Whether the second argument names a time zone: Area/City or UTC, and one that this Java knows."""
    name = of.a(1, STR)
    pattern = text(r"\A(?!posix/|right/)([A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)+|UTC)\z")
    known = f"try_cast(concat('2000-01-01T00:00:00 ', {name}) AS TIMESTAMP_LTZ) IS NOT NULL"
    return f"({name} RLIKE {pattern} AND {known})"


def _in_zone(of: Operands) -> str:
    at = of.a(0, INSTANT)
    there = f"unix_micros(from_utc_timestamp(timestamp_micros({at}), {of.a(1, STR)}))"
    return f"(CASE WHEN {is_zone(of)} AND {at} {ZONED} THEN {there} END)"


def _item(of: Operands) -> str:
    at = of.constant(1)
    if at is not None:
        return f"get({of[0]}, {at if 0 <= at < 2**31 else -1})"
    index = f"CAST(CASE WHEN {of.a(1, INT)} BETWEEN 0L AND 2147483647L THEN {of.a(1, INT)} ELSE -1L END AS INT)"
    return f"get({of[0]}, {index})"


def _called(name: str, *kinds: object) -> Write:
    """A function of Spark that means the same."""
    return lambda of: f"{name}({', '.join(of.all(kinds[0] if kinds else None))})"  # type: ignore[arg-type]


def _counted(name: str) -> Write:
    return lambda of: f"CAST({name}({of.a(0)}) AS BIGINT)"


def _if(of: Operands) -> str:
    return f"IF({of[0]}, {of.a(1, of.result.type)}, {of.a(2, of.result.type)})"


VALUES: dict[str, Write] = {
    "add": _arithmetic("+", "try_add"),
    "sub": _arithmetic("-", "try_subtract"),
    "mul": _arithmetic("*", "try_multiply"),
    "div": _divide,
    "floordiv": _floor_divide,
    "mod": _modulo,
    "neg": _negate,
    "abs": _absolute,
    "eq": _compare("=", None),
    "ne": _compare("!=", None),
    "lt": _compare("<", 1),
    "le": _compare("<=", 1),
    "gt": _compare(">", 0),
    "ge": _compare(">=", 0),
    "same": lambda of: f"({of.a(0)} <=> {of.a(1)})",
    "in_": _in,
    "and": lambda of: f"({of[0]} AND {of[1]})",
    "or": lambda of: f"({of[0]} OR {of[1]})",
    "not": lambda of: f"(NOT {of[0]})",
    "is_null": lambda of: f"({of[0]} IS NULL)",
    "is_nan": lambda of: f"({of.a(0, FLOAT)} = {NAN})",
    "coalesce": lambda of: f"coalesce({', '.join(of.all(of.result.type))})",
    "null_if": _null_if,
    "if_": _if,
    "nan": lambda of: NAN,
    "infinity": lambda of: INFINITY,
    "sqrt": _called("sqrt", FLOAT),
    "exp": _called("exp", FLOAT),
    "ln": _called("ln", FLOAT),
    "pow": _power,
    "sin": _called("sin", FLOAT),
    "cos": _called("cos", FLOAT),
    "atan2": _called("atan2", FLOAT),
    "radians": _called("radians", FLOAT),
    "degrees": _called("degrees", FLOAT),
    "floor": lambda of: floor_float(of.a(0, FLOAT)),
    "ceil": _ceil,
    "round": lambda of: f"(rint({of.a(0, FLOAT)}) + 0D)",
    "round_to": _round_to,
    "least": _called("least"),
    "greatest": _called("greatest"),
    "distance_m": _distance,
    "concat": _called("concat", STR),
    "length": _counted("length"),
    "upper": _called("upper", STR),
    "lower": _called("lower", STR),
    "trim": _called("trim", STR),
    "substring": _substring,
    "starts_with": _called("startswith", STR),
    "ends_with": _called("endswith", STR),
    "contains": _called("contains", STR),
    "replace": _called("replace", STR),
    "unhex": _called("unhex", STR),
    "crc32": lambda of: f"crc32(CAST({of.a(0, STR)} AS BINARY))",
    "year": _calendar("year"),
    "month": _calendar("month"),
    "day": _calendar("day"),
    "hour": _clock(DAY_US, 3_600_000_000),
    "minute": _clock(3_600_000_000, 60_000_000),
    "second": _clock(60_000_000, 1_000_000),
    "weekday": _weekday,
    "floor_to": _floor_to,
    "in_zone": _in_zone,
    "size": _counted("size"),
    "item": _item,
}
"""SQL of each function, by its name."""
