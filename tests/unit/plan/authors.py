"""Small author's files, held as text in fixtures: run as the modules that they would be.

Every fixture may use the records and functions below without importing them, so that it shows only what it is about.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import catchment as cm

FIRST = "from __future__ import annotations\nimport catchment as cm\nfrom tests.unit.plan.authors import *\n"
"""What stands before the text of each fixture. Lines are counted without it."""


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    accuracy_m: cm.Field[float] = cm.field(step=0.1)
    speed_mps: cm.Field[float | None] = cm.field(step=0.1, default=None)
    floor: cm.Field[int] = cm.field(default=0)
    city: cm.Field[str] = cm.field(default="")


class Trip(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    carbon_g: cm.Field[float] = cm.field(step=0.1)


class Count(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


class Memory(cm.State):
    n: int = 0


class EveryTenth(cm.Process[Fix, Fix, Memory]):
    n: int = 10

    def on_element(self, element: Fix, state: Memory, context: cm.Context) -> list[Fix]:
        state.n += 1
        return [element] if state.n % self.n == 0 else []


@cm.function
def kmh(speed_mps: float | None) -> float | None:
    return None if speed_mps is None else speed_mps * 3.6


@cm.function
def show(fix: Fix) -> None:
    return None


@cm.function
def as_trip(fix: Fix) -> Trip:
    return Trip(user=fix.user, at=fix.at, carbon_g=1.0)


__all__ = ["Count", "EveryTenth", "Fix", "Memory", "Trip", "as_trip", "kmh", "show"]


@contextmanager
def ran(name: str, text: str) -> Iterator[types.ModuleType]:
    """The module that a text is, with its lines where errors and hashes of functions look for them.

    Yields it before its text has run, so that a text that is refused can be asked how far it came.
    """
    file = f"{name}.py"
    module = types.ModuleType(name)
    module.__file__ = file
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sys.modules[name] = module
    try:
        exec(compile(FIRST, "<fixture>", "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[name]


def run(module: types.ModuleType, text: str) -> None:
    """Run the text in its module."""
    code = compile(text, module.__file__ or "", "exec", flags=_annotations(), dont_inherit=True)
    exec(code, module.__dict__)


def _annotations() -> int:
    import __future__

    return __future__.annotations.compiler_flag


def programs(module: types.ModuleType) -> list[Any]:
    """The programs that it made."""
    return [value for value in vars(module).values() if isinstance(value, cm.Program)]
