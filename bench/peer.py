"""A side of a race that lives in an environment of its own: a peer is never a dependency of the product.

    streamz = Peer("streamz", requirements=("streamz==0.6.4",), script="peers/streamz_edge.py")
    race([timed("ours", ours), streamz.side(str(input_path))], rounds=5)

The environment is made on first use, under `bench/.peers/`, and made again when its requirements change. The
script runs there once per round. It reads its input, times its own work, so that start-up and loading do not
count, and prints as its last line `{"seconds": …, "answer": …}`. The answer crosses as JSON: lists, not tuples.

Knows processes, pip and JSON; nothing of what is measured.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Reading, Side

BENCH = Path(__file__).resolve().parent


class PeerFailedError(Exception):
    """The peer could not be installed, or its script did not end with a reading."""


@dataclass(frozen=True, slots=True)
class Peer:
    """`script` is relative to `bench/`; `requirements` are pip's, pinned so that a run can be repeated."""

    name: str
    requirements: tuple[str, ...]
    script: str
    timeout_s: float = 600
    home: Path = BENCH / ".peers"

    def side(self, *arguments: str) -> Side:
        """The peer as a side of a race; installs it now, so that no round pays for that."""
        python = self.install()
        return Side(self.name, lambda: self._run(python, arguments))

    def install(self) -> Path:
        """The Python of the peer's environment."""
        environment = self.home / self.name
        python, stamp = environment / "bin" / "python", environment / ".ready"
        wanted = "\n".join([sys.version, *self.requirements])
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / f"{self.name}.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
                return python
            print(
                f"[set-up] installing {' '.join(self.requirements)} into {environment.name}'s own environment",
                flush=True,
            )
            shutil.rmtree(environment, ignore_errors=True)
            # Our own pip installs into it: a Debian Python may lack the `ensurepip` that would give it one.
            self._set_up("-m", "venv", "--without-pip", str(environment))
            into = ["--python", str(python), "--disable-pip-version-check", "--quiet"]
            if self.requirements:
                self._set_up("-m", "pip", *into, "install", *self.requirements)
            stamp.write_text(wanted, encoding="utf-8")
        return python

    def _set_up(self, *words: str) -> None:
        ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise PeerFailedError(f"{self.name} could not be installed:\n{ran.stderr[-2000:]}")

    def _run(self, python: Path, arguments: tuple[str, ...]) -> Reading:
        command = [str(python), str(BENCH / self.script), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout_s, check=False)
        last = ran.stdout.strip().rpartition("\n")[2]
        try:
            read = json.loads(last)
            reading = Reading(float(read["seconds"]), read["answer"])
        except (ValueError, KeyError, TypeError):
            reading = None
        if ran.returncode != 0 or reading is None:
            raise PeerFailedError(f"{self.name} ended with {ran.returncode} and {last!r}:\n{ran.stderr[-2000:]}")
        return reading
