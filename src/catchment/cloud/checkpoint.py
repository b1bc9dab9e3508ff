"""What is damaged in a checkpoint is seen before its query starts: it goes back one batch, or the query does not start.

Spark writes a checksum beside each file of a checkpoint. What the next batch rests on, of the newest one, is checked:

    the note that it is done, or its state     both are dropped: the batch runs again, and sinks know that they took it
    its range of the log                       written again, from the copy that the log's source keeps
    the query's name                           another is made

Where the state before it cannot be read either, nothing that is left would give right results, and that is said. Knows
Spark's files; starts nothing.
"""

from __future__ import annotations

import json
import re
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

from catchment.errors import PeerError
from catchment.gateway.journal import say

RANGE = "range.json"
"""Beside a checkpoint: the range of the log that was last given to its query, as [start, end]."""
_HEAD = b"crc\0"
_STATE = re.compile(r"^(\d+)\.(changelog|zip)$")


def mend(checkpoint: Path, copy: Path) -> list[str]:
    """Put a checkpoint in order; what was done to it. `copy` is where the log's source keeps its last range."""
    done: list[str] = []
    if _is_damaged(checkpoint / "metadata"):
        # A name that nothing else refers to.
        _rewrite(checkpoint / "metadata", json.dumps({"id": str(uuid.uuid4())}))
        done.append("the query was named anew")
    newest = max(_numbers(checkpoint / "offsets"), default=None)
    if newest is None:
        return done
    if _is_damaged(checkpoint / "offsets" / str(newest)):
        _restore_range(checkpoint, newest, copy)
        done.append(f"the range of batch {newest} was written again")
    note = checkpoint / "commits" / str(newest)
    for one in _numbers(checkpoint / "commits"):
        if one < newest and one >= newest - 1 and _is_damaged(checkpoint / "commits" / str(one)):
            _rewrite(checkpoint / "commits" / str(one), "v1\n{}")
            done.append(f"the note that batch {one} is done was written again")
    if note.exists() and (_is_damaged(note) or not _is_whole(checkpoint, newest + 1)):
        _drop(note)
        done.append(f"batch {newest} will run again")
    if not note.exists():
        for path in list(_files(checkpoint, newest + 1)):
            if _is_damaged(path):
                _drop(path)
                done.append(f"{path.relative_to(checkpoint)} was dropped")
        if not _is_whole(checkpoint, newest):
            raise _beyond_repair(checkpoint, f"the state before batch {newest}, which has to run again, is damaged too")
    for what in done:
        say("checkpoint_mended", checkpoint=str(checkpoint), done=what)
    return done


def _is_whole(checkpoint: Path, version: int) -> bool:
    """Whether all that a version of the state is read from is there as it was written."""
    for folder in _stores(checkpoint):
        found = {(int(match[1]), match[2]) for path in folder.iterdir() if (match := _STATE.match(path.name))}
        base = max([number for number, kind in found if kind == "zip" and number <= version], default=0)
        needed = [folder / f"{number}.changelog" for number in range(base + 1, version + 1)]
        needed += [folder / f"{base}.zip"] if base else []
        if any(not path.exists() or _is_damaged(path) for path in needed):
            return False
    return True


def _stores(checkpoint: Path) -> Iterator[Path]:
    for path in (checkpoint / "state").glob("[0-9]*/[0-9]*"):
        yield path
        yield from (
            inner for inner in path.iterdir() if inner.is_dir() and any(inner.glob("[0-9]*")) and inner.name != "SSTs"
        )


def _files(checkpoint: Path, version: int) -> Iterator[Path]:
    for folder in _stores(checkpoint):
        yield from (path for kind in ("changelog", "zip") if (path := folder / f"{version}.{kind}").exists())


def _restore_range(checkpoint: Path, batch: int, copy: Path) -> None:
    before = checkpoint / "offsets" / str(batch - 1)
    if batch == 0 or not before.exists() or _is_damaged(before) or not copy.exists():
        raise _beyond_repair(checkpoint, f"the range of batch {batch} is damaged, and there is no copy of it")
    lines = before.read_text(encoding="utf-8").splitlines()
    start, end = json.loads(copy.read_bytes())
    # The copy may be of the range after it, which was given out and not yet noted by Spark.
    lines[-1] = json.dumps(end if json.loads(lines[-1]) == start else start)
    _rewrite(checkpoint / "offsets" / str(batch), "\n".join(lines))


def _is_damaged(path: Path) -> bool:
    """Whether a file is not what its checksum was made of, or is empty; Spark itself checks no file without one."""
    if not path.exists():
        return False
    data, sums = path.read_bytes(), path.with_name(f".{path.name}.crc")
    if not data:
        return True
    if not sums.exists():
        return False
    said = sums.read_bytes()
    if said[:4] != _HEAD or len(said) < 8:
        return True
    step = int.from_bytes(said[4:8], "big")
    made = [zlib.crc32(data[at : at + step]).to_bytes(4, "big") for at in range(0, len(data), step)]
    return said[8:] != b"".join(made)


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.exists() else []


def _drop(path: Path) -> None:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _rewrite(path: Path, text: str) -> None:
    _drop(path)
    fresh = path.with_name(f".{path.name}.mended")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _beyond_repair(checkpoint: Path, why: str) -> PeerError:
    return PeerError(
        "E131",
        f"the checkpoint in {checkpoint} cannot be gone on from",
        why=f"{why}: what would follow could be wrong",
        fix="put the directory back from a copy, or compute results anew with `catchment backfill`",
    )
