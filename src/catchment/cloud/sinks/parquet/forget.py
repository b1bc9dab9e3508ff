"""Taking rows out of a table: files that hold any are written anew, and the list changes at once.

The mark stays what it is, so a program that runs goes on. Its own merges find the files gone and begin again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from catchment.cloud.sinks.parquet import files
from catchment.cloud.sinks.parquet.listing import FOLDER, Held, Listing, Version

if TYPE_CHECKING:
    import pyarrow as pa


def forget_rows(directory: Path, whom: Mapping[str, frozenset[str]]) -> int:
    """Delete the rows that a gateway vouches for as of these ("device" or "user" to names); how many that were."""
    listing = Listing(directory).read()
    if listing.latest is None:
        return 0
    fields = {c.name: whom[c.stamp] for c in listing.latest.table.schema.fields if c.stamp and whom.get(c.stamp)}
    gone: list[str] = []
    made: list[Held] = []
    rows = 0
    for name, held in sorted(listing.files.items()):
        if not fields:
            break
        table = files.load(directory, [name])
        kept = table.filter(_of_others(table, fields))
        if kept.num_rows == table.num_rows:
            continue
        rows += table.num_rows - kept.num_rows
        gone.append(name)
        if kept.num_rows:
            folder, _, file = name.rpartition("/")
            new = files.write_one(directory, folder, f"f{listing.latest.version:012d}-{file.partition('.')[0]}", kept)
            made.append(msgspec.structs.replace(new, by=held.by))
    if gone:
        listing.change(lambda latest, known: _next(latest, known, made, gone), begins_anew=True)
    # Of earlier merges too: nothing waits here for readers that have begun.
    for path in directory.rglob("*.parquet*"):
        name = path.relative_to(directory).as_posix()
        if FOLDER not in path.parts and (name in gone or _is_left_over(path, name, listing, fields)):
            path.unlink(missing_ok=True)
    _empty_folders(directory)
    return rows


def _next(latest: Version | None, known: Mapping[str, Held], made: list[Held], gone: list[str]) -> Version:
    assert latest is not None
    there = [name for name in gone if name in known]
    # What was merged meanwhile is in a file of its own now: the next look finds it.
    keeps = made if len(there) == len(gone) else []
    remove = tuple(there) if len(there) == len(gone) else ()
    return msgspec.structs.replace(latest, version=latest.version + 1, add=tuple(keeps), remove=remove)


def _is_left_over(path: Path, name: str, listing: Listing, fields: Mapping[str, frozenset[str]]) -> bool:
    """Whether a file that is in no list holds any of those rows."""
    if name in listing.files or not fields:
        return False
    try:
        table = files.load(path.parent, [path.name])
    except (OSError, ValueError):  # half-written, by a task that was killed or is at work
        return False
    return bool(table.filter(_of_others(table, fields)).num_rows < table.num_rows)


def _of_others(table: pa.Table, fields: Mapping[str, frozenset[str]]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    columns = [(table.column(name).to_pylist(), names) for name, names in fields.items() if name in table.column_names]
    masks = [np.array([value not in names for value in values], np.bool_) for values, names in columns]
    return pa.array(reduce(np.logical_and, masks, np.ones(table.num_rows, np.bool_)))


def _empty_folders(directory: Path) -> None:
    """A folder may be named by whom it was of."""
    for folder in sorted((path for path in directory.rglob("*") if path.is_dir()), reverse=True):
        if folder.name != FOLDER and not any(folder.iterdir()):
            folder.rmdir()
