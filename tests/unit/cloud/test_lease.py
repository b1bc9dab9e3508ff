"""One supervisor per program: the second is refused or stands by, a dead one lets go, generations only grow."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catchment.cloud.lease import held, standbys, take
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


STAND_BY = """
import sys, pathlib
from catchment.cloud.lease import wait
held = wait(pathlib.Path(sys.argv[1]), lambda: False, silent_s=float(sys.argv[2]))
print(held.generation, flush=True)
sys.stdin.read()
"""


def started(code: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_standby_takes_over_from_a_killed_holder_and_ends_a_silent_one(tmp_path: Path) -> None:
    with started(HOLD, str(tmp_path)) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "1\n"
        with started(STAND_BY, str(tmp_path), "60") as second:
            assert second.stdout is not None
            while standbys(tmp_path) != [second.pid]:
                time.sleep(0.01)
            assert held(tmp_path) == first.pid
            first.kill()
            assert second.stdout.readline() == "2\n"
            assert (held(tmp_path), standbys(tmp_path)) == (second.pid, [])
            second.send_signal(signal.SIGSTOP)
            with started(STAND_BY, str(tmp_path), "0.5") as third:
                assert third.stdout is not None
                assert third.stdout.readline() == "3\n", "one that is stopped holds its lock for ever"
                assert held(tmp_path) == third.pid
                assert second.wait() == -signal.SIGKILL
                third.kill()


def test_a_standby_that_is_told_to_stop_leaves_nothing_behind(tmp_path: Path) -> None:
    from catchment.cloud.lease import wait

    lease = take(tmp_path, "walks")
    answers = iter([False, True])
    assert wait(tmp_path, lambda: next(answers)) is None
    assert standbys(tmp_path) == []
    lease.release()
