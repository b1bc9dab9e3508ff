"""Patience: how long, and for how many bytes, a client may take to come out with a request.

uvicorn waits for ever for the rest of a request's head, and its faster parser gathers headers without end. Here a
connection that has not said a whole head in time, or within its bytes, is cut off without a word: whoever does that
is not waiting for an answer. Bodies are limited where they are read (`http.read_body`), WebSockets where they are
held.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from typing import Any

HEAD_BYTES_MAX = 32 << 10
HEAD_S = 10.0


def protocol(head_s: float = HEAD_S) -> type[asyncio.Protocol]:
    """uvicorn's protocol for HTTP, the faster one where it is installed, with patience."""
    name = "httptools" if importlib.util.find_spec("httptools") else "h11"
    module = importlib.import_module(f"uvicorn.protocols.http.{name}_impl")
    base: Any = module.HttpToolsProtocol if name == "httptools" else module.H11Protocol

    class Patient(base):  # type: ignore[misc]
        """One connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._head_bytes = 0
            self._deadline: asyncio.TimerHandle | None = self.loop.call_later(head_s, transport.abort)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                # Refused, or a WebSocket from now on.
                self._relax()
            elif self.cycle is not before or self._is_answering():
                self._relax()
            else:
                self._head_bytes += len(data)
                if self._head_bytes > HEAD_BYTES_MAX:
                    self.transport.abort()
                elif self._deadline is None:
                    self._deadline = self.loop.call_later(head_s, self.transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

        def _is_answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _relax(self) -> None:
            self._head_bytes = 0
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Patient
