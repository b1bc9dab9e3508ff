"""`catchment run` of a program that keeps files beside its data and needs no device, for tests that kill it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catchment.cloud.tables import open_table
from catchment.errors import ProgramError
from tests.thread.cloud import SPARK_S
from tests.thread.processes import CATCHMENT


class Keeping:
    """The program, in a directory of its own, in which its sinks keep what they keep."""

    def __init__(self, folder: Path, program: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._program, self._environment = program, environment
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again."""
        words = [*CATCHMENT, "run", str(self._program), "--data", "data", "--port", str(self._port), "--quick"]
        environment = {**os.environ, **self._environment}
        with (self.folder / "journal").open("ab") as journal:
            self._process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=journal, stderr=journal)

    def kill(self) -> None:
        """End it as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and see that it ends well."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(SPARK_S) == 0, self.said()[-3000:]

    def said(self) -> str:
        """Its journal, in all its starts."""
        return (self.folder / "journal").read_text()

    def kept(self, path: str = "kept") -> list[dict[str, Any]]:
        """What the files of a sink hold, by their list."""
        try:
            rows: list[dict[str, Any]] = open_table(self.folder / path).rows().to_pylist()
        except ProgramError:
            return []
        return rows
