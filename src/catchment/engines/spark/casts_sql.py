"""SQL of casts for Spark: the value, which is null or of no account where the cast fails, and the reason why it does.

Spark reads more than our casts do (spaces, `1d`, dates without a zone), so a pattern decides what counts as a number or
as an instant, and Spark converts it.
"""

from __future__ import annotations

from collections.abc import Callable

from catchment.engines.spark.failures_sql import reasons
from catchment.engines.spark.sql_text import Operands, text
from catchment.program.row_error import INVALID_CAST, OVERFLOW

# Java's $ would pass a line's end; \z does not.
_INT = text(r"\A[+-]?[0-9]+\z")
_FLOAT = text(r"\A(?i:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?|nan)\z")
_INSTANT = text(
    r"\A(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])\z"
)
_CALENDAR = "BETWEEN (-62135596800000000L) AND 253402300799999999L"
_RFC_3339 = text("yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")


def _as(kind: str) -> Callable[[Operands], str]:
    return lambda of: f"CAST({of[0]} AS {kind})"


def _try(kind: str) -> Callable[[Operands], str]:
    return lambda of: f"try_cast({of[0]} AS {kind})"


def _unchanged(of: Operands) -> str:
    return of[0]


CAST_VALUES: dict[tuple[str, str], Callable[[Operands], str]] = {
    ("int", "float"): _as("DOUBLE"),
    ("float", "int"): _try("BIGINT"),
    ("int", "str"): _as("STRING"),
    ("str", "int"): _try("BIGINT"),
    ("str", "float"): _try("DOUBLE"),
    ("bool", "int"): _as("BIGINT"),
    ("bool", "str"): _as("STRING"),
    ("int", "instant"): _unchanged,
    ("instant", "int"): _unchanged,
    ("int", "duration"): _unchanged,
    ("duration", "int"): _unchanged,
    ("instant", "str"): lambda of: (
        f"(CASE WHEN {of[0]} {_CALENDAR} THEN date_format(timestamp_micros({of[0]}), {_RFC_3339}) END)"
    ),
    ("str", "instant"): lambda of: f"unix_micros(try_cast({of[0]} AS TIMESTAMP_LTZ))",
}
"""SQL of the converted value."""

CAST_FAILURES: dict[tuple[str, str], Callable[[Operands], str]] = {
    ("float", "int"): lambda of: reasons(
        (f"isnan({of[0]})", INVALID_CAST),
        (f"NOT ({of[0]} >= -9223372036854775808D AND {of[0]} < 9223372036854775808D)", OVERFLOW),
    ),
    ("str", "int"): lambda of: reasons(
        (f"NOT ({of[0]} RLIKE {_INT})", INVALID_CAST),
        (f"{of.own} IS NULL{of.known()}", OVERFLOW),
    ),
    ("str", "float"): lambda of: reasons((f"NOT ({of[0]} RLIKE {_FLOAT})", INVALID_CAST)),
    ("instant", "str"): lambda of: reasons((f"{of[0]} NOT {_CALENDAR}", OVERFLOW)),
    ("str", "instant"): lambda of: reasons(
        (f"NOT ({of[0]} RLIKE {_INSTANT})", INVALID_CAST),
        (f"{of.own} IS NULL{of.known()}", INVALID_CAST),
    ),
}
"""SQL of the reason why the cast fails."""
