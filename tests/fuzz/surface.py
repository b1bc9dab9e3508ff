"""The HTTP surface as something to fuzz: a gateway's application, to which bytes are a request or a conversation.

The first bytes choose method, path, credentials and how the body is cut; the rest is the body, or frames with sound
preambles. Whatever comes, the application answers once and wholly: never with 500, never with an exception, with an
error's code where it refuses, and with sound frames where it speaks frames. Log and stores are real; only nothing waits
for the medium.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from catchment.gateway.app import Application
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log.files.disk import File, LocalDisk
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from catchment.sync.frame import Hello, Welcome, decode_all, encode
from catchment.sync.parts import Epoch
from tests.fuzz.targets import sealed

METHODS = ("POST", "GET", "HEAD", "PUT", "")
PATHS = ("/v1/sync", "/v1/enrol", "/v1/rotate", "/v1/plan", "/health", "/ready", "/metrics", "/", "/v1/sync/")
HEADERS = (b"authorization", b"content-length", b"prefer", b"if-none-match", b"content-type", b"x-\xff")
BODY_BYTES_MAX = 64 << 10
QUARANTINE_BYTES_MAX = 256 << 20


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


class HastyDisk(LocalDisk):
    """A disk of such files."""

    def create(self, path: str) -> File:
        return _Hasty(super().create(path))


class Surface:
    """A gateway with one enrolled device, and what is said to it."""

    def __init__(self, data: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        limits = GatewayLimits(
            body_bytes=BODY_BYTES_MAX, device_burst_bytes=1e15, device_bytes_per_s=1e15, device_streams=8
        )
        options = Options(data, partitions=1, log=Limits(reserve_bytes=0), limits=limits)
        self.service = Service(options, log_disk=HastyDisk(data / "log"))
        self._exchange = Exchange(self.service)
        self._application = Application(self.service, exchange=self._exchange.post, talk=self._exchange.talk)
        loop.run_until_complete(self.service.start())
        store = self.service.stores.enrolment
        now_us = self.service.clock_us()
        token = store.token(user="ada", program="peir", now_us=now_us, valid_us=1_000_000)
        self._credential = store.enrol(token, device="phone", now_us=now_us).credential
        self._epoch = Epoch(1, b"12345678")
        self._token, self._greetings = b"", 0

    def close(self) -> None:
        """Stop, and look at what is left behind."""
        files = (self.service.options.data / "quarantine").iterdir()
        assert sum(file.stat().st_size for file in files) <= QUARANTINE_BYTES_MAX
        self._loop.run_until_complete(self.service.stop())

    def hear(self, data: bytes) -> None:
        """One input."""
        if len(data) < 6:
            return
        choice, body = data[:6], data[6:]
        if choice[0] & 0x20:
            body = sealed(body)
        if choice[0] & 0x40:
            body = encode(self._hello()) + body
        if choice[0] & 0x80:
            self._loop.run_until_complete(self._connection(_cut(body, choice[4])))
        else:
            self._loop.run_until_complete(self._request(choice, body))

    def _hello(self) -> Hello:
        return Hello("phone", self._credential, self._epoch, b"nonce %d" % self._greetings, self._token)

    async def _request(self, choice: bytes, body: bytes) -> None:
        name, rest = HEADERS[(choice[3] & 0x7F) % len(HEADERS)], body[:5000]
        headers = [(name, rest)] if choice[3] & 0x80 else []
        if choice[2] & 1:
            word = base64.b64encode(b"phone:" + (self._credential.encode() if choice[2] & 2 else rest))
            headers.append((b"authorization", b"Basic " + word))
        path = PATHS[choice[1] % len(PATHS)]
        scope = {
            "type": "http",
            "method": METHODS[choice[0] % len(METHODS)],
            "path": path if choice[1] < 240 else rest[:40].decode("latin-1"),
            "headers": headers,
            "client": ("10.0.0.1", 4711) if choice[2] & 4 else None,
            "query_string": rest[:40],
        }
        parts = [
            {"type": "http.request", "body": part, "more_body": more} for part, more in _parts(_cut(body, choice[4]))
        ]
        if choice[5] & 1:
            parts.insert(choice[5] % len(parts), {"type": "http.disconnect"})
        sent: list[dict[str, Any]] = []
        await self._call(scope, parts, sent)
        assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"], sent
        status, answer = sent[0]["status"], sent[1]["body"]
        assert status in {200, 201, 304, 400, 401, 403, 404, 405, 408, 409, 413, 429, 503}, (status, answer)
        if status >= 400 and answer and path != "/ready":
            assert set(json.loads(answer)) == {"code", "what", "why", "fix"}, answer
        if status == 200 and path == "/v1/sync" and answer:
            self._heard(answer)

    async def _connection(self, messages: list[bytes]) -> None:
        received: list[dict[str, Any]] = [{"type": "websocket.connect"}]
        received += [{"type": "websocket.receive", "bytes": message} for message in messages]
        sent: list[dict[str, Any]] = []
        scope: dict[str, Any] = {"type": "websocket", "path": "/v1/sync", "headers": [], "client": None}
        await self._call(scope, [*received, {"type": "websocket.disconnect"}], sent)
        for message in sent:
            assert message["type"] in {"websocket.accept", "websocket.send", "websocket.close"}
            assert message.get("code") not in {1011}, "the gateway failed unexpectedly"
            if message["type"] == "websocket.send":
                self._heard(message["bytes"])

    def _heard(self, answer: bytes) -> None:
        """What a device does with a welcome, so that what it says next is heeded."""
        for frame in decode_all(answer):
            if isinstance(frame, Welcome):
                self._token = frame.challenge or frame.token
                self._greetings += not frame.challenge
        found = self.service.stores.enrolment.find("phone")
        if found is not None and found.quarantined_us is not None:
            self.service.stores.enrolment.quarantine("phone", now_us=None)

    async def _call(self, scope: dict[str, Any], received: list[dict[str, Any]], sent: list[dict[str, Any]]) -> None:
        left = iter(received)

        async def receive() -> dict[str, Any]:
            return next(left, {"type": f"{scope['type']}.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        await asyncio.wait_for(self._application(scope, receive, send), 30)


def _cut(body: bytes, choice: int) -> list[bytes]:
    """The body in one to four parts."""
    size = max(1, len(body) // (choice % 4 + 1))
    return [body[at : at + size] for at in range(0, len(body), size)] or [b""]


def _parts(parts: list[bytes]) -> Iterator[tuple[bytes, bool]]:
    for number, part in enumerate(parts):
        yield part, number < len(parts) - 1


@contextmanager
def surface(data: Path) -> Iterator[Surface]:
    """A running one in that directory."""
    loop = asyncio.new_event_loop()
    try:
        made = Surface(data, loop)
        yield made
        made.close()
    finally:
        loop.close()
