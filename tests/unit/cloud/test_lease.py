"""One supervisor per program: the second is refused, a dead one lets go, generations only grow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catchment.cloud.lease import held, take
from catchment.errors import ProgramError

HOLD = """
import sys, pathlib
from catchment.cloud.lease import take
held = take(pathlib.Path(sys.argv[1]), "walks")
print(held.generation, flush=True)
sys.stdin.read()
"""


def test_a_killed_holder_lets_go_and_generations_grow(tmp_path: Path) -> None:
    assert held(tmp_path) is None
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "1\n"
        assert held(tmp_path) == holder.pid
        with pytest.raises(ProgramError, match="E030") as refused:
            take(tmp_path, "walks")
        assert f"process {holder.pid} holds" in refused.value.why
        holder.kill()
        holder.wait()
    assert held(tmp_path) is None
    second = take(tmp_path, "walks")
    assert second.generation == 2
    second.release()
    assert held(tmp_path) is None
