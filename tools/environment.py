"""Sets up the virtual environment that every `make` target runs in.

From a bare Python to an environment with the product and all its extras, using pip and PyPI only. Does nothing
when the stamp says that the environment was made from this pyproject.toml; continues where an interrupted run
stopped. Knows the standard library only, since nothing else is there yet.

    python3 tools/environment.py .venv
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

EXTRAS = "cloud,gateway,postgres,dev"
ROOT = Path(__file__).resolve().parent.parent
PIP_OLDEST = (22, 3)  # the first whose `--python` installs into another environment


def say(text: str) -> None:
    print(f"[set-up] {text}", flush=True)


def fingerprint(project: bytes, python: str) -> str:
    """What the environment was made from. A change of either makes it again."""
    return hashlib.sha256(b"\0".join([project, python.encode(), EXTRAS.encode()])).hexdigest()


def ready(environment: Path, wanted: str) -> bool:
    stamp = environment / ".ready"
    return stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == wanted


def runs(*command: str | Path) -> bool:
    """Whether the command can be run and succeeds; it is a question, so it says nothing."""
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def create(environment: Path) -> None:
    """An environment that has pip, by the first of four ways that works on this machine."""
    say(f"creating {environment.name} with Python {sys.version.split()[0]} ({sys.executable})")
    environment.mkdir(parents=True, exist_ok=True)
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(environment)
    python = environment / "bin" / "python"
    # Debian splits the standard library: `ensurepip` comes with python3-venv, which a bare machine lacks.
    if runs(python, "-m", "ensurepip", "--default-pip"):
        return
    for source in (_pip_of_this_python, _pip_from_debian):
        with tempfile.TemporaryDirectory() as directory:
            pip = source(Path(directory))
            if pip and runs(*pip, "--python", python, "install", "--quiet", "pip"):
                return
    shutil.rmtree(environment)
    say("this Python has neither `ensurepip` nor `pip`, so nothing can be installed with it")
    say("fix: apt-get install python3-venv   (or: make PYTHON=/path/to/another/python3)")
    raise SystemExit(1)


def _pip_of_this_python(_: Path) -> list[str]:
    version = subprocess.run(
        [sys.executable, "-c", "import pip; print(pip.__version__)"], capture_output=True, text=True, check=False
    ).stdout
    numbers = tuple(int(part) for part in version.strip().split(".")[:2] if part.isdigit())
    return [sys.executable, "-m", "pip"] if numbers >= PIP_OLDEST else []


def _pip_from_debian(directory: Path) -> list[str]:
    """Debian's own pip as a wheel. `apt-get download` needs no root and installs nothing."""
    try:
        say("this Python has no pip: asking apt for Debian's")
        subprocess.run(["apt-get", "download", "python3-pip-whl"], cwd=directory, capture_output=True, check=True)
        package = next(directory.glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", package.name, "."], cwd=directory, capture_output=True, check=True)
        return [sys.executable, str(next(directory.rglob("pip-*.whl")) / "pip")]
    except (OSError, subprocess.CalledProcessError, StopIteration):
        return []


def install(python: Path) -> None:
    say(f"installing catchment[{EXTRAS}]: some 700 MB the first time, most of it Spark; a minute or more")
    # Not quiet: pip's lines are the progress.
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install"]
    if subprocess.run([*pip, "--editable", f"{ROOT}[{EXTRAS}]"], check=False).returncode != 0:
        say("pip could not install; its own words are above. `make` continues from here once that is mended")
        raise SystemExit(1)
    say("keeping Spark's classes in one file, so that sessions start sooner: some 20 seconds")
    if not runs(python, "-m", "catchment.engines.spark.class_archive"):
        say("that did not work, and nothing depends on it")


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python3 tools/environment.py DIRECTORY")
    environment = ROOT / sys.argv[1]
    project = (ROOT / "pyproject.toml").read_bytes()
    python = environment / "bin" / "python"
    lock = ROOT / ".build" / f"{environment.name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    # Two `make`s at once must not install over each other: the second waits, and finds it done.
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        wanted = fingerprint(project, os.path.realpath(python))
        if ready(environment, wanted) and runs(python, "-c", "import catchment"):
            return
        if not runs(python, "-m", "pip", "--version"):
            create(environment)
            wanted = fingerprint(project, os.path.realpath(python))
        install(python)
        (environment / ".ready").write_text(wanted + "\n", encoding="utf-8")
        say("done")


if __name__ == "__main__":
    main()
