"""The fleet of bench/ingest.py: devices that upload batches and wait for acknowledgements, in one of three protocols.

Runs in a process of its own. Every batch is encoded before the clock starts, so what is timed is the server, the
sockets and the least a client can do: write what the window lets go, and count what comes back. The same loop drives
all protocols; only the framing differs. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import json
import os
import resource
import struct
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from catchment.gateway.stores import open_enrolment
from catchment.sync.frame import Ack, Data, Error, Hello, Moved, Welcome, decode_all, encode
from catchment.sync.parts import Clock, Epoch

PAYLOAD_BYTES = 400
"""A batch of 100 points as the wire's codec leaves it: four bytes a point (bench/wire.py)."""
POINTS = 100
BOOT = b"bench boot clock"


class Speech(Protocol):
    """A protocol, as one device speaks it. `greet` and `heard` return bytes to write."""

    is_joined: bool
    moved_to: str
    """Where another server of the same fleet is, if this one said that the device belongs there."""

    def greet(self) -> bytes: ...

    def batch(self, number: int) -> bytes: ...

    def pack(self, batches: list[bytes]) -> bytes: ...

    def heard(self, data: bytes) -> tuple[int, bytes]:
        """How many batches were acknowledged by these bytes, and what to answer."""
        ...


class Ours:
    """Frames on a WebSocket; what the window lets go at once travels in one message."""

    def __init__(self, number: int, credential: str, payload: bytes) -> None:
        self.is_joined, self.moved_to = False, ""
        self._name = f"bench-{number}"
        self._credential = credential
        self._payload = payload
        self._epoch = Epoch(1, b"%08d" % number)
        self._upgraded = False
        self._buffer = b""
        self._acknowledged = 0

    def greet(self) -> bytes:
        self._upgraded, self._buffer, self.moved_to = False, b"", ""
        key = base64.b64encode(os.urandom(16)).decode()
        return (
            "GET /v1/sync HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()

    def batch(self, number: int) -> bytes:
        clock = Clock(BOOT, 1_000_000 + number, POINTS * 1_000_000, None)
        first, schema = number * POINTS, bytes(8)
        return encode(
            Data("peir/fixes", self._epoch, first, POINTS, schema, "delta/zstd", clock, number, payload=self._payload)
        )

    def pack(self, batches: list[bytes]) -> bytes:
        return websocket(b"".join(batches))

    def heard(self, data: bytes) -> tuple[int, bytes]:
        self._buffer += data
        if not self._upgraded:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return 0, b""
            self._upgraded, self._buffer = True, self._buffer[end + 4 :]
            return 0, self._hello(b"")
        count, answer = 0, b""
        for message in self._messages():
            for frame in decode_all(message):
                match frame:
                    case Welcome():
                        if frame.challenge:
                            answer += self._hello(frame.challenge)
                        else:
                            self.is_joined = True
                    case Ack() if frame.marks:
                        count += (frame.marks[0].upto - self._acknowledged) // POINTS
                        self._acknowledged = frame.marks[0].upto
                    case Moved() if frame.gateway:
                        self.moved_to = frame.gateway
                    case Error() | Moved():
                        raise RuntimeError(str(frame))
                    case _:
                        pass
        return count, answer

    def _hello(self, token: bytes) -> bytes:
        reading_us = int(time.monotonic() * 1e6)
        hello = Hello(self._name, self._credential, self._epoch, b"once", token, session=BOOT, reading_us=reading_us)
        return websocket(encode(hello))

    def _messages(self) -> Iterator[bytes]:
        while len(self._buffer) >= 2:
            length, at = self._buffer[1], 2
            if length == 126:
                if len(self._buffer) < 4:
                    return
                (length,), at = struct.unpack_from(">H", self._buffer, 2), 4
            if len(self._buffer) < at + length:
                return
            # Whether the server also says goodbye is of no interest.
            if self._buffer[0] == 0x82:
                yield self._buffer[at : at + length]
            self._buffer = self._buffer[at + length :]


class Mqtt:
    """QoS 1 publishing, MQTT 3.1.1."""

    def __init__(self, number: int, payload: bytes) -> None:
        self.is_joined, self.moved_to = False, ""
        self._number = number
        self._payload = payload
        self._buffer = b""

    def greet(self) -> bytes:
        name = b"bench-%d" % self._number
        body = b"\x00\x04MQTT\x04\x02\x00\x3c" + struct.pack(">H", len(name)) + name
        return bytes([0x10, len(body)]) + body

    def batch(self, number: int) -> bytes:
        topic = b"peir/fixes/%d" % self._number
        body = struct.pack(">H", len(topic)) + topic + struct.pack(">H", number % 65535 + 1) + self._payload
        length = bytes([len(body) % 128 | 128, len(body) // 128]) if len(body) > 127 else bytes([len(body)])
        return b"\x32" + length + body

    def pack(self, batches: list[bytes]) -> bytes:
        return b"".join(batches)

    def heard(self, data: bytes) -> tuple[int, bytes]:
        self._buffer += data
        if not self.is_joined:
            self.is_joined = self._buffer[:4] == b"\x20\x02\x00\x00"
            self._buffer = self._buffer[4:] if self.is_joined else self._buffer
        count = len(self._buffer) // 4
        if self.is_joined and count:
            if self._buffer[0] != 0x40:
                raise RuntimeError(f"not a PUBACK: {self._buffer[:8].hex()}")
            self._buffer = self._buffer[4 * count :]
        return (count, b"") if self.is_joined else (0, b"")


class Nats:
    """JetStream publishing: each message is acknowledged to an inbox."""

    def __init__(self, number: int, payload: bytes) -> None:
        self.is_joined, self.moved_to = False, ""
        self._number = number
        self._payload = payload
        self._buffer = b""

    def greet(self) -> bytes:
        return b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB _I.%d 1\r\nPING\r\n' % self._number

    def batch(self, number: int) -> bytes:
        head = b"PUB peir.fixes.%d _I.%d %d\r\n" % (self._number, self._number, len(self._payload))
        return head + self._payload + b"\r\n"

    def pack(self, batches: list[bytes]) -> bytes:
        return b"".join(batches)

    def heard(self, data: bytes) -> tuple[int, bytes]:
        lines = (self._buffer + data).split(b"\r\n")
        self._buffer = lines.pop()
        count, answer = 0, b""
        for line in lines:
            if line.startswith(b'{"stream"'):
                count += 1
            elif line == b"PONG":
                self.is_joined = True
            elif line == b"PING":
                answer += b"PONG\r\n"
            elif line.startswith((b"-ERR", b'{"error"', b'{"type"')):
                raise RuntimeError(line.decode())
        return count, answer


class Device(asyncio.Protocol):
    """One connection: keeps `window` batches under way until all are acknowledged."""

    def __init__(self, speech: Speech, batches: list[bytes], window: int, fleet: Fleet) -> None:
        self._speech = speech
        self._batches = batches
        self._window = window
        self._fleet = fleet
        self._sent = self._done = 0
        self._under_way: deque[float] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._speech.greet())

    def data_received(self, data: bytes) -> None:
        was_joined = self._speech.is_joined
        try:
            count, answer = self._speech.heard(data)
        except RuntimeError as error:
            self._fleet.fail(error)
            return
        if answer:
            self._transport.write(answer)
        if self._speech.moved_to:
            # Nothing more is heard of the former connection but its end, at once.
            self._transport.abort()
            self._fleet.move(self, urlsplit(self._speech.moved_to).port or 0)
            return
        if self._speech.is_joined and not was_joined:
            self._fleet.joined()
        if count:
            now = time.perf_counter()
            self._done += count
            for _ in range(count):
                self._fleet.waits.append(now - self._under_way.popleft())
            if self._done == len(self._batches):
                self._fleet.finished()
            else:
                self.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done < len(self._batches) and not self._speech.moved_to:
            self._fleet.fail(exc or ConnectionResetError("the server closed a connection"))

    def pump(self) -> None:
        """Write what the window lets go."""
        upto = min(len(self._batches), self._done + self._window)
        if upto > self._sent:
            self._transport.write(self._speech.pack(self._batches[self._sent : upto]))
            self._under_way.extend([time.perf_counter()] * (upto - self._sent))
            self._sent = upto


class Fleet:
    """All devices of one run."""

    def __init__(self, devices: int) -> None:
        self.waits: list[float] = []
        self._to_join = self._to_finish = devices
        self._tasks: set[asyncio.Task[None]] = set()
        self.everyone_joined = asyncio.Event()
        self.everyone_finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def joined(self) -> None:
        self._to_join -= 1
        if not self._to_join:
            self.everyone_joined.set()

    def finished(self) -> None:
        self._to_finish -= 1
        if not self._to_finish and not self.everyone_finished.done():
            self.everyone_finished.set_result(None)

    def move(self, device: Device, port: int) -> None:
        """Have the device go on at that port."""
        task = asyncio.get_running_loop().create_task(self.connect(device, port))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def connect(self, device: Device, port: int) -> None:
        """Connect the device."""
        try:
            await asyncio.get_running_loop().create_connection(lambda: device, "127.0.0.1", port)
        except OSError as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        if not self.everyone_finished.done():
            self.everyone_finished.set_exception(error)


async def run(arguments: argparse.Namespace) -> dict[str, object]:
    """Connect everyone, start the clock, upload everything."""
    fleet = Fleet(arguments.devices)
    payload = os.urandom(PAYLOAD_BYTES)
    credentials = enrol(arguments.data, arguments.devices) if arguments.protocol == "ours" else []
    devices = []
    for number in range(arguments.devices):
        speech: Speech
        match arguments.protocol:
            case "ours":
                speech = Ours(number, credentials[number], payload)
            case "mqtt":
                speech = Mqtt(number, payload)
            case _:
                speech = Nats(number, payload)
        batches = [speech.batch(index) for index in range(arguments.batches)]
        device = Device(speech, batches, arguments.window, fleet)
        await fleet.connect(device, arguments.port)
        devices.append(device)
    await asyncio.wait_for(fleet.everyone_joined.wait(), 60)
    start, spent = time.perf_counter(), _cpu()
    for device in devices:
        device.pump()
    await asyncio.wait_for(fleet.everyone_finished, 600)
    seconds = time.perf_counter() - start
    waits = sorted(fleet.waits)
    return {
        "seconds": seconds,
        "answer": len(waits),
        "p50_ms": waits[len(waits) // 2] * 1e3,
        "p99_ms": waits[len(waits) * 99 // 100] * 1e3,
        "client_cpu_s": _cpu() - spent,
    }


def websocket(body: bytes) -> bytes:
    """A masked binary message; the mask is zero, which costs the client nothing and the server the same."""
    if len(body) < 126:
        head = bytes([0x82, 0x80 | len(body)])
    elif len(body) < 65536:
        head = b"\x82\xfe" + struct.pack(">H", len(body))
    else:
        head = b"\x82\xff" + struct.pack(">Q", len(body))
    return head + bytes(4) + body


def enrol(data: Path, devices: int) -> list[str]:
    """Credentials of devices that were never there before."""
    store = open_enrolment(data)
    credentials = []
    for number in range(devices):
        token = store.token(user=f"user-{number}", now_us=0, valid_us=1)
        credentials.append(store.enrol(token, device=f"bench-{number}", now_us=0).credential)
    store.close()
    return credentials


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    # The client is not what is measured, whichever server it talks to.
    gc.disable()
    parser = argparse.ArgumentParser(description="upload from many devices")
    parser.add_argument("protocol", choices=("ours", "mqtt", "nats"))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--batches", type=int, required=True, help="per device")
    parser.add_argument("--window", type=int, required=True, help="batches under way per device")
    parser.add_argument("--data", type=Path, default=Path(), help="our gateway's directory")
    print(json.dumps(asyncio.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
