"""SQL as a way to write and to read expressions: a string of it is accepted wherever an expression is.

SQLGlot parses and prints; its trees end here and are stored nowhere. `parse` gives our nodes, whose meaning is that of
`tests/golden` whatever a database would do: `/` gives a float, `%` has the sign of the divisor, text is measured in
code points. `to_sql` prints a node for Spark, PostgreSQL or DuckDB. This package is imported when a string is met, so a
device whose plan came ready-made never loads SQLGlot.
"""

from catchment.program.sql.reading import parse
from catchment.program.sql.writing import to_sql

__all__ = ["parse", "to_sql"]
