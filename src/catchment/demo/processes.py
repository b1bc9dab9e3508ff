"""The demo's processes: each started in a session of its own, told apart in a journal, and never left behind.

A child ends when the process that started it does, however that ends; asked politely first. Knows processes.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from catchment.cloud.children import end_with_parent

STOP_S_MAX = 30.0


class Child:
    """A process of the demo."""

    def __init__(self, name: str, words: Sequence[str], journal: Path) -> None:
        journal.parent.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.journal = journal
        with journal.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                # Ctrl-C is for the demo, which ends its children in an order that loses nothing.
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def last_words(self, lines: int = 3) -> str:
        """What it said at its end."""
        with contextlib.suppress(OSError):
            return "\n".join(self.journal.read_text(errors="replace").strip().splitlines()[-lines:])
        return ""

    def ask_to_stop(self) -> None:
        """Tell it to end in good order."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def wait(self, within_s: float = STOP_S_MAX) -> bool:
        """Until it has ended; whether it did so by itself."""
        try:
            self.process.wait(within_s)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
