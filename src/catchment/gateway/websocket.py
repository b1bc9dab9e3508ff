"""WebSockets: uvicorn's, with a short way for what nearly every message is.

websockets reads through generators and events, and that costs more than the way of a small upload to the log. Here what
arrives on an open connection is cut into whole frames. One that is a whole binary message is handed on at once, and an
answer is written at once; every other frame goes, whole, to websockets, which answers it as ever: handshakes, pings,
fragments, closing, and whatever breaks the protocol or is too large. So what is accepted and how it is refused is
websockets' word alone. Holds one frame per connection, no larger than the largest message.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

try:
    from websockets.speedups import apply_mask
except ImportError:  # Its part in C is missing where no wheel fits.
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_WHOLE_BINARY = 0x82
_FINAL, _CONTROL, _MASKED = 0x80, 0x08, 0x80
_MASK_BYTES = 4
_HEAD_BYTES_MAX = 14


class Socket(WebSocketsSansIOProtocol):
    """One connection."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._bytes_max = self.config.ws_max_size
        self._unread = bytearray()
        self._in_fragments = False
        self._as_ever = False
        """Whether all bytes go to websockets as they come: once it holds a part of a frame, it must have the rest."""

    def data_received(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._as_ever or not self.handshake_complete:
            # What follows the request before it is answered is websockets' from its middle on.
            self._as_ever = self._as_ever or self.handshake_initiated
            super().data_received(data)
            return
        unread = self._unread
        unread += data
        while (size := self._frame_bytes()) and size <= len(unread):
            self._take(size)
        if size > self._bytes_max + _HEAD_BYTES_MAX:
            # It will be refused, and is not gathered here first.
            self._as_ever = True
            rest, self._unread = bytes(unread), bytearray()
            super().data_received(rest)

    async def send(self, message: ASGISendEvent) -> None:
        """What the gateway says."""
        body = message.get("bytes") if message["type"] == "websocket.send" else None
        if isinstance(body, bytes) and self._is_open() and self.writable.is_set():
            self.transport.write(_head(len(body)) + body)
        else:
            await super().send(message)

    def _is_open(self) -> bool:
        return (
            self.handshake_complete and not self.disconnected and not self.close_sent and self.conn.state is State.OPEN
        )

    def _frame_bytes(self) -> int:
        """How long the frame that begins there is, by its head; 0 while that has not arrived."""
        unread = self._unread
        if len(unread) < 2:
            return 0
        length = unread[1] & 0x7F
        masked = _MASK_BYTES if unread[1] & _MASKED else 0
        if length < 126:
            return 2 + masked + length
        if length == 126:
            return 4 + masked + int.from_bytes(unread[2:4]) if len(unread) >= 4 else 0
        return 10 + masked + int.from_bytes(unread[2:10]) if len(unread) >= 10 else 0

    def _take(self, size: int) -> None:
        """Hand on the frame of that many bytes."""
        unread = self._unread
        first, length = unread[0], unread[1] & 0x7F
        start = 6 if length < 126 else 8 if length == 126 else 14
        is_plain = first == _WHOLE_BINARY and unread[1] & _MASKED and size - start <= self._bytes_max
        if is_plain and not self._in_fragments and self._is_open():
            body = apply_mask(unread[start:size], bytes(unread[start - _MASK_BYTES : start]))
            del unread[:size]
            self.curr_msg_data_type, self.frames = "bytes", [body]
            self.send_receive_event_to_app()
            return
        if not first & _CONTROL:
            self._in_fragments = not first & _FINAL
        frame = bytes(unread[:size])
        del unread[:size]
        super().data_received(frame)


def _head(length: int) -> bytes:
    """The head of a whole binary message from a server."""
    if length < 126:
        return bytes((_WHOLE_BINARY, length))
    if length < 1 << 16:
        return struct.pack("!BBH", _WHOLE_BINARY, 126, length)
    return struct.pack("!BBQ", _WHOLE_BINARY, 127, length)
