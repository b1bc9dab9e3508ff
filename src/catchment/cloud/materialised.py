"""The materialised output of a query: what each batch gave, on disk once, for every sink that keeps results outside.

    results/store.json                      the store's own name, and who writes
    results/files/LINEAGE-EPOCH-PART-…      what one task of a batch gave: packets by output, as the query made them
    results/portions/NUMBER.json            what a batch gave: its files, its epoch, how far in the log it goes

A portion exists once its note does, which is written last and whole; a batch that runs again finds its note and changes
nothing. Numbers grow by one. Sinks read portions in the order of numbers, each from its own mark, so that one that
cannot be reached keeps no other waiting; what all of them have is deleted. A supervisor of an older generation is
refused. Knows files; must not know Spark or what a sink is.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from catchment.engines.spark.results import Results
from catchment.errors import InternalError, PeerError
from catchment.gateway.log.files.disk import LocalDisk

_LOCK, _STORE, _FILES, _PORTIONS = "lock", "store.json", "files", "portions"


class Written(msgspec.Struct, frozen=True):
    """A file of a portion: what one task gave."""

    name: str
    part: int
    bytes: int
    counts: dict[str, int]
    upto: dict[str, int]


class Portion(msgspec.Struct, frozen=True):
    """What a batch gave."""

    number: int
    lineage: str
    """The checkpoint whose epoch it is: another one counts epochs from 0 again."""
    epoch: int
    generation: int
    upto: dict[str, int]
    files: tuple[Written, ...]

    @property
    def bytes(self) -> int:
        """Of its files."""
        return sum([file.bytes for file in self.files])


class _About(msgspec.Struct, frozen=True):
    store: str
    generation: int


class _Packets(msgspec.Struct, frozen=True, array_like=True):
    count: int
    packets: list[bytes]


class Materialised:
    """The store of a query's output, as a supervisor of a generation writes it. Tasks use `write` and `read` alone."""

    def __init__(self, directory: str, generation: int, lineage: str = "checkpoint") -> None:
        self.directory = directory
        self.generation = generation
        self.lineage = lineage
        self._disk = LocalDisk(Path(directory))
        self._lock = threading.Lock()
        for name in (_FILES, _PORTIONS):
            self._disk.make_directory(name)
        with self._disk.locked(_LOCK):
            known = self._about() if (Path(directory) / _STORE).exists() else _About(uuid.uuid4().hex, generation)
            if known.generation > generation:
                raise fenced(directory, generation, known.generation)
            self._disk.replace(_STORE, msgspec.json.encode(_About(known.store, generation)))
            self.store = known.store
            """The store's own name: numbers of another store mean nothing here."""
            self._portions = {portion.number: portion for portion in map(self._read, self._numbers())}
            self._sweep()

    @property
    def newest(self) -> int:
        """The number of the newest portion; 0 where there is none."""
        return max(self._portions, default=0)

    def commit(self, epoch: int, files: Sequence[Written]) -> Portion | None:
        """Say that a batch is whole: the portion it is, now or since its first run; None if it gave nothing."""
        upto: dict[str, int] = {}
        for file in files:
            for partition, offset in file.upto.items():
                upto[partition] = max(offset, upto.get(partition, -1))
        with self._lock, self._disk.locked(_LOCK):
            writer = self._about().generation
            if writer > self.generation:
                raise fenced(self.directory, self.generation, writer)
            newest = self._portions.get(self.newest)
            of_epoch = [p for p in self._portions.values() if (p.lineage, p.epoch) == (self.lineage, epoch)]
            for known in of_epoch:
                if known.upto != upto:
                    raise InternalError(
                        "E041",
                        f"epoch {epoch} in {self.directory} was made of another range of the log",
                        why=f"it went up to {known.upto}, and goes up to {upto} now: the checkpoint is older than it",
                        fix="restore the checkpoint that belongs to these results, or run in a new --data directory",
                    )
                return known
            # Sinks that have a portion no longer need it, nor its note.
            had = newest is not None and newest.lineage == self.lineage and epoch < newest.epoch
            if had or not files:
                return None
            number = self.newest + 1
            portion = Portion(number, self.lineage, epoch, self.generation, upto, tuple(files))
            self._disk.replace(_note(number), msgspec.json.encode(portion))
            self._portions[number] = portion
            return portion

    def batch(self, epoch: int) -> str:
        """What the files of a batch are called."""
        return f"{self.lineage}-{epoch:012d}-{self.generation:06d}"

    def portions(self, after: int) -> list[Portion]:
        """The portions behind that number, in order."""
        with self._lock:
            return [self._portions[number] for number in sorted(self._portions) if number > after]

    def path(self, file: Written) -> str:
        """Where a file of a portion is, for a task."""
        return f"{self.directory}/{_FILES}/{file.name}"

    def trim(self, upto: int) -> None:
        """Delete what every sink has: up to that number, but for the newest note, which says where numbers stand.

        Notes go first: a file that a crash leaves behind is named by none, and is swept away at the next start.
        """
        with self._lock:
            for number in [number for number in sorted(self._portions) if number <= upto]:
                portion = self._portions[number]
                if number < self.newest:
                    self._disk.delete(_note(number))
                    del self._portions[number]
                elif portion.files:
                    self._portions[number] = msgspec.structs.replace(portion, files=())
                    self._disk.replace(_note(number), msgspec.json.encode(self._portions[number]))
                for file in portion.files:
                    self._disk.delete(f"{_FILES}/{file.name}")

    @property
    def bytes(self) -> int:
        """What waits."""
        with self._lock:
            return sum([portion.bytes for portion in self._portions.values()])

    def _sweep(self) -> None:
        """Delete files that no note names: of batches that a crash cut short. Whoever wrote them may write no note."""
        named = {file.name for portion in self._portions.values() for file in portion.files}
        for name in self._disk.list(_FILES):
            if name not in named:
                self._disk.delete(f"{_FILES}/{name}")

    def _about(self) -> _About:
        return msgspec.json.decode((Path(self.directory) / _STORE).read_bytes(), type=_About)

    def _numbers(self) -> list[int]:
        return [int(name[:-5]) for name in self._disk.list(_PORTIONS) if name.endswith(".json")]

    def _read(self, number: int) -> Portion:
        return msgspec.json.decode((Path(self.directory) / _note(number)).read_bytes(), type=Portion)


