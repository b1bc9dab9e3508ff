"""The tutorial of the running fleet runs as it is written: its files, and its commands in their order, in one shell."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.spark]
PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "a-running-fleet.md"
FILE = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITHIN_S = 240


def commands(text: str) -> list[str]:
    return [line.removeprefix("$ ") for block in CONSOLE.findall(text) for line in block.splitlines()]


def test_the_page_runs_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Another port, and names of its own: a reader's fleet may be running here.
    text = PAGE.read_text().replace("8090", str(port)).replace("phone-", f"phone-{port}-")
    lines = commands(text)
    lines[1:1] = [f"cat > {name} <<'END'\n{body}END" for name, body in FILE.findall(text)]
    said = tmp_path / "said"
    script = tmp_path / "page.sh"
    marked = "set -euo pipefail\n" + "\n".join(f"{line}\ndate +'# {n} is done at %T'" for n, line in enumerate(lines))
    script.write_text(marked)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with said.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", str(script)],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        status = shell.wait(WITHIN_S)
    finally:
        # Whatever the page left running was started in its shell's group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    assert status == 0, said.read_text()[-4000:]
    assert f"# {len(lines) - 1} is done" in said.read_text()
    assert '"user":"ada"' in said.read_text().replace(": ", ":")
