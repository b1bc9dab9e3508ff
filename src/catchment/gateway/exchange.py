"""The exchange: the sync endpoint, by HTTP and on a WebSocket.

Messages arrive here and answers leave; between the two lies a turn of the device (`turns`). A WebSocket's next
message is read only when the last was answered, so a connection holds one message in memory, and TCP tells the device
to wait.
"""

from __future__ import annotations

import logging

from catchment.errors import PeerError
from catchment.gateway import http
from catchment.gateway.connections import Connections
from catchment.gateway.devices import Devices, Link
from catchment.gateway.http import Answer, Receive, Scope, Send
from catchment.gateway.service import Service
from catchment.gateway.tally import Tally
from catchment.gateway.turns import Reply, Turns
from catchment.sync.frame import Data, encode_all

WAIT_S = 50.0
"""How long an HTTP request may wait for results: less than proxies on the way do."""


class Exchange:
    """The sync endpoint of one gateway."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limits = service.options.limits
        self._tally = Tally(service)
        self.devices = Devices()
        self._connections = Connections(service, self.devices, self._tally)
        self._turns = Turns(service, self.devices, self._connections, self._tally)
        service.metrics.gauge("devices_known", "Devices remembered.", (), lambda: {(): len(self.devices)})

    async def turn(self, link: Link, body: bytes) -> Reply:
        """One message on a connection, and what to answer."""
        return await self._turns.take(link, body)

    async def post(self, scope: Scope, receive: Receive) -> Answer:
        """A message by HTTP: it begins with a hello, and everything is answered at once."""
        limits = self._limits
        body = await http.read_body(scope, receive, bytes_max=limits.body_bytes, within_us=limits.body_us)
        link = Link(_peer(scope), now_us=self._service.clock_us())
        reply = await self.turn(link, body)
        device = link.device
        wait_s = http.wait_s(scope, at_most=WAIT_S)
        if device is not None and wait_s and not reply.over and not any(isinstance(one, Data) for one in reply.frames):
            reply.frames.extend(await self._connections.results_within(device, link, wait_s))
        if device is not None:
            if device.link is link:
                device.link = None
            now = self._service.clock_us()
            enrolled = device.enrolled
            presence = self._service.presence
            self._service.note(presence.heard(enrolled.device, enrolled.user, now_us=now, sleep_us=link.sleep_us))
        return Answer(200, encode_all(reply.frames), http.FRAMES)

    async def talk(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket, until one side ends it."""
        if len(self._connections.links) >= self._limits.connections:
            self._tally.refused(_too_many(self._limits.connections))
            await send({"type": "websocket.close", "code": 1013})
            return
        await send({"type": "websocket.accept"})

        link = Link(_peer(scope), now_us=self._service.clock_us(), send=send)
        self._connections.links.add(link)
        try:
            await link.close(await self._talk(link, receive))
        except OSError:
            # The device has gone: by itself, or because it took no bytes.
            link.shut()
        except Exception:
            # One connection ends, with its trace in the journal, and the gateway goes on. The device connects again.
            logging.getLogger("catchment.gateway").exception("connection failed unexpectedly")
            await link.close(1011)
        finally:
            self._connections.links.discard(link)
            self._connections.left(link)

    async def _talk(self, link: Link, receive: Receive) -> int:
        """Messages of a connection; the WebSocket code to close it with."""
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return 1000
            body = message.get("bytes")
            if body is None:
                return 1003
            if not link.is_open:
                return 1001
            reply = await self.turn(link, body)
            if reply.frames:
                await link.send(encode_all(reply.frames))
            if link.device is not None and not link.was_welcomed:
                link.was_welcomed, link.pushing = True, False
                self._connections.push(link.device, link)
            if reply.over:
                return 1000


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _too_many(connections: int) -> PeerError:
    return PeerError(
        "G562",
        "the gateway has no room for another connection",
        why=f"it holds {connections} at most",
        fix="try again later, or give it more with --connections",
    )
