"""The queue of an outbox: entries by (stream, epoch, number), from append to acknowledgement.

Promises: a number is given to one element only, ever; an element given up leaves a gap in the numbers and is counted by
its reason; entries of earlier epochs keep their numbers and come first. Knows tables and bounds. Must not know frames'
bytes, links or the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from catchment.errors import ProgramError
from catchment.program.sync import REFUSE, Bound
from catchment.program.types import Row, Schema
from catchment.sync.codecs.packed import pack_row, unpack_row
from catchment.sync.frame import ROWS_MAX, Epoch, Lost, Mark
from catchment.sync.outbox.bounds import Fill, forget, trim
from catchment.sync.outbox.database import Database, damaged, seal
from catchment.sync.outbox.register import Register
from catchment.sync.outbox.run import Entry, Position, Run, Stamp, cut, gaps_between

ELEMENT_BYTES_MAX = 1024 * 1024
"""A larger element is refused: every gateway takes frames of twice this."""


class Appended(msgspec.Struct, frozen=True):
    """What became of an append."""

    accepted: int
    refused: int = 0
    given_up: int = 0
    """Older elements that made room."""


class Queue:
    """All streams of one outbox. Every change runs inside a transaction of its caller."""

    def __init__(self, database: Database, register: Register, epoch: int) -> None:
        self._database = database
        self._register = register
        self.epoch = epoch
        """The number of the epoch that appends are of."""
        self._fills: dict[str, Fill] = {}
        self._bounds: dict[str, Bound] = {}
        self.reload()

    def reload(self) -> None:
        """Read what is kept in memory from the tables again."""
        self._fills = {}
        for id_, name, sealed, promise_us, promise_stamp, records, size in self._database.connection.execute(
            "SELECT s.id, s.name, s.seal, s.promise_us, s.promise_stamp, count(e.number), sum(length(e.row)) "
            "FROM stream s LEFT JOIN entry e ON e.stream = s.id GROUP BY s.id"
        ):
            if sealed != seal(id_, name):
                raise damaged(f"stream {id_} is not as it was written")
            bound = self._bounds.get(name, Bound())
            self._fills[name] = Fill(id_, bound, records, size or 0, promise_us, promise_stamp)

    def checkpoint(self) -> Callable[[], None]:
        """What brings the memory back to now, for a transaction that does not end well."""
        fills, epoch = {name: replace(fill) for name, fill in self._fills.items()}, self.epoch
        restore_register = self._register.checkpoint()

        def restore() -> None:
            self._fills, self.epoch = fills, epoch
            restore_register()

        return restore

    # -- what is there -------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Every stream that ever had an element."""
        return list(self._fills)

    def size(self, stream: str) -> tuple[int, int]:
        """Elements and bytes not yet acknowledged."""
        fill = self._fills.get(stream)
        return (0, 0) if fill is None else (fill.records, fill.size)

    def lost(self, stream: str) -> Lost:
        """What was given up of the stream, in all epochs that still have something open."""
        row = self._database.connection.execute(
            "SELECT sum(refused), sum(dropped), sum(thinned) FROM channel JOIN stream ON stream.id = channel.stream "
            "WHERE stream.name = ?",
            (stream,),
        ).fetchone()
        return Lost(*[count or 0 for count in row])

    def numbered(self) -> list[tuple[str, Epoch, int]]:
        """Of each stream and epoch that is not over, how many numbers were given."""
        rows = self._database.connection.execute(
            "SELECT stream.name, epoch, next FROM channel JOIN stream ON stream.id = channel.stream"
        )
        return [(stream, self._register.epochs[epoch], upto) for stream, epoch, upto in rows]

    def start(self, stream: str) -> Position | None:
        """The first number that is not acknowledged, or None where nothing is open."""
        fill = self._fills.get(stream)
        if fill is None:
            return None
        row = self._database.connection.execute(
            "SELECT epoch, acked FROM channel WHERE stream = ? AND acked < next ORDER BY epoch LIMIT 1", (fill.id,)
        ).fetchone()
        return None if row is None else Position(*row)

    def oldest(self, stream: str, position: Position) -> tuple[Stamp, int] | None:
        """The clock and the reading of the first element from there on."""
        row = self._database.connection.execute(
            "SELECT stamp, reading_us FROM entry WHERE stream = ? AND (epoch, number) >= (?, ?) "
            "ORDER BY epoch, number LIMIT 1",
            (self._fills[stream].id, position.epoch, position.number),
        ).fetchone()
        return None if row is None else (self._register.stamps[row[0]], row[1])

    def run(self, stream: str, position: Position, records_max: int, bytes_max: int) -> Run | None:
        """What comes next from that position, or None at the end of its epoch."""
        fill = self._fills[stream]
        read = self._database.connection.execute
        channel = read(
            "SELECT next, refused, dropped, thinned FROM channel WHERE stream = ? AND epoch = ?",
            (fill.id, position.epoch),
        ).fetchone()
        if channel is None or position.number >= channel[0]:
            return None
        found, rest = self._entries(fill.id, position, min(records_max, ROWS_MAX), bytes_max)
        taken = cut(found, position.number)
        upto = channel[0] if rest is None else rest.number
        if len(taken) < len(found):
            rest, upto = found[len(taken)], taken[-1].number + 1
        clock = self._register.stamps[taken[0].stamp] if taken else None
        return Run(
            stream=stream,
            epoch=self._register.epochs[position.epoch],
            first=position.number,
            gaps=gaps_between(position.number, [entry.number for entry in taken], upto),
            schema=self._register.schemas[taken[0].schema] if taken else None,
            stamp=clock,
            reading_us=taken[0].reading_us if taken else 0,
            span_us=taken[-1].reading_us - taken[0].reading_us if taken else 0,
            promise_us=self._promise_after(fill, position.epoch, clock, rest),
            lost=Lost(*channel[1:]),
            packed=tuple([entry.row for entry in taken]),
            after=Position(position.epoch, upto),
        )

    def promise(self, stream: str) -> tuple[Stamp, int] | None:
        """The promise that holds once everything appended has gone."""
        fill = self._fills.get(stream)
        if fill is None or fill.promise_us is None or fill.promise_stamp is None:
            return None
        return self._register.stamps[fill.promise_stamp], fill.promise_us

    # -- what changes it -----------------------------------------------------------------------------------------

    def bind(self, stream: str, bound: Bound) -> None:
        """From now on the stream is bounded like this; what is already there is trimmed at the next append."""
        self._bounds[stream] = bound
        if stream in self._fills:
            self._fills[stream].bound = bound

    def append(
        self, stream: str, schema: Schema, rows: Sequence[Row], stamp: Stamp, readings_us: Sequence[int]
    ) -> Appended:
        """Give the elements the next numbers; what the bound does not take is given up as it says."""
        packed = [pack_row(schema, row) for row in rows]
        for row in packed:
            # What cannot be read back or sent would block the stream for ever: refused here, in the step that made it.
            unpack_row(schema, row)
            if len(row) > ELEMENT_BYTES_MAX:
                raise ProgramError(
                    "S435",
                    f"an element of {stream} has {len(row)} bytes",
                    why=f"a frame carries elements of at most {ELEMENT_BYTES_MAX} bytes",
                    fix="store what is large elsewhere and send its address, or append it in pieces",
                )
        fill = self._fill(stream)
        fits = fill.fitting(packed) if fill.bound.when_full == REFUSE else len(packed)
        shape, clock = self._register.schema_id(schema), self._register.stamp_id(stamp)
        promised = self.promise(stream)
        promise_us = promised[1] if promised is not None and promised[0].counts_like(stamp) else None
        first = self._take_numbers(fill.id, len(packed), refused=len(packed) - fits)
        epoch = self.epoch
        self._database.connection.executemany(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (fill.id, epoch, number, shape, clock, reading_us, promise_us, row,
                 seal(fill.id, epoch, number, shape, clock, reading_us, row))
                for number, reading_us, row in zip(range(first, first + fits), readings_us, packed, strict=False)
            ],
        )  # fmt: skip
        fill.records += fits
        fill.size += sum(map(len, packed[:fits]))
        return Appended(fits, len(packed) - fits, trim(self._database.connection, fill))

    def give_up(self, stream: str, count: int, *, thinned: bool = False) -> None:
        """Count elements that never get in: refused, or left out on purpose. They take numbers: the gap shows."""
        fill = self._fill(stream)
        self._take_numbers(fill.id, count, refused=0 if thinned else count, thinned=count if thinned else 0)

    def set_promise(self, stream: str, until_us: int, stamp: Stamp) -> None:
        """Nothing appended from now on is older than that. A promise never goes back while its clock stays."""
        fill = self._fill(stream)
        promised = self.promise(stream)
        if promised is not None and promised[0].counts_like(stamp):
            until_us = max(until_us, promised[1])
        fill.promise_us, fill.promise_stamp = until_us, self._register.stamp_id(stamp)
        self._database.connection.execute(
            "UPDATE stream SET promise_us = ?, promise_stamp = ? WHERE id = ?", (until_us, fill.promise_stamp, fill.id)
        )

    def acknowledge(self, mark: Mark) -> bool:
        """Forget what is durable at the receiver. Returns whether anything was."""
        fill, epoch = self._fills.get(mark.stream), self._register.epoch_id(mark.epoch)
        if fill is None or epoch is None:
            return False
        write = self._database.connection.execute
        key = (fill.id, epoch)
        row = write("SELECT next, acked FROM channel WHERE stream = ? AND epoch = ?", key).fetchone()
        if row is None or mark.upto <= row[1]:
            return False
        forget(self._database.connection, fill, "epoch = ? AND number < ?", (epoch, mark.upto))
        # A receiver that is ahead of us has what a power cut took from here.
        following = max(row[0], mark.upto)
        if mark.upto == following and epoch != self.epoch:
            write("DELETE FROM channel WHERE stream = ? AND epoch = ?", key)
        else:
            write("UPDATE channel SET acked = ?, next = ? WHERE stream = ? AND epoch = ?", (mark.upto, following, *key))
        return True

    def renumber(self, ended: Mark, nonce: bytes) -> bool:
        """An epoch is over at that mark, whatever is left of it: begin another, and number there what is left.

        What was appended to later epochs of the stream moves along, so that the order stays; none of it was sent, since
        epochs drain in order. Returns whether anything was left.
        """
        self.acknowledge(ended)
        fill, over = self._fills.get(ended.stream), self._register.epoch_id(ended.epoch)
        if fill is None or over is None:
            return False
        execute = self._database.connection.execute
        channels = execute(
            "SELECT epoch, next, acked, refused, dropped, thinned FROM channel "
            "WHERE stream = ? AND epoch >= ? AND acked < next ORDER BY epoch",
            (fill.id, over),
        ).fetchall()
        if not channels or channels[0][0] != over:
            return False
        self.epoch = self._register.new_epoch(nonce)
        following, reasons = 0, [0, 0, 0]
        for epoch, next_, acked, *counts in channels:
            moved = self._move(fill.id, epoch, acked, following)
            following += next_ - acked
            # Of the epoch that is over, what was given up before the mark was told with what is there.
            untold = next_ - acked - moved if epoch == over else sum(counts)
            for index, count in enumerate(counts):
                reasons[index] += min(count, untold)
                untold -= min(count, untold)
            execute("DELETE FROM channel WHERE stream = ? AND epoch = ?", (fill.id, epoch))
        execute("INSERT INTO channel VALUES (?, ?, ?, 0, ?, ?, ?)", (fill.id, self.epoch, following, *reasons))
        return True

    # -- how -----------------------------------------------------------------------------------------------------

    def _move(self, stream: int, epoch: int, first: int, to: int) -> int:
        """Number the entries of an epoch anew, in the present one: `first` becomes `to`. Returns how many there are."""
        connection, moved = self._database.connection, 0
        while entries := connection.execute(
            "SELECT number, schema, stamp, reading_us, promise_us, row, seal FROM entry "
            "WHERE stream = ? AND epoch = ? ORDER BY number LIMIT 1000",
            (stream, epoch),
        ).fetchall():
            fresh = []
            for number, schema, stamp, reading_us, promise_us, row, sealed in entries:
                number_now, known = to + number - first, (schema, stamp, reading_us, row)
                is_sound = sealed == seal(stream, epoch, number, *known)
                # What rotted stays what it is, and is left out when its turn comes.
                sealed_now = seal(stream, self.epoch, number_now, *known) if is_sound else -1
                fresh.append((stream, self.epoch, number_now, schema, stamp, reading_us, promise_us, row, sealed_now))
            connection.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", fresh)
            gone = connection.execute(
                "DELETE FROM entry WHERE stream = ? AND epoch = ? AND number <= ?", (stream, epoch, entries[-1][0])
            )
            if gone.rowcount != len(entries):
                raise damaged(f"of {len(entries)} entries of stream {stream} {gone.rowcount} are where they were put")
            moved += len(entries)
        return moved

    def _fill(self, name: str) -> Fill:
        fill = self._fills.get(name)
        if fill is None:
            write = self._database.connection.execute
            (id_,) = write("SELECT 1 + coalesce(max(id), 0) FROM stream").fetchone()
            write("INSERT INTO stream VALUES (?, ?, ?, NULL, NULL)", (id_, name, seal(id_, name)))
            fill = self._fills[name] = Fill(id_, self._bounds.get(name, Bound()))
        return fill

    def _take_numbers(self, stream: int, count: int, *, refused: int = 0, thinned: int = 0) -> int:
        """Take so many numbers of the current epoch, and return the first."""
        row = self._database.connection.execute(
            "INSERT INTO channel VALUES (?, ?, ?, 0, ?, 0, ?) ON CONFLICT(stream, epoch) DO UPDATE SET "
            "next = next + excluded.next, refused = refused + excluded.refused, thinned = thinned + excluded.thinned "
            "RETURNING next",
            (stream, self.epoch, count, refused, thinned),
        ).fetchone()
        return int(row[0]) - count

    def _entries(
        self, stream: int, position: Position, records_max: int, bytes_max: int
    ) -> tuple[list[Entry], Entry | None]:
        """The entries from there on that fit, at least one, and the one after them.

        One that rotted on the disk is left out, so that its number shows as a gap.
        """
        found: list[Entry] = []
        size = read = 0
        for *fields, sealed in self._database.connection.execute(
            "SELECT number, schema, stamp, reading_us, promise_us, row, seal FROM entry "
            "WHERE stream = ? AND epoch = ? AND number >= ? ORDER BY number LIMIT ?",
            (stream, position.epoch, position.number, records_max + 1),
        ):
            entry = Entry(*fields)
            number, schema, stamp, reading_us, _, row = entry
            size, read = size + len(row), read + 1
            if read > records_max or (read > 1 and size > bytes_max):
                return found, entry
            if sealed == seal(stream, position.epoch, number, schema, stamp, reading_us, row):
                found.append(entry)
        return found, None

    def _promise_after(self, fill: Fill, epoch: int, clock: Stamp | None, rest: Entry | None) -> int | None:
        """What may be promised once everything before `rest` has gone: what was promised when `rest` was appended."""
        if clock is None:
            return None
        if rest is not None:
            promise_us, stamp = rest.promise_us, self._register.stamps.get(rest.stamp)
        elif epoch == self.epoch and fill.promise_stamp is not None:
            promise_us, stamp = fill.promise_us, self._register.stamps[fill.promise_stamp]
        else:
            return None
        # A promise counts like the event times of the frame that carries it: another clock's says nothing here.
        return promise_us if stamp is not None and stamp.counts_like(clock) else None
