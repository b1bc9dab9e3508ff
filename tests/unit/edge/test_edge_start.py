"""What the edge engine holds when it starts; how long that takes is for bench/edge_engine.py, for machines differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

START = Path(__file__).parents[3] / "bench" / "peers" / "edge_start.py"
MB_MAX = 40


def test_a_fresh_interpreter_gives_its_first_result_within_40_mb() -> None:
    ran = subprocess.run([sys.executable, START], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["held_kb"] <= MB_MAX * 1024
