"""Reading what a Parquet sink keeps: only what its list names, so nothing half-written and nothing twice.

    open_table("kept/trips").rows()            all results, as an Arrow table
    open_table("kept/trips").rows(latest=True) of each key and window, the highest revision
    open_table("kept/trips").files()           paths, for Spark, DuckDB, Polars or pandas

What is read is one version of the table, whatever is written meanwhile; files that count no more stay for ten minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from catchment.cloud.sinks.parquet.files import empty, load
from catchment.cloud.sinks.parquet.listing import Held, Listing, Version
from catchment.errors import ProgramError
from catchment.program.sinks import REVISION, identity, is_revised

if TYPE_CHECKING:
    import pyarrow as pa


class KeptTable:
    """One version of a table."""

    def __init__(self, directory: Path) -> None:
        listing = Listing(directory).read()
        if listing.latest is None:
            raise ProgramError(
                "E044",
                f"there is no table in {directory}",
                why="no sink has listed files there",
                fix='name the path= of a program\'s sink(..., "parquet", path=...), once the program runs',
            )
        self._directory = directory
        self.version: Version = listing.latest
        self.held: list[Held] = [listing.files[name] for name in sorted(listing.files)]
        """The files that count."""

    def files(self) -> list[str]:
        """Their paths."""
        return [str(self._directory / file.name) for file in self.held]

    def rows(self, *, latest: bool = False) -> pa.Table:
        """All results; with `latest`, of those that were revised the highest revision only."""
        schema = self.version.table.schema
        if not self.held:
            return empty(schema)
        rows = load(self._directory, [file.name for file in self.held])
        return _latest(rows, identity(schema)) if latest and is_revised(schema) else rows


def open_table(path: Path | str) -> KeptTable:
    """The table in that directory, as it is now."""
    return KeptTable(Path(path))


def _latest(rows: pa.Table, names: tuple[str, ...]) -> pa.Table:
    import numpy as np
    import pyarrow.compute as pc

    keyed = rows.select(names).append_column(REVISION, rows.column(REVISION))
    highest = keyed.group_by(list(names)).aggregate([(REVISION, "max")])
    numbered = rows.append_column("_row", [np.arange(rows.num_rows)])
    found = numbered.join(highest, [*names], join_type="inner")
    kept = found.filter(pc.field(REVISION) == pc.field(f"{REVISION}_max"))
    return rows.take(kept.column("_row").combine_chunks().sort())
