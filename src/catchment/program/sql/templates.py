"""How each database says what is no operator: by function, then by dialect ("" stands for those that are not named).

`:a` to `:d` are the arguments. A form without a dialect is in DuckDB's grammar, and SQLGlot translates it.
"""

from __future__ import annotations

# PostgreSQL multiplies an interval by a float, which holds seconds exactly and microseconds not always.
_EPOCH = "TIMESTAMP 'epoch' + (:a / 1000000) * INTERVAL '1 second' + (:a % 1000000) * INTERVAL '1 microsecond'"


def _calendar(part: str) -> dict[str, str]:
    return {
        "duckdb": f"EXTRACT({part} FROM MAKE_TIMESTAMP(:a))",
        "postgres": f"CAST(EXTRACT({part} FROM {_EPOCH}) AS BIGINT)",
        "spark": f"CAST({part}(TIMESTAMP_MICROS(:a)) AS BIGINT)",
    }


TEMPLATES: dict[str, dict[str, str]] = {
    "div": {"": "CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE)"},
    "div_float": {"": ":a / :b"},
    "floordiv": {
        "duckdb": "(:a - ((:a % :b) + :b) % :b) // :b",
        "postgres": "(:a - MOD(MOD(:a, :b) + :b, :b)) / :b",
        "spark": "(:a - ((:a % :b) + :b) % :b) DIV :b",
    },
    "floordiv_float": {"": "FLOOR(:a / :b)", "spark": "CAST(FLOOR(:a / :b) AS DOUBLE)"},
    "mod": {"": "((:a % :b) + :b) % :b", "postgres": "MOD(MOD(:a, :b) + :b, :b)"},
    "mod_float": {"": "((:a % :b) + :b) % :b", "postgres": ":a - :b * FLOOR(:a / :b)"},
    "abs": {"": "ABS(:a)"},
    "is_nan": {"": "ISNAN(:a)", "postgres": ":a = CAST('NaN' AS DOUBLE PRECISION)"},
    "nan": {"": "CAST('NaN' AS DOUBLE)"},
    "infinity": {"": "CAST('Infinity' AS DOUBLE)"},
    "sqrt": {"": "SQRT(:a)"},
    "exp": {"": "EXP(:a)"},
    "ln": {"": "LN(:a)"},
    "pow": {"": "POWER(:a, :b)"},
    "sin": {"": "SIN(:a)"},
    "cos": {"": "COS(:a)"},
    "atan2": {"": "ATAN2(:a, :b)"},
    "radians": {"": "RADIANS(:a)"},
    "degrees": {"": "DEGREES(:a)"},
    "floor": {"": "FLOOR(:a)", "spark": "CAST(FLOOR(:a) AS DOUBLE)"},
    "ceil": {"": "CEIL(:a)", "spark": "CAST(CEIL(:a) AS DOUBLE)"},
    # PostgreSQL rounds a double to even; the others have a function of their own for that.
    "round": {"duckdb": "ROUND_EVEN(:a, 0)", "postgres": "ROUND(:a)", "spark": "RINT(:a)"},
    "least": {"": "LEAST(:a, :b)"},
    "greatest": {"": "GREATEST(:a, :b)"},
    "distance_m": {
        "": "12742017.6 * ASIN(SQRT(LEAST(1, POWER(SIN(RADIANS(:c - :a) / 2), 2) + COS(RADIANS(:a)) * COS(RADIANS(:c))"
        # What is added is zero, but for a null or a NaN, which LEAST would pass over.
        " * POWER(SIN(RADIANS(:d - :b) / 2), 2)))) + 0 * (:a + :b + :c + :d)",
    },
    "length": {"": "LENGTH(:a)"},
    "upper": {"": "UPPER(:a)"},
    "lower": {"": "LOWER(:a)"},
    "trim": {"": "TRIM(:a)", "duckdb": "TRIM(:a, ' ')"},
    "substring": {"": "SUBSTRING(:a, CAST(:b + 1 AS INT), CAST(:c AS INT))", "duckdb": "SUBSTRING(:a, :b + 1, :c)"},
    "starts_with": {"": "STARTS_WITH(:a, :b)"},
    "ends_with": {"duckdb": "SUFFIX(:a, :b)", "postgres": "RIGHT(:a, LENGTH(:b)) = :b", "spark": "ENDSWITH(:a, :b)"},
    "contains": {"": "CONTAINS(:a, :b)", "postgres": "STRPOS(:a, :b) > 0"},
    "replace": {"": "REPLACE(:a, :b, :c)"},
    "unhex": {"": "UNHEX(:a)", "postgres": "DECODE(:a, 'hex')"},
    "crc32": {"spark": "CRC32(CAST(:a AS BINARY))"},
    "year": _calendar("YEAR"),
    "month": _calendar("MONTH"),
    "day": _calendar("DAY"),
    "in_zone": {
        "duckdb": "EPOCH_US(MAKE_TIMESTAMP(:a) AT TIME ZONE 'UTC' AT TIME ZONE :b)",
        "postgres": f"CAST(EXTRACT(EPOCH FROM ({_EPOCH}) AT TIME ZONE 'UTC' AT TIME ZONE :b) * 1000000 AS BIGINT)",
        "spark": "UNIX_MICROS(FROM_UTC_TIMESTAMP(TIMESTAMP_MICROS(:a), :b))",
    },
    "size": {"duckdb": "LEN(:a)", "postgres": "CARDINALITY(:a)", "spark": "CAST(SIZE(:a) AS BIGINT)"},
    "item": {
        "duckdb": "LIST_EXTRACT(:a, :b + 1)",
        "postgres": "(:a)[:b + 1]",
        "spark": "GET(:a, CAST(:b AS INT))",
    },
}

CASTS: dict[str, dict[str, str]] = {
    # A cast of a float rounds there, and truncates here.
    "float_int": {"": "CAST(TRUNC(:a) AS BIGINT)", "spark": "CAST(:a AS BIGINT)"},
    "bool_int": {"": "CASE WHEN :a THEN 1 WHEN NOT :a THEN 0 END"},
    "instant_str": {
        "duckdb": "STRFTIME(MAKE_TIMESTAMP(:a), '%Y-%m-%dT%H:%M:%S.%fZ')",
        "postgres": f"""TO_CHAR({_EPOCH}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
        "spark": """DATE_FORMAT(TIMESTAMP_MICROS(:a), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")""",
    },
    "str_instant": {
        "duckdb": "EPOCH_US(CAST(:a AS TIMESTAMPTZ))",
        "postgres": "CAST(EXTRACT(EPOCH FROM CAST(:a AS TIMESTAMPTZ)) * 1000000 AS BIGINT)",
        "spark": "UNIX_MICROS(CAST(:a AS TIMESTAMP))",
    },
}
