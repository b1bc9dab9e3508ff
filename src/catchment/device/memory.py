"""What a program's parts remember across a crash: a snapshot now and then, and what was taken in since.

A snapshot after each turn would cost as much as the state is large, every time. So a turn writes what entered the
engines, and a snapshot only once as much has been written as the last one took: at most twice the writing, and a start
replays no more than about one snapshot's worth. Small states are written whole each time, which is cheaper than either.

Promises: written inside the transaction that appends what the engines gave, so a restart that restores the snapshot and
replays the rest without appending stands exactly where that transaction left off. Knows the outbox as a place for
values by key. Must not know what entries mean.

>>> kept = {}
>>> memory = Memory(kept.__setitem__, kept.get)
>>> memory.write(lambda: b"a small state", lambda: b"one"); memory.write(lambda: b"another", lambda: b"two")
>>> Memory(kept.__setitem__, kept.get).read()
(b'another', [])
>>> large = Memory(kept.__setitem__, kept.get)
>>> large.write(lambda: b"x" * 50_000, lambda: b"three"); large.write(lambda: b"not asked", lambda: b"four")
>>> state, entries = Memory(kept.__setitem__, kept.get).read()
>>> len(state), entries
(50000, [b'four'])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

SMALL_BYTES = 4096
"""A state up to this size is written whole each time: it fits the page that the transaction writes anyway."""

Save: TypeAlias = Callable[[str, bytes], None]
Load: TypeAlias = Callable[[str], bytes | None]


class _Slot(msgspec.Struct, array_like=True):
    """Entries belong to a snapshot by its number: slots of an earlier one are written over, never deleted."""

    snapshot: int
    value: bytes


class Memory:
    """One snapshot, and the entries since, under keys of their own."""

    def __init__(self, save: Save, load: Load, *, name: str = "memory") -> None:
        self._save = save
        self._load = load
        self._name = name
        self._snapshot = 0
        self._entries = 0
        self._snapshot_bytes = 0
        self._since_bytes = 0
        self.is_fresh = True
        """Whether the next write is a snapshot in any case, since there is none to go on from."""

    def read(self) -> tuple[bytes | None, list[bytes]]:
        """The last snapshot, if there is one, and the entries since."""
        held = self._load(self._name)
        if held is None:
            return None, []
        slot = _DECODER.decode(held)
        self._snapshot, self._snapshot_bytes = slot.snapshot, len(slot.value)
        entries: list[bytes] = []
        while (held := self._load(f"{self._name}/{len(entries)}")) is not None:
            entry = _DECODER.decode(held)
            if entry.snapshot != self._snapshot:
                break
            entries.append(entry.value)
        self._entries = len(entries)
        self._since_bytes = sum(map(len, entries))
        self.is_fresh = False
        return slot.value, entries

    def write(self, state: Callable[[], bytes], entry: Callable[[], bytes]) -> None:
        """Keep what was taken in, or the state after it, whichever is cheaper in the long run."""
        if not self.is_fresh and self._snapshot_bytes > SMALL_BYTES:
            value = entry()
            if self._since_bytes + len(value) <= self._snapshot_bytes:
                self._save(f"{self._name}/{self._entries}", _ENCODER.encode(_Slot(self._snapshot, value)))
                self._entries += 1
                self._since_bytes += len(value)
                return
        self.write_state(state())

    def write_state(self, state: bytes) -> None:
        """Keep the state, whatever it costs."""
        self._snapshot += 1
        self._save(self._name, _ENCODER.encode(_Slot(self._snapshot, state)))
        self._entries = self._since_bytes = 0
        self._snapshot_bytes = len(state)
        self.is_fresh = False

    def begin_anew(self) -> None:
        """What was written may be gone, or was rolled back: the next write is a snapshot."""
        self.is_fresh = True


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Slot)
