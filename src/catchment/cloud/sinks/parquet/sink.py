"""Results as Parquet files, in folders by field, under a list of what counts.

Tasks write files under names of their own and the driver lists them: what a crash leaves is in no list, and is deleted
later. Small files of a folder are merged into larger ones, so that a year of small batches is not a year of small
files. Readers go by the list: see `catchment.cloud.tables`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from catchment.cloud.materialised import Portion, read
from catchment.cloud.sinks.parquet import files
from catchment.cloud.sinks.parquet.listing import FOLDER, Held, Listing, Table, Version, check_taken
from catchment.cloud.sinks.sink import Identity, Share, Work
from catchment.program.types import Schema

MERGE_FILES = 16
"""So many files of one folder and about one size become one."""
WHOLE_BYTES = 128 << 20
"""A file of this size is left as it is."""
GRACE_S = 600.0
"""How long files that count no more stay for readers that have begun with them."""


class Merged(msgspec.Struct, frozen=True):
    """What a merge made of which files."""

    made: tuple[Held, ...]
    of: tuple[str, ...]


@dataclass(frozen=True)
class ParquetSink:
    """What the author declared."""

    name: str
    output: str
    schema: Schema
    path: str
    by: tuple[str, ...]
    every_us: int

    def open(self, identity: Identity) -> OpenParquet:
        """The table, made if it is not there."""
        return OpenParquet(self, identity)


class OpenParquet:
    """The table as the driver holds it."""

    def __init__(self, sink: ParquetSink, identity: Identity) -> None:
        self._sink = sink
        self._identity = identity
        self._directory = Path(sink.path)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._table = Table(identity.program, identity.sink, identity.store, sink.schema)
        self._listing = Listing(self._directory)
        latest = self._listing.read().latest
        if latest is None or latest.generation != identity.generation:
            # The first version says whose this is; of a new generation, that the one before may write no more.
            latest = self._change((), ())
        check_taken(latest, self._table, identity, self._directory)
        self.upto = latest.upto
        self._tidy_after_s = 0.0

    def write(self, share: Share) -> Work:
        """Files of a share."""
        return partial(_write, self._sink, self._identity.generation, share)

    def commit(self, portions: Sequence[Portion], receipts: Sequence[bytes]) -> None:
        """List the files."""
        made = [file for receipt in receipts for file in msgspec.json.decode(receipt, type=list[Held])]
        self._sync({file.name for file in made})
        self._change(made, (), portions[-1])

    def chores(self) -> Sequence[Work]:
        """Merge small files; and delete what counts no more, at once, which is the driver's."""
        if time.monotonic() >= self._tidy_after_s:
            self._tidy_after_s = time.monotonic() + GRACE_S / 10
            self._delete_orphans()
        return [partial(_merge, self._sink, self._version, names) for names in self._mergeable()]

    def settle(self, receipts: Sequence[bytes]) -> None:
        """List what was merged instead of what it was merged of."""
        merged = [msgspec.json.decode(receipt, type=Merged) for receipt in receipts]
        made = [file for one in merged for file in one.made]
        self._sync({file.name for file in made})
        gone = [name for one in merged for name in one.of]
        self._change(made, gone)
        for name in gone:
            os.utime(self._directory / name)

    def close(self) -> None:
        """Nothing is held."""

    @property
    def _version(self) -> int:
        return 0 if self._listing.latest is None else self._listing.latest.version

    def _change(self, add: Sequence[Held], remove: Sequence[str], last: Portion | None = None) -> Version:
        def make(latest: Version | None, known: dict[str, Held]) -> Version:
            check_taken(latest, self._table, self._identity, self._directory)
            missing = [name for name in remove if name not in known]
            upto, log = (0, {}) if latest is None else (latest.upto, latest.log)
            if last is not None:
                upto, log = last.number, {**log, **last.upto}
            return Version(
                version=1 if latest is None else latest.version + 1,
                table=self._table,
                generation=self._identity.generation,
                upto=upto,
                log=log,
                # What was taken away meanwhile, by whoever forgets a device, may not come back by a merge.
                add=() if missing else tuple(add),
                remove=() if missing else tuple(remove),
            )

        version = self._listing.change(make)
        self.upto = version.upto
        return version

    def _sync(self, names: set[str]) -> None:
        """Have the names of new files on the medium before a list speaks of them."""
        for folder in {(self._directory / name).parent for name in names}:
            while True:
                files.sync_directory(folder)
                if folder == self._directory:
                    break
                folder = folder.parent

    def _mergeable(self) -> list[list[str]]:
        groups: dict[tuple[str, int], list[str]] = {}
        for name, file in self._listing.files.items():
            if file.bytes < WHOLE_BYTES:
                size = max(0, file.bytes.bit_length() - 16) // 4
                groups.setdefault((name.rpartition("/")[0], size), []).append(name)
        return [sorted(names) for names in groups.values() if len(names) >= MERGE_FILES]

    def _delete_orphans(self) -> None:
        oldest_s = time.time() - GRACE_S
        for path in self._directory.rglob("*.parquet*"):
            name = path.relative_to(self._directory).as_posix()
            if FOLDER not in path.parts and name not in self._listing.files and path.stat().st_mtime < oldest_s:
                path.unlink(missing_ok=True)


def _write(sink: ParquetSink, generation: int, share: Share) -> bytes:
    import pyarrow as pa

    tables = [read(file.path, sink.output).table(sink.schema) for file in share.files]
    rows = files.presented(pa.concat_tables(tables), sink.schema)
    first, last = share.files[0].number, share.files[-1].number
    name = f"{first:012d}-{last:012d}-{share.part:04d}-{generation:06d}"
    return msgspec.json.encode(files.write(Path(sink.path), rows, sink.by, name))


def _merge(sink: ParquetSink, version: int, names: Sequence[str]) -> bytes:
    folder, _, first = names[0].rpartition("/")
    rows = files.load(Path(sink.path), names)
    made = files.write_one(Path(sink.path), folder, f"m{version:012d}-{first.partition('.')[0]}", rows)
    by = Listing(Path(sink.path)).read().files
    kept = by[names[0]].by if names[0] in by else ()
    return msgspec.json.encode(Merged((msgspec.structs.replace(made, by=kept),), tuple(names)))
