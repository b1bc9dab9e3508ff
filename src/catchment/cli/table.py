"""`catchment table DIR`: what a Parquet sink keeps there, by its list and nothing else."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("directory", type=Path, help='the path= of a program\'s sink(..., "parquet", path=...)')
    parser.add_argument("--files", action="store_true", help="the paths of the files that count, one per line")
    parser.add_argument("--rows", action="store_true", help="the results, one JSON object per line")
    parser.add_argument("--latest", action="store_true", help="of results that were revised, the highest revision only")


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for; without a wish, what the table is."""
    from catchment.cloud.tables import open_table

    table = open_table(arguments.directory)
    if arguments.files:
        print("\n".join(table.files()))
    elif arguments.rows:
        for row in table.rows(latest=arguments.latest).to_pylist():
            print(json.dumps(row, default=_plain))
    else:
        about = table.version.table
        rows, size = sum(file.rows for file in table.held), sum(file.bytes for file in table.held)
        print(f"{about.schema.name}, kept by {about.sink} of {about.program}")
        print(f"  version {table.version.version}: {rows} results in {len(table.held)} files, {size} bytes")
        print(f"  up to portion {table.version.upto}, log {json.dumps(table.version.log, sort_keys=True)}")
    return 0


def _plain(value: object) -> str:
    """What JSON has no word for: an instant in RFC 3339, bytes as digits."""
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
        case _:
            return str(value)
