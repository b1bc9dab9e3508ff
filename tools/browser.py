"""A Chromium for the tests of the page: the machine's own, or Debian's, fetched beside the build and not installed.

    python tools/browser.py        says which browser the tests will use, and fetches one if there is none

Looked for: what CATCHMENT_CHROMIUM names, then `chromium`, `chromium-browser` or `google-chrome` on the path. Where
none of them is, and apt is, the package and what this machine lacks of its libraries are downloaded from the machine's
own apt sources and unpacked into .build/chromium: that needs no root, and changes nothing outside of the checkout.
Knows the standard library only.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".build" / "chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium", "fonts-inter")
INSIDE = Path("usr/lib/chromium/chromium")


class NoBrowserError(Exception):
    """There is no browser, and no way to get one; says what to do."""


def browser() -> Path:
    """The browser to test with."""
    named = os.environ.get("CATCHMENT_CHROMIUM")
    if named:
        if not runs(Path(named)):
            raise NoBrowserError(f"CATCHMENT_CHROMIUM={named} does not run; name a Chromium, or unset it")
        return Path(named)
    for name in NAMES:
        found = shutil.which(name)
        # On some systems the name is there and only says where to get the browser.
        if found is not None and runs(Path(found)):
            return Path(found)
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        wrapper = HOME / "run"
        if not (wrapper.exists() and runs(wrapper)):
            fetch(wrapper)
        return wrapper


def runs(path: Path) -> bool:
    """Whether it says its version."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and "Chrom" in said.stdout


def fetch(wrapper: Path) -> None:
    """Debian's, with lists and an archive of its own: the machine's are root's."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoBrowserError(
            "the tests of the page need a Chromium, and this machine has neither one nor apt to get it with: install "
            "Chromium, or name one with CATCHMENT_CHROMIUM=/path/to/chromium"
        )
    print("[browser] there is no Chromium here: fetching Debian's, some 120 MB, into .build/chromium", flush=True)
    lists, archive, unpacked = HOME / "lists", HOME / "archive", HOME / "root"
    for folder in (lists / "partial", archive / "archives" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    options = [
        *("-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={archive}"),
        *("-o", "Debug::NoLocking=1", "-o", f"APT::Sandbox::User={getpass.getuser()}"),
    ]
    told("apt-get", *options, "update")
    told("apt-get", *options, "-y", "--no-install-recommends", "--download-only", "install", *PACKAGES)
    for package in sorted((archive / "archives").glob("*.deb")):
        told("dpkg-deb", "-x", str(package), str(unpacked))
    if not (unpacked / INSIDE).is_file():
        raise NoBrowserError(
            "this machine's apt sources have no Chromium that can be unpacked (Ubuntu's is a snap): install one, and "
            "name it with CATCHMENT_CHROMIUM=/path/to/chromium"
        )
    wrapper.write_text(_wrapper(unpacked), encoding="utf-8")
    wrapper.chmod(0o755)
    shutil.rmtree(archive)
    shutil.rmtree(lists)
    if not runs(wrapper):
        raise NoBrowserError(f"the Chromium in {unpacked} does not run: install chromium by hand to see what it lacks")


def told(*command: str) -> None:
    """Run it; with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise NoBrowserError(f"`{command[0]}` could not fetch Chromium for the tests of the page:\n{words}")


def _wrapper(unpacked: Path) -> str:
    libraries = sorted({path.parent for path in unpacked.rglob("*.so*")})
    fonts = unpacked / "etc" / "fonts"
    settings = HOME / "fonts.conf"
    included = f"<include ignore_missing='yes'>{fonts}/conf.d</include>" if fonts.is_dir() else ""
    settings.write_text(
        f"<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig>"
        f"<dir>{unpacked}/usr/share/fonts</dir><dir>/usr/share/fonts</dir>"
        f"<cachedir>{HOME}/fonts</cachedir>{included}</fontconfig>\n",
        encoding="utf-8",
    )
    return (
        "#!/bin/sh\n"
        f'export LD_LIBRARY_PATH="{":".join(map(str, libraries))}"\n'
        f'export FONTCONFIG_FILE="{settings}"\n'
        f'exec "{unpacked / INSIDE}" "$@"\n'
    )


def main() -> int:
    """Say which."""
    try:
        print(f"[browser] {browser()}")
    except NoBrowserError as error:
        print(f"[browser] {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
