"""The list of a table of files: which of them count. Files are written first, then the list, whole or not at all.

    _catchment/00000000000000000042.json             version 42: what it adds to version 41 and takes away
    _catchment/00000000000000000064.whole.json       all of version 64

Whoever reads the folder without the list may see files that do not count: of a writer that was cut short, or of
rows that were merged into another file since. Versions grow by one, and each carries the mark of the writer: how far in
the materialised output the files go, and by which generation. Knows files' names; must not know what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from catchment.cloud.materialised import fenced
from catchment.cloud.sinks.sink import Identity
from catchment.errors import PeerError, ProgramError
from catchment.gateway.log.files.disk import LocalDisk
from catchment.program.types import Schema

FOLDER = "_catchment"
WHOLE_EVERY = 32
_NAME = re.compile(r"^(\d{20})(\.whole)?\.json$")
_LOCK = f"{FOLDER}/lock"


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that counts."""

    name: str
    rows: int
    bytes: int
    by: tuple[str | int | bool | None, ...] = ()
    """The values that its folder is named by."""


class Table(msgspec.Struct, frozen=True):
    """What the table is of."""

    program: str
    sink: str
    store: str
    schema: Schema
    """Of its results; which fields a gateway vouches for is in there too."""


class Version(msgspec.Struct, frozen=True):
    """A version of the list; of a whole one, `add` is all that counts."""

    version: int
    table: Table
    generation: int
    upto: int
    """The number of the last portion that is in the files."""
    log: dict[str, int]
    """How far in the log that is."""
    add: tuple[Held, ...]
    remove: tuple[str, ...] = ()


class Listing:
    """The list in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.latest: Version | None = None
        """The newest version, without its files."""
        self.files: dict[str, Held] = {}
        """What counts, by name."""

    def read(self) -> Listing:
        """Look what is there now. A list that is being changed under the reader's eyes is read again."""
        for _ in range(100):
            try:
                versions = self._versions()
                found = self._fold(versions)
            except FileNotFoundError:
                continue
            self.latest, self.files = found
            return self
        raise PeerError(
            "E045",
            f"the list in {self.directory} changes faster than it can be read",
            why="a hundred attempts each found a version that was replaced meanwhile",
            fix="read it again when the disk is less busy",
        )

    def change(
        self, make: Callable[[Version | None, dict[str, Held]], Version], *, begins_anew: bool = False
    ) -> Version:
        """Put the next version in place, as `make` makes it of what is there: nobody else does so meanwhile.

        One that begins anew leaves no earlier version, nor what those name.
        """
        disk = LocalDisk(self.directory)
        disk.make_directory(FOLDER)
        with disk.locked(_LOCK):
            self.read()
            new = make(self.latest, dict(self.files))
            self._apply(new)
            if not begins_anew:
                disk.replace(f"{FOLDER}/{new.version:020d}.json", msgspec.json.encode(new))
            if begins_anew or new.version % WHOLE_EVERY == 0:
                whole = msgspec.structs.replace(new, add=tuple(self.files.values()), remove=())
                disk.replace(f"{FOLDER}/{new.version:020d}.whole.json", msgspec.json.encode(whole))
                # A reader that has begun still finds what it needs: the versions since the whole one before this.
                kept_from = new.version if begins_anew else new.version - WHOLE_EVERY
                for version, name in self._names():
                    if version < kept_from or (version == kept_from and ".whole" not in name):
                        disk.delete(f"{FOLDER}/{name}")
        return new

    def _apply(self, new: Version) -> None:
        for name in new.remove:
            self.files.pop(name, None)
        self.files.update({file.name: file for file in new.add})
        self.latest = new

    def _names(self) -> list[tuple[int, str]]:
        folder = self.directory / FOLDER
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted((int(found[1]), name) for name in names if (found := _NAME.match(name)))

    def _versions(self) -> list[Version]:
        names = self._names()
        whole = max([version for version, name in names if ".whole" in name], default=0)
        wanted = [name for v, name in names if v > whole or (v == whole and ".whole" in name)]
        return [msgspec.json.decode((self.directory / FOLDER / name).read_bytes(), type=Version) for name in wanted]

    def _fold(self, versions: Sequence[Version]) -> tuple[Version | None, dict[str, Held]]:
        files: dict[str, Held] = {}
        latest: Version | None = None
        for version in versions:
            for name in version.remove:
                files.pop(name, None)
            files.update({file.name: file for file in version.add})
            latest = version
        return latest, files


def check_taken(latest: Version | None, table: Table, identity: Identity, directory: Path) -> None:
    """Refuse a table of other results, or one that a newer generation writes."""
    if latest is None:
        return
    if latest.generation > identity.generation and latest.table.store == table.store:
        raise fenced(str(directory), identity.generation, latest.generation)
    theirs = (latest.table.program, latest.table.sink, latest.table.store)
    if theirs != (table.program, table.sink, table.store):
        raise ProgramError(
            "E043",
            f"{directory} holds results of {latest.table.sink} of {latest.table.program}, kept from elsewhere",
            why="its files say how far in that data directory's output they go, and nothing of this one's",
            fix="give this sink a path= of its own, or move those files away",
        )
