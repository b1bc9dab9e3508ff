"""HTTP to a gateway: one connection, kept alive, one request at a time, in a thread of its own.

Promises: every request that was started is answered once, with a reply or with why there is none; whoever waits is
woken. A request on a kept connection that turns out to be dead is tried once on a fresh one, for frames may come
twice and count once. Knows sockets and TLS. Must not know what is in a body.
"""

from __future__ import annotations

import base64
import queue
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from catchment.errors import ProgramError

TIMEOUT_S = 30.0
REPLY_BYTES_MAX = 64 << 20


class Request(NamedTuple):
    """What to ask, of which gateway."""

    gateway: str
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Reply(NamedTuple):
    """What was answered; `status` 0 means that nothing was, and `body` says why in words."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}

    @property
    def problem(self) -> str:
        """What went wrong, for people."""
        return self.body[:500].decode("utf-8", "replace")


Answered: TypeAlias = Callable[[Request, Reply], None]


class Transport(Protocol):
    """Carries one request at a time."""

    def start(self, request: Request) -> None:
        """Begin; the reply comes later, by whatever way the driver was told."""
        ...


class Http:
    """A kept connection. `ca` are the authorities to trust instead of the system's."""

    def __init__(self, *, ca: Path | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._ca = ca
        self._timeout_s = timeout_s
        self._gateway = ""
        self._base = ""
        self._connection: HTTPConnection | None = None

    def ask(self, request: Request) -> Reply:
        """Ask, and wait for the answer."""
        kept = self._connection is not None and request.gateway == self._gateway
        try:
            return self._ask(request)
        except (OSError, HTTPException) as error:
            self.close()
            if not kept or isinstance(error, TimeoutError):
                return Reply(0, str(error or type(error).__name__).encode())
        try:
            return self._ask(request)
        except (OSError, HTTPException) as error:
            self.close()
            return Reply(0, str(error or type(error).__name__).encode())

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _ask(self, request: Request) -> Reply:
        if self._connection is None or request.gateway != self._gateway:
            self.close()
            self._connection, self._base = self._connect(request.gateway)
            self._gateway = request.gateway
        self._connection.request(
            request.method, self._base + request.path, request.body or None, headers=dict(request.headers)
        )
        response = self._connection.getresponse()
        body = response.read(REPLY_BYTES_MAX + 1)
        headers = {name.lower(): value for name, value in response.getheaders()}
        if len(body) > REPLY_BYTES_MAX:
            self.close()
            return Reply(0, b"the answer is larger than a gateway's ever is")
        return Reply(response.status, body, headers)

    def _connect(self, gateway: str) -> tuple[HTTPConnection, str]:
        place = urlsplit(gateway)
        host, base = place.hostname or "", place.path.rstrip("/")
        if place.scheme != "https":
            return HTTPConnection(host, place.port or 80, timeout=self._timeout_s), base
        import ssl  # a device that speaks to its gateway in the clear never pays for it

        context = ssl.create_default_context(cafile=None if self._ca is None else str(self._ca))
        return HTTPSConnection(host, place.port or 443, timeout=self._timeout_s, context=context), base


class Carrier:
    """A thread that asks, one request after the other; `answered` is called from that thread."""

    def __init__(self, http: Http, answered: Answered) -> None:
        self._http = http
        self._answered = answered
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._carry, name="gateway", daemon=True)
        self._thread.start()

    def start(self, request: Request) -> None:
        """Have it asked."""
        self._requests.put(request)

    def stop(self) -> None:
        """End after what was started; a request that hangs ends with the process."""
        self._requests.put(None)
        self._thread.join(timeout=1.0)

    def _carry(self) -> None:
        while (request := self._requests.get()) is not None:
            self._answered(request, self._http.ask(request))
        self._http.close()


def basic(device: str, credential: str) -> dict[str, str]:
    """The header that proves a device outside of frames."""
    return {"Authorization": "Basic " + base64.b64encode(f"{device}:{credential}".encode()).decode()}


def check_gateway(url: str) -> str:
    """The URL of a gateway, or an error that says what is wrong with it."""
    place = urlsplit(url)
    if place.scheme not in ("http", "https") or not place.hostname:
        raise ProgramError(
            "D630",
            f"{url!r} is no gateway",
            why="a gateway is reached by http:// or https:// and a host",
            fix="write --gateway https://gateway.example.org, or http://127.0.0.1:8080 for one on this machine",
        )
    return url.rstrip("/")
