"""Questions to a running device: a socket in its directory, one line of JSON each way.

Promises: only who may enter the directory may ask; an answer is given between two turns of the agent, so it is never a
half of something; a question that is not understood is answered so. Knows Unix sockets and threads. What is answered is
the agent's business.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

SOCKET = "control"
LINE_BYTES_MAX = 64 * 1024
ANSWER_S = 10.0

Question: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]


class Control:
    """Listens. `ask` is called from its thread, and puts the answer into the queue that it is given."""

    def __init__(self, directory: Path, ask: Callable[[Question, queue.SimpleQueue[Answer]], None]) -> None:
        self._directory = directory
        self._ask = ask
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(directory) as path:
            # A process that was killed leaves its socket behind, which nobody answers at.
            with suppress(FileNotFoundError):
                Path(path).unlink()
            self._socket.bind(path)
        self._socket.listen(8)
        self._thread = threading.Thread(target=self._listen, name="control", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with suppress(OSError):
            (self._directory / SOCKET).unlink()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(ANSWER_S)
                connection.sendall(msgspec.json.encode(self._answer(connection), enc_hook=str) + b"\n")

    def _answer(self, connection: socket.socket) -> Answer:
        try:
            question = msgspec.json.decode(_line(connection), type=Question)
        except msgspec.DecodeError as error:
            return {"error": f"this is no question: {error}"}
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._ask(question, answers)
        try:
            return answers.get(timeout=ANSWER_S)
        except queue.Empty:
            return {"error": "the device is busy, or is just stopping"}


def ask(directory: Path, question: Question) -> Answer | None:
    """What the device that runs in that directory answers; None where none runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_S)
        try:
            with _short(directory) as path:
                connection.connect(path)
            connection.sendall(msgspec.json.encode(question) + b"\n")
            line = _line(connection, bytes_max=64 << 20)
        except (OSError, FileNotFoundError):
            return None
    return msgspec.json.decode(line, type=Answer) if line else None


def _line(connection: socket.socket, bytes_max: int = LINE_BYTES_MAX) -> bytes:
    parts: list[bytes] = []
    length = 0
    while length < bytes_max:
        part = connection.recv(65536)
        parts.append(part)
        length += len(part)
        if not part or part.endswith(b"\n"):
            break
    return b"".join(parts)


@contextmanager
def _short(directory: Path) -> Iterator[str]:
    """A name of the socket that is short enough: the kernel takes a hundred bytes, and directories lie deep."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET}" if Path("/proc/self/fd").is_dir() else str(directory / SOCKET)
    finally:
        os.close(handle)
