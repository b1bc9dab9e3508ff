"""Jars that Spark can use and does not bring: fetched once, by the Ivy that it does bring, and kept.

Where they come from is Ivy's own business: Maven Central, or what the user's `~/.ivy2/ivysettings.xml` says. A set of
jars is in its directory whole or not at all, so a start that was cut short is no harm and many may fetch at once. Knows
Ivy and the file system; must not know what the jars are for.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from catchment.engines.spark.java import use_java
from catchment.errors import PeerError

FETCH_S_MAX = 600.0
_MAIN = "org.apache.ivy.Main"
_SETTINGS = Path(".ivy2") / "ivysettings.xml"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A module, with what it needs. `revision` is Ivy's: one, or the newest of a range such as `[4.0,4.3]`."""

    group: str
    name: str
    revision: str
    without: tuple[str, ...] = ()
    """Groups, and `group:module`, that it asks for and that are there already."""


def fetch(
    what: str, wanted: Sequence[Wanted], directory: Path, environment: Mapping[str, str] = os.environ
) -> tuple[Path, ...]:
    """The jars of these modules in that directory; from there when it has them, whatever the network does."""
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}-") as aside:
            fresh = Path(aside) / "jars"
            _resolve(what, wanted, Path(aside), fresh, directory, environment)
            try:
                fresh.rename(directory)
            except OSError:
                if not directory.is_dir():  # or another process was there first
                    raise
    return tuple(sorted(directory.glob("*.jar")))


def _resolve(
    what: str, wanted: Sequence[Wanted], aside: Path, fresh: Path, directory: Path, environment: Mapping[str, str]
) -> None:
    module = aside / "ivy.xml"
    module.write_text(_module(wanted), encoding="utf-8")
    settings = Path(environment.get("HOME") or Path.home()) / _SETTINGS
    runtime = use_java()
    words = [str(runtime.home / "bin" / "java"), "-cp", str(_ivy()), _MAIN, "-ivy", str(module), "-confs", "default"]
    words += ["-settings", str(settings)] if settings.is_file() else []
    words += ["-cache", str(aside / "cache"), "-retrieve", f"{fresh}/[artifact]-[revision].[ext]"]
    try:
        ran = subprocess.run(
            words, env=dict(environment), capture_output=True, text=True, timeout=FETCH_S_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise _unavailable(what, f"it took longer than {FETCH_S_MAX:g} s", directory) from None
    if ran.returncode or not fresh.is_dir():
        raise _unavailable(what, _reason(ran.stdout + ran.stderr), directory)


def _module(wanted: Sequence[Wanted]) -> str:
    lines = ['<ivy-module version="2.0"><info organisation="catchment" module="jars"/><configurations>']
    lines.append('<conf name="default"/></configurations><dependencies>')
    for each in wanted:
        said = f"org={quoteattr(each.group)} name={quoteattr(each.name)} rev={quoteattr(each.revision)}"
        lines.append(f'<dependency {said} conf="default->default">')
        for without in each.without:
            group, _, name = without.partition(":")
            lines.append(f"<exclude org={quoteattr(group)} {f'module={quoteattr(name)}' if name else ''}/>")
        lines.append("</dependency>")
    return "\n".join([*lines, "</dependencies></ivy-module>"])


def _ivy() -> Path:
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    (jar,) = (Path(found.origin).parent / "jars").glob("ivy-*.jar")
    return jar


def _reason(said: str) -> str:
    """What Ivy says of what it could not reach, else of what it did not find; else its last line."""
    lines = [line.strip(": ").strip() for line in said.splitlines() if line.strip(": ").strip()]
    for telling in ("Server access", "Exception", "not found"):
        found = [line for line in lines if telling in line]
        if found:
            return found[0]
    return lines[-1] if lines else "Ivy said nothing"


def _unavailable(what: str, why: str, directory: Path) -> PeerError:
    return PeerError(
        "E205",
        f"{what} could not be fetched",
        why=why,
        fix=f"start once where Maven Central or what ~/{_SETTINGS} names can be reached, or copy {directory} "
        "from a machine that has it",
    )


def bundled(prefix: str) -> str:
    """The version in the name of a jar that Spark brings.

    >>> bundled("spark-sql_").partition("-")[0]
    '2.13'
    """
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    names = [path.stem for path in (Path(found.origin).parent / "jars").glob(f"{prefix}[0-9]*.jar")]
    return min(names).removeprefix(prefix)
