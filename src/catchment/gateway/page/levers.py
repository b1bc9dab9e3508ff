"""Levers: what a demo allows to be broken from its page, and what it says of the recovery.

A demo listens on a Unix socket in the directory `levers` beside the gateway's stores, one line of JSON each way. Where
nobody listens there is nothing to break, and the page shows no levers. Knows the socket and its lines; what a lever
does is the demo's business.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec

from catchment.errors import PeerError

SOCKET = "control"
ANSWER_S = 10.0
LINE_BYTES_MAX = 4 << 20


class Levers:
    """Those of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def are_there(self) -> bool:
        """Whether a demo runs."""
        return (self._directory / SOCKET).exists()

    async def state(self) -> dict[str, Any] | None:
        """What there is to pull, and what has been told; None where there is no demo."""
        return await self._ask({"ask": "state"})

    async def pull(self, name: str) -> dict[str, Any]:
        """Pull one."""
        answer = await self._ask({"pull": name})
        if answer is None:
            raise PeerError(
                "G608",
                "there is nothing to break here",
                why="no demo runs on this gateway's directory",
                fix="start one: make demo",
            )
        if "error" in answer:
            raise PeerError("G609", f"{name} cannot be done now", why=str(answer["error"]), fix="wait, and try again")
        return answer

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        try:
            handle = os.open(self._directory, os.O_RDONLY)
        except OSError:
            return None
        try:
            # The kernel takes a hundred bytes for the name of a socket, and directories lie deep.
            short = Path(f"/proc/self/fd/{handle}")
            place = (short if short.exists() else self._directory) / SOCKET
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_unix_connection(str(place), limit=LINE_BYTES_MAX)
                try:
                    writer.write(msgspec.json.encode(question) + b"\n")
                    line = await reader.readline()
                finally:
                    writer.close()
            found: dict[str, Any] = msgspec.json.decode(line)
            return found
        except (OSError, TimeoutError, ValueError, msgspec.DecodeError):
            return None
        finally:
            os.close(handle)
