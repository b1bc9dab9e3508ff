"""What the gateway's tests share: a log, a gateway in a directory, and a device that says what it is told to."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from catchment.gateway.devices import Link
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.faults import FailingDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.log.files.reader import LogReader
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from catchment.sync.frame import Data, Frame, Hello, Welcome, decode_all, encode_all
from catchment.sync.parts import Epoch

SECOND = 1_000_000
BOOT = b"one boot"
NOW = 1_800_000_000 * SECOND
F = TypeVar("F")


class LogKit:
    """A log of one partition in a directory, and a counter for salts."""

    def __init__(self, root: Path) -> None:
        self.disk = FailingDisk(root)
        self._salts = itertools.count(1)
        layout.create(self.disk, partitions=2)

    def writer(
        self, holder: str = "one", *, now_us: int = 0, limits: Limits | None = None, number: int = 0
    ) -> Partition:
        return Partition(
            self.disk,
            number,
            holder=holder,
            address=f"http://{holder}",
            now_us=now_us,
            salt=lambda: next(self._salts),
            limits=limits or Limits(reserve_bytes=0),
        )

    def segments(self) -> list[Path]:
        return sorted((self.disk.root / "p0000" / "segments").glob("*.seg"))


def upload(upto: int, *, count: int = 1, device: str = "phone", payload: bytes = b"points", **fields: object) -> Entry:
    known: dict[str, object] = {
        "kind": Kind.DATA,
        "device": device,
        "user": "ada",
        "stream": "peir/fixes",
        "schema": "00ff00ff00ff00ff",
        "codec": "delta/deflate",
        "epoch_counter": 1,
        "epoch_nonce": -7,
        "first": upto - count,
        "count": count,
        "upto": upto,
        "received_us": upto * 1_000_000,
        "payload": payload,
    }
    return Entry(**{**known, **fields})  # type: ignore[arg-type]


class Place:
    """A gateway in a directory, with a clock that only the test moves."""

    def __init__(self, root: Path, *, name: str = "one", limits: GatewayLimits | None = None) -> None:
        self.now_us = NOW
        self.disk = FailingDisk(root / "log")
        options = Options(
            root,
            name=name,
            address=f"http://{name}",
            partitions=2,
            log=Limits(reserve_bytes=0),
            limits=limits or GatewayLimits(),
        )
        self.service = Service(options, clock_us=lambda: self.now_us, log_disk=self.disk)
        self.exchange = Exchange(self.service)

    def phone(self, name: str = "phone", *, user: str = "ada") -> Phone:
        enrolment = self.service.stores.enrolment
        token = enrolment.token(user=user, program="peir", now_us=self.now_us, valid_us=SECOND)
        given = enrolment.enrol(token, device=name, now_us=self.now_us)
        return Phone(self, given.device, given.credential)

    def logged(self, kind: Kind = Kind.DATA) -> list[Entry]:
        reader = LogReader(LocalDisk(self.disk.root))
        entries = [entry for number in range(reader.partitions) for _, entry in reader.read(number, 0)]
        return [entry for entry in entries if entry.kind == kind]

    def aside(self) -> list[dict[str, Any]]:
        files = sorted((self.disk.root.parent / "quarantine").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class Phone:
    """A device that says what it is told to, keeps its nonce until it is welcomed, and brings the token back."""

    def __init__(self, place: Place, name: str, credential: str) -> None:
        self.place = place
        self.name = name
        self.credential = credential
        self.epoch = Epoch(1, b"epoch  1")
        self.token = b""
        self.reading_us = 0
        self.greetings = 0
        self.link = Link("10.0.0.1", now_us=place.now_us)

    def hello(self, **changes: Any) -> Hello:
        fields: dict[str, Any] = {
            "device": self.name,
            "credential": self.credential,
            "epoch": self.epoch,
            "nonce": b"nonce %d" % self.greetings,
            "token": self.token,
            "session": BOOT,
            "reading_us": self.reading_us,
        }
        return Hello(**{**fields, **changes})

    def data(self, first: int, count: int = 1, *, stream: str = "peir/fixes", **changes: Any) -> Data:
        fields: dict[str, Any] = {"epoch": self.epoch, "schema": b"\x00" * 8, "codec": "none", "payload": b"rows"}
        return Data(stream, first=first, count=count, **{**fields, **changes})

    async def send(self, *frames: Frame) -> list[Frame]:
        """A message on the phone's connection, and its answer."""
        reply = await self.place.exchange.turn(self.link, encode_all(frames))
        answers = list(decode_all(encode_all(reply.frames)))
        for answer in answers:
            if isinstance(answer, Welcome) and not answer.challenge:
                self.token = answer.token
                self.greetings += 1
        return answers

    async def post(self, *frames: Frame, **changes: Any) -> list[Frame]:
        """A message of its own, as by HTTP; a challenge is answered."""
        self.link = Link("10.0.0.1", now_us=self.place.now_us)
        answers = await self.send(self.hello(**changes), *frames)
        if answers and isinstance(answers[0], Welcome) and answers[0].challenge:
            self.link = Link("10.0.0.1", now_us=self.place.now_us)
            answers = await self.send(self.hello(**{**changes, "token": answers[0].challenge}), *frames)
        return answers


def tell(root: Path, story: Callable[[Place], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        place = Place(root, **options)
        await place.service.start()
        try:
            await story(place)
        finally:
            await place.service.stop()

    asyncio.run(whole())


def only(kind: type[F], frames: list[Frame]) -> F:
    (found,) = [frame for frame in frames if isinstance(frame, kind)]
    return found
