"""What a device starts is light: importing it brings in nothing heavy. Modules are asserted, never times."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

HEAVY = {"pyspark", "pyarrow", "numpy", "pandas", "sqlglot", "duckdb", "google.protobuf", "uvicorn", "websockets"}
DEVICE_PATH = ("catchment", "catchment.cli", "catchment.engines.edge", "catchment.device", "catchment.sync")


def heavy_after(statement: str) -> set[str]:
    """The heavy packages that are loaded once a fresh Python has run the statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return HEAVY & set(json.loads(ran.stdout))


@pytest.mark.parametrize("name", [name for name in DEVICE_PATH if find_spec(name) is not None])
def test_importing_it_brings_in_nothing_heavy(name: str) -> None:
    assert heavy_after(f"import {name}") == set()


def test_a_heavy_import_is_found() -> None:
    assert heavy_after("import sqlglot") == {"sqlglot"}
