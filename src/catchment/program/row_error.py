"""Why a row failed: one exception, and a closed set of reasons that read the same on every engine.

An expression that fails does not fail the query: its row is quarantined with the reason, and the query goes on.
Where several parts of an expression fail, the leftmost one is the reason, on every engine.

>>> str(RowError(FUNCTION_FAILED, "KeyError('ada')"))
"function failed: KeyError('ada')"
"""

from __future__ import annotations

OVERFLOW = "overflow"
"""A whole number that 64 bits do not hold, or an instant outside the years 1 to 9999 where a calendar is asked."""
DIVISION_BY_ZERO = "division by zero"
DOMAIN = "domain"
"""A number that the function has no answer for: the root of -1, a step of zero."""
INVALID_CAST = "invalid cast"
"""A text or a NaN that does not say what it is to become."""
INVALID_HEX = "invalid hexadecimal"
UNKNOWN_ZONE = "unknown time zone"
FUNCTION_FAILED = "function failed"
"""A declared Python function raised; the detail says what."""
FUNCTION_RESULT = "function result"
"""A declared Python function returned what its declaration excludes."""
ENDLESS_FEEDBACK = "endless feedback"
"""A feedback edge was still being fed after the rounds that one entry is given."""

REASONS: frozenset[str] = frozenset(
    {
        OVERFLOW,
        DIVISION_BY_ZERO,
        DOMAIN,
        INVALID_CAST,
        INVALID_HEX,
        UNKNOWN_ZONE,
        FUNCTION_FAILED,
        FUNCTION_RESULT,
        ENDLESS_FEEDBACK,
    }
)


class RowError(Exception):
    """This row cannot be computed: `reason` is one of REASONS, `detail` is for people and differs by engine."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)
