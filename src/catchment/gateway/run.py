"""Running a gateway on a socket, until it is told to stop.

uvicorn serves; on SIGINT or SIGTERM connections are closed, what was submitted is written, and partitions are let go,
so that another gateway takes over at once. With a certificate it speaks TLS and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import importlib.util
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from catchment.errors import PeerError
from catchment.gateway.app import Application
from catchment.gateway.exchange import Exchange
from catchment.gateway.page.site import Site
from catchment.gateway.patience import HEAD_S, protocol
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from catchment.gateway.websocket import Socket

TAKES_NO_BYTES_MS = 30_000
"""How long a device may leave what was sent to it untaken."""
STOP_S = 5
"""How long open requests and connections have to end after a signal."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, and with which certificate."""

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None


def bind(listen: Listen) -> socket.socket:
    """The listening socket; with port 0, one that is free."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is, and answers are small.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((listen.host, listen.port))
    except OSError as error:
        found.close()
        raise PeerError(
            "G561",
            f"cannot listen on {listen.host}:{listen.port}",
            why=str(error),
            fix="stop what listens there, or choose another port with --port",
        ) from error
    # Of accepted connections too: one that takes no bytes, or whose device has gone, is ended by the kernel.
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKES_NO_BYTES_MS)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Enough for a fleet that comes back at once after this gateway's restart.
    found.listen(4096)
    found.set_inheritable(True)
    return found


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where it is installed: about a third less CPU per message."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    found: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return found


def server(
    application: Application,
    listen: Listen,
    *,
    message_bytes_max: int,
    connections_max: int,
    head_s: float = HEAD_S,
) -> uvicorn.Server:
    """A server that is not running yet: `serve(sockets=[…])` runs it."""
    config = uvicorn.Config(
        application,
        ws=Socket,
        ws_max_size=message_bytes_max,
        # Sleeping radios do not answer pings; idle connections are closed by what devices say, not by pings.
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        http=protocol(head_s),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=connections_max,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        h11_max_incomplete_event_size=64 << 10,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """uvicorn's server, but a signal ends it in good order and is not raised again: the command then returns."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


async def serve(options: Options, listen: Listen, listening: socket.socket) -> None:
    """Run a gateway on that socket until SIGINT or SIGTERM; refused if it cannot start."""
    service = Service(options)
    exchange = Exchange(service)
    site = Site(service, stopping=lambda: running.should_exit)
    application = Application(service, exchange=exchange.post, talk=exchange.talk, site=site)
    running = server(
        application,
        listen,
        message_bytes_max=options.limits.body_bytes,
        connections_max=options.limits.connections,
    )
    # What is loaded now stays, and frames that live for a millisecond make no cycles: looking for them at the default
    # pace takes a quarter of the gateway's time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    await running.serve(sockets=[listening])
    if application.failure is not None:
        raise application.failure
