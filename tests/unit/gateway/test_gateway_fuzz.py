"""Mutated conversations: whatever a device sends, it is answered, and the log holds each number once and in order.

`CATCHMENT_FUZZ=1000000` runs so many messages; without it a few thousand, from a fixed seed.
"""

from __future__ import annotations

import asyncio
import os
import random
import struct
import zlib
from pathlib import Path

from catchment.gateway.devices import Link
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log import Kind
from catchment.gateway.log.files.disk import File, LocalDisk
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from catchment.sync.frame import (
    Ack,
    Beat,
    Bye,
    Data,
    Error,
    Frame,
    Hello,
    Moved,
    Welcome,
    decode_all,
    encode,
    encode_all,
)
from catchment.sync.parts import Clock, Epoch, Gap, Lost, Mark, Promise

MESSAGES = int(os.environ.get("CATCHMENT_FUZZ", "4000"))
BOOT = b"boot"


class _Hasty:
    """A file that does not wait for the medium: here it is the words that are tried, not the disk."""

    def __init__(self, file: File) -> None:
        self._file = file

    def write(self, position: int, data: bytes) -> None:
        self._file.write(position, data)

    def sync(self) -> None:
        pass

    def truncate(self, length: int) -> None:
        self._file.truncate(length)

    def close(self) -> None:
        self._file.close()


class _HastyDisk(LocalDisk):
    def create(self, path: str) -> File:
        return _Hasty(super().create(path))


class _Fuzzer:
    """A device that mostly makes sense."""

    def __init__(self, credential: str, choices: random.Random) -> None:
        self.credential = credential
        self.random = choices
        self.epoch = Epoch(1, b"12345678")
        self.token = b""
        self.nonce = 0
        self.reading_us = 1_000_000
        self.next = {"a": 0, "b": 0}

    def message(self) -> bytes:
        frames = [self.frame() for _ in range(self.random.randrange(1, 5))]
        if self.random.random() < 0.4:
            frames.insert(0, self.hello())
        body = bytearray(encode_all(frames))
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 3])):
            body = self.mutated(body)
        return bytes(body)

    def hello(self) -> Hello:
        credential = self.credential if self.random.random() < 0.95 else "guess"
        marks = (Mark("r", Epoch(1, b"8 bytes!"), self.number()),) if self.random.random() < 0.2 else ()
        nonce = b"%d" % self.nonce
        return Hello(
            "phone", credential, self.epoch, nonce, self.token, session=BOOT, reading_us=self.reading_us, marks=marks
        )

    def frame(self) -> Frame:
        choose = self.random
        self.reading_us += choose.randrange(1_000_000)
        stream = choose.choice("ab")
        match choose.randrange(12):
            case 0:
                return Ack((Mark(choose.choice("abr"), self.epoch, self.number()),))
            case 1:
                promises = (Promise(stream, self.number(), choose.choice([None, 0, self.number()])),)
                return Beat(choose.choice([BOOT, b""]), self.reading_us, promises=promises)
            case 2:
                strange: list[Frame] = [Bye(), Moved("x"), Welcome(b"x"), Error("x", "y")]
                return choose.choice(strange)
            case 3:
                self.epoch = Epoch(self.epoch.counter + choose.randrange(2), choose.randbytes(8))
                return Beat(BOOT, self.reading_us)
            case _:
                count = choose.choice([0, 1, 5, self.number() % 1000])
                first = self.next[stream] if choose.random() < 0.7 else self.number()
                gaps = (Gap(choose.randrange(count + 1), self.number()),) if choose.random() < 0.1 else ()
                clock = Clock(BOOT, choose.randrange(self.reading_us + 1), 0, choose.choice([None, 0, self.number()]))
                return Data(
                    stream,
                    self.epoch,
                    first,
                    count,
                    choose.choice([b"", bytes(8)]),
                    "none",
                    choose.choice([None, clock]),
                    choose.choice([None, self.number()]),
                    Lost(dropped=choose.randrange(3)),
                    gaps,
                    choose.choice(["", "", "", "phone", "tablet"]),
                    choose.randbytes(choose.randrange(30)),
                )

    def number(self) -> int:
        return self.random.choice([0, 1, 2, 100, 2**31, 2**53 - 1, self.random.randrange(1000)])

    def mutated(self, body: bytearray) -> bytearray:
        choose = self.random
        at = choose.randrange(len(body))
        match choose.randrange(5):
            case 0:
                body[at] ^= 1 << choose.randrange(8)
            case 1:
                del body[at : at + choose.randrange(1, 20)]
            case 2:
                body[at:at] = choose.randbytes(choose.randrange(1, 20))
            case 3:
                body += body[at:]
            case _:
                # A harmed header under a sound checksum, as only a hostile client makes it.
                frame = bytearray(encode(self.frame()))
                frame[choose.randrange(12, max(13, len(frame) - 4))] ^= 1 << choose.randrange(8)
                frame[-4:] = struct.pack("<I", zlib.crc32(frame[:-4]))
                body += frame
        return body or bytearray(b"\x00")

    def heard(self, frames: list[Frame]) -> None:
        for frame in frames:
            match frame:
                case Welcome():
                    if frame.challenge:
                        self.token = frame.challenge
                    else:
                        self.token, self.nonce = frame.token, self.nonce + 1
                        self.next = {"a": 0, "b": 0}
                        self.note(frame.marks)
                case Ack():
                    self.note(frame.marks)
                case Error() if frame.mark is not None:
                    self.note((frame.mark,))
                case _:
                    pass

    def note(self, marks: tuple[Mark, ...]) -> None:
        for mark in marks:
            if mark.epoch == self.epoch and mark.stream in self.next:
                self.next[mark.stream] = mark.upto


