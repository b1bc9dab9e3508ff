"""Where a database does not mean what we mean, though the text is printed for it: by function, with the reason.

Tests run every golden vector there and fail when a difference is missing here, and when one is gone (PostgreSQL's only
where a server is installed). What fails a row here raises an error there, or is null.
"""

from __future__ import annotations

_NAN = "NaN equals itself and is greater than all numbers"
_ZERO = "a zero keeps its sign"
_YEARS = "instants outside its calendar are refused"
_CASE = "letters map to one letter each, so ß stays and a last sigma is as any other"
_ENDS = "an error near the ends of 64 bits, where a step of the computation overflows"
_RANGE = "an error where a float overflows or underflows"

_SHARED: dict[str, str] = {
    "eq": _NAN,
    "ne": _NAN,
    "lt": _NAN,
    "le": _NAN,
    "gt": _NAN,
    "ge": _NAN,
    "in_": _NAN,
    "null_if": _NAN,
    "floor": _ZERO,
    "ceil": _ZERO,
    "round": _ZERO,
    "round_to": f"{_ZERO}; a step that is a field is not inverted, so last digits may differ",
    "floordiv": f"floats: the floor of the quotient; ints: {_ENDS}",
    "mod": f"floats: by the quotient, so an infinite divisor gives NaN; ints: {_ENDS}",
    "substring": "a start before the text, or a negative length, counts from the end or is an error",
    "item": "a position beyond 32 bits may be an error, and a negative one counts from the end",
}
_DATABASES: dict[str, str] = {
    **_SHARED,
    "atan2": _ZERO,
    "lower": _CASE,
    "upper": _CASE,
    "year": _YEARS,
    "month": _YEARS,
    "day": _YEARS,
}

DIFFERENCES: dict[str, dict[str, str]] = {
    "spark": {
        **_SHARED,
        "floor": "an error beyond 64 bits",
        "ceil": "an error beyond 64 bits",
        "is_nan": "null is not NaN, rather than unknown",
        "pow": "1 to the power of NaN or of an infinity is NaN",
    },
    "duckdb": _DATABASES,
    "postgres": {
        **_DATABASES,
        "add": _RANGE,
        "sub": _RANGE,
        "mul": _RANGE,
        "div": _RANGE,
        "exp": _RANGE,
        "pow": _RANGE,
        "sin": "an error of an infinity",
        "cos": "an error of an infinity",
        "distance_m": "an error of an infinity",
        "cast_str_to_float": _RANGE,
    },
}
"""By dialect, then by function or cast. What the Spark engine runs has texts of its own, and no differences."""

UNWRITABLE: dict[str, frozenset[str]] = {
    "spark": frozenset(),
    "duckdb": frozenset({"crc32"}),
    "postgres": frozenset({"crc32"}),
}
"""Functions that a dialect has nothing for: printing them is refused."""
