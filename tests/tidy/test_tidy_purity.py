"""No clock, socket, randomness, thread or Spark in `program`, `plan`, `operators`, `sync`: they are passed in.

That is what lets the same code run on sockets, on Spark and in the simulator, and replay to the same answer.
"""

from __future__ import annotations

import ast

import pytest

from tests.tidy.source import Module, assert_none, module, product

PURE = ("program", "plan", "operators", "sync", "reliability", "engines.reference")

OUTSIDE = {
    "a clock": {"time", "sched"},
    "a socket": {"socket", "ssl", "selectors", "select", "http", "urllib", "asyncio", "websockets", "httpx", "uvicorn"},
    "randomness": {"random", "secrets", "uuid"},
    "a thread or a process": {"threading", "multiprocessing", "concurrent", "subprocess", "signal", "queue"},
    "Spark or what comes with it": {"pyspark", "pyarrow", "pandas", "numpy"},
    "a database": {"sqlite3"},
}
CALLS = {
    "a clock": {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"},
    "randomness": {"os.urandom", "os.getrandom"},
}
# What each module reaches for all the same, and why it may.
EXCEPTIONS = {
    ("catchment.sync.outbox", "sqlite3"): "the outbox is durable before anything is sent",
    ("catchment.sync.codecs.delta_numpy", "numpy"): "the cloud reads columns; no device imports it",
    ("catchment.sync.codecs.arrow", "pyarrow"): "for who already has it; imported by name",
}


def impure(modules: tuple[Module, ...]) -> list[str]:
    """Every reach outside, one line each."""
    found: list[str] = []
    for each in modules:
        if not any(f"{each.name}.".startswith(f"catchment.{place}.") for place in PURE):
            continue
        for name, line in each.imports():
            top = name.partition(".")[0]
            found.extend(
                f"{each.path}:{line}: imports {top}, which is {kind}"
                for kind, names in OUTSIDE.items()
                if top in names and not _excepted(each.name, top)
            )
            found.extend(
                f"{each.path}:{line}: imports {name}, which is {kind}" for kind, names in CALLS.items() if name in names
            )
        for node in each.nodes:
            if isinstance(node, ast.Attribute):
                written = ast.unparse(node)
                found.extend(
                    f"{each.path}:{node.lineno}: uses {written}, which is {kind}"
                    for kind, names in CALLS.items()
                    if any(written == name or written.endswith(f".{name}") for name in names)
                )
    return found


def _excepted(importer: str, top: str) -> bool:
    return any(f"{importer}.".startswith(f"{place}.") and top == what for place, what in EXCEPTIONS)


def test_the_pure_layers_reach_for_nothing_outside() -> None:
    assert_none(impure(product()))


def test_every_exception_is_still_needed() -> None:
    used = {(place, what) for place, what in EXCEPTIONS for each in product() if _imports(each, place, what)}
    assert used == set(EXCEPTIONS)


def _imports(each: Module, place: str, what: str) -> bool:
    return f"{each.name}.".startswith(f"{place}.") and any(name.partition(".")[0] == what for name, _ in each.imports())


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("catchment.program.x", "import time"),
        ("catchment.plan.x", "from random import random"),
        ("catchment.operators.x", "def f():\n    import asyncio.events"),
        ("catchment.operators.x", "from datetime import datetime\nnow = datetime.now()"),
        ("catchment.operators.x", "import datetime\nnow = datetime.datetime.now"),
        ("catchment.sync.x", "import os\nnonce = os.urandom(8)"),
        ("catchment.sync.x", "from os import urandom"),
        ("catchment.sync.session", "import sqlite3"),
        ("catchment.sync.outbox.x", "import threading"),
        ("catchment.engines.reference.x", "import pyspark.sql"),
    ],
)
def test_a_reach_outside_is_found(importer: str, text: str) -> None:
    assert len(impure((module(importer, text),))) == 1


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("catchment.operators.x", "import datetime\nday = datetime.timedelta(days=1)"),
        ("catchment.sync.outbox.store", "import sqlite3"),
        ("catchment.sync.codecs.x", "import zlib"),
        ("catchment.gateway.x", "import asyncio, time, secrets"),
        ("catchment.engines.spark.x", "import pyspark"),
    ],
)
def test_what_is_no_reach_outside_is_not(importer: str, text: str) -> None:
    assert impure((module(importer, text),)) == []
