"""Results to a function of the author's, with their mark: called by executors, a portion's share at a time.

A call whose end was not written down is made again, with the same mark and the same results. So a function that
remembers the marks that it has done with, beside what it does, has each result exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from catchment.cloud.materialised import Portion, fenced, read
from catchment.cloud.sinks.sink import Identity, Share, Work
from catchment.errors import ProgramError
from catchment.gateway.log.files.disk import LocalDisk
from catchment.program.function import declared
from catchment.program.mark import Mark
from catchment.program.types import Schema

_WHOLE = "whole.json"


class Done(msgspec.Struct, frozen=True):
    """How far a part is, or all of them."""

    number: int
    generation: int
    store: str
    log: dict[str, int] = {}


@dataclass(frozen=True)
class CallbackSink:
    """What the author declared, and where it is written down how far calls have come."""

    name: str
    output: str
    schema: Schema
    function: str
    directory: str
    every_us: int = 0

    def open(self, identity: Identity) -> OpenCallback:
        """Find out how far calls have come."""
        return OpenCallback(self, identity)


class OpenCallback:
    """The calls as the driver knows them."""

    def __init__(self, sink: CallbackSink, identity: Identity) -> None:
        self._sink, self._identity = sink, identity
        declared(sink.function)
        LocalDisk(Path(sink.directory))
        known = _done(sink.directory, _WHOLE, identity)
        self.upto = known.number
        self._note(known.log)

    def write(self, share: Share) -> Work:
        """The calls of a share."""
        return partial(_call, self._sink, self._identity, share)

    def commit(self, portions: Sequence[Portion], receipts: Sequence[bytes]) -> None:
        """All were made."""
        self.upto = portions[-1].number
        self._note(portions[-1].upto)

    def _note(self, log: dict[str, int]) -> None:
        note = Done(self.upto, self._identity.generation, self._identity.store, log)
        LocalDisk(Path(self._sink.directory)).replace(_WHOLE, msgspec.json.encode(note))

    def chores(self) -> Sequence[Work]:
        """None."""
        return ()

    def settle(self, receipts: Sequence[bytes]) -> None:
        """There were none."""

    def close(self) -> None:
        """Nothing is held."""


def _call(sink: CallbackSink, identity: Identity, share: Share) -> bytes:
    function = declared(sink.function)
    record = function.annotations[0].__args__[0].of
    disk, note = LocalDisk(Path(sink.directory)), f"part-{share.part:04d}.json"
    known = _done(sink.directory, note, identity).number
    for file in share.files:
        if file.number <= known:
            continue
        results = tuple([record(row) for _at, _device, _owner, row in read(file.path, sink.output)])
        mark = Mark(
            program=identity.program,
            sink=identity.sink,
            store=identity.store,
            number=file.number,
            part=share.part,
            generation=file.generation,
            epoch=file.epoch,
            log=file.log,
        )
        function.body(results, mark)
        disk.replace(note, msgspec.json.encode(Done(file.number, identity.generation, identity.store)))
    return b""


def _done(directory: str, note: str, identity: Identity) -> Done:
    path = Path(directory) / note
    if not path.exists():
        return Done(0, identity.generation, identity.store)
    known = msgspec.json.decode(path.read_bytes(), type=Done)
    if known.store != identity.store:
        raise ProgramError(
            "E050",
            f"{path} speaks of another data directory's output",
            why="it was copied from there, or the output here was deleted",
            fix=f"delete {directory}: the function is then called with everything that is materialised here",
        )
    if known.generation > identity.generation:
        raise fenced(directory, identity.generation, known.generation)
    return known