def test_whatever_a_device_sends_the_log_holds_each_number_once_and_in_order(tmp_path: Path) -> None:
    async def whole() -> None:
        limits = GatewayLimits(device_burst_bytes=1e15, device_bytes_per_s=1e15, device_streams=8)
        options = Options(tmp_path, partitions=1, log=Limits(reserve_bytes=0), limits=limits)
        service = Service(options, log_disk=_HastyDisk(tmp_path / "log"))
        exchange = Exchange(service)
        await service.start()
        store = service.stores.enrolment
        token = store.token(user="ada", now_us=0, valid_us=1)
        fuzzer = _Fuzzer(store.enrol(token, device="phone", now_us=0).credential, random.Random(11))
        link = Link("peer", now_us=0)
        for _ in range(MESSAGES):
            reply = await exchange.turn(link, fuzzer.message())
            fuzzer.heard(list(decode_all(encode_all(reply.frames))))
            if reply.over:
                link = Link("peer", now_us=0)
                if (found := store.find("phone")) is not None and found.quarantined_us is not None:
                    store.quarantine("phone", now_us=None)
        assert len(exchange.devices) == 1
        assert sum(file.stat().st_size for file in (tmp_path / "quarantine").iterdir()) <= 256 << 20
        accepted = service.metrics.uploads.total()
        await service.stop()
        assert accepted > MESSAGES / 50, "the fuzzer makes sense often enough to matter"

    asyncio.run(whole())
    reader = LogReader(LocalDisk(tmp_path / "log"))
    upto: dict[tuple[str, int], int] = {}
    last: dict[str, int] = {}
    for _, entry in reader.read(0, 0):
        assert entry.device == "phone" and entry.user == "ada" if entry.kind != Kind.TICK else True
        if entry.kind == Kind.DATA:
            key = (entry.stream, entry.epoch)
            assert entry.first == upto.get(key, 0) and entry.upto >= entry.first + entry.count
            assert entry.epoch >= last.get(entry.stream, 0), "epochs follow each other"
            upto[key], last[entry.stream] = entry.upto, entry.epoch
