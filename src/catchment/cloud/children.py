"""The gateway as a child process: started, asked whether it is ready, kept alive, and never left behind."""

from __future__ import annotations

import ctypes
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from catchment.errors import PeerError
from catchment.gateway.journal import say

READY_S_MAX = 60.0
STOP_S_MAX = 15.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
# Its certificate names the host that devices know.
_OWN_CHILD = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_OWN_CHILD.check_hostname = False
_OWN_CHILD.verify_mode = ssl.CERT_NONE


class GatewayProcess:
    """`catchment gateway run`, with these words of its own, kept alive."""

    def __init__(self, data: Path, host: str, port: int, words: Sequence[str] = ()) -> None:
        self.address = f"{'https' if '--certificate' in words else 'http'}://{host}:{port}"
        self._command = [
            *(sys.executable, "-m", "catchment", "gateway", "run", "--data", str(data)),
            *("--host", host, "--port", str(port), "--partitions", "1"),
            *words,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._start_at_s = 0.0

    def start(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(self._command, preexec_fn=end_with_parent, start_new_session=True)
        say("gateway_started", process=self._process.pid)

    def keep(self) -> None:
        """Start it again if it died, later each time."""
        if self._process is None:
            if time.monotonic() >= self._start_at_s:
                self.start()
        elif self._process.poll() is not None:
            self._failures += 1
            wait_s = min(30.0, 0.1 * 2 ** min(self._failures, 10))
            self._start_at_s = time.monotonic() + wait_s
            say("gateway_died", code=self._process.returncode, again_s=wait_s)
            self._process = None
        elif self._failures and self._ready():
            self._failures = 0

    def wait_ready(self, patience_s: float = 0.0) -> None:
        """Wait until it takes uploads; for `patience_s`, one that ends before that is started again."""
        began = time.monotonic()
        if self._process is None:
            self.start()
        while time.monotonic() < began + READY_S_MAX:
            if self._process is None or self._process.poll() is not None:
                if time.monotonic() > began + patience_s:
                    break
                self.keep()
                time.sleep(0.05)
                continue
            if self._ready():
                return
            time.sleep(0.05)
        raise PeerError(
            "E037",
            f"the gateway at {self.address} did not start",
            why="its own lines above say what stopped it",
            fix="free the port or choose another with --port, and start again",
        )

    def stop(self) -> None:
        """End it: politely, then not."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/ready", timeout=2, context=_OWN_CHILD) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def end_with_parent() -> None:
    """Asks Linux to end this child when its parent dies, however that dies."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