def _note(number: int) -> str:
    return f"{_PORTIONS}/{number:020d}.json"


def write(directory: str, batch: str, part: int, given: Mapping[str, Results], upto: Mapping[str, int]) -> Written:
    """What a task of a batch gave, in a file that is whole or not there. Runs on executors."""
    packets = {output: _Packets(len(results), list(results.packets)) for output, results in given.items()}
    data = msgspec.msgpack.encode(packets)
    name = f"{batch}-{part:04d}"
    LocalDisk(Path(directory)).replace(f"{_FILES}/{name}", data)
    counts = {output: len(results) for output, results in given.items()}
    return Written(name, part, len(data), counts, dict(upto))


def read(path: str, output: str) -> Results:
    """What a file holds of an output. Runs on executors."""
    packets = msgspec.msgpack.decode(Path(path).read_bytes(), type=dict[str, _Packets])
    found = packets.get(output, _Packets(0, []))
    return Results(found.packets, found.count)


def without(path: str, devices: frozenset[str], users: frozenset[str]) -> int:
    """Take what comes of these devices and users out of a file; how many results that were."""
    packets = msgspec.msgpack.decode(Path(path).read_bytes(), type=dict[str, _Packets])
    kept: dict[str, _Packets] = {}
    gone = 0
    for output, given in packets.items():
        rows = [one for one in Results(given.packets, given.count) if one[1] not in devices and one[2] not in users]
        kept[output] = _Packets(len(rows), [msgspec.msgpack.encode(rows)] if rows else [])
        gone += given.count - len(rows)
    if gone:
        file = Path(path)
        LocalDisk(file.parent).replace(file.name, msgspec.msgpack.encode(kept))
    return gone


def fenced(what: str, own: int, newer: int) -> PeerError:
    """A writer that was replaced goes on."""
    return PeerError(
        "E042",
        f"generation {own} may not write {what} any more",
        why=f"generation {newer} has taken over",
        fix="stop this supervisor: the one that took over goes on where this one was",
    )
