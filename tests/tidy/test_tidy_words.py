"""What a repository must not hold: paths of one machine, credentials, and where one machine's packages come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.source import ROOT, assert_none, tracked

# Written in pieces, so that this file does not find itself.
FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?<![\w.$~{}-])/(?:work|root|home/[a-z][\w-]*|Users/[A-Za-z][\w-]*|tmp/[\w.-]+)(?=/|\b)(?!\s*\()"
    ),
    "an index of packages": re.compile(r"--(?:extra-)?index" + r"-url\b|\bPIP_(?:EXTRA_)?INDEX" + r"_URL\b"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"{}<>]+:[^\s/@'\"{}<>]+@"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE" + r" KEY-----"),
    "a token": re.compile(r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}|xox[abp]-[A-Za-z0-9-]{10,})\b"),
    "how the work is organised": re.compile(
        r"\b(?:sub-?ag" + r"ents?|language mod" + r"els?|context win" + r"dows?|the bri" + r"ef|chat" + r"bots?)\b",
        re.IGNORECASE,
    ),
}
# (path, the text that is found): why it stays.
ALLOWED: dict[tuple[str, str], str] = {}


def forbidden(text: str) -> list[tuple[int, str, str]]:
    """Each hit: its line, its text, and what it is."""
    return [
        (number, hit.group(), kind)
        for number, line in enumerate(text.splitlines(), start=1)
        for kind, pattern in FORBIDDEN.items()
        for hit in pattern.finditer(line)
    ]


def found_in(path: Path) -> list[str]:
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []  # a picture, an archive
    return [
        f"{path}:{line}: {hit} is {kind}"
        for line, hit, kind in forbidden(text)
        if (path.as_posix(), hit) not in ALLOWED
    ]


def test_no_tracked_file_holds_any() -> None:
    assert_none(line for path in tracked() for line in found_in(path))


@pytest.mark.parametrize(
    "text",
    [
        "cd /wo" + "rk/main",
        'open("/ro' + 'ot/.cache")',
        "see /ho" + "me/ada/x",
        "/tm" + "p/x.log",
        "pip install --index" + "-url x",
        "https://ada:sec" + "ret@example.org",
        "-----BEGIN PRIVATE" + " KEY-----",
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "asked a sub" + "agent",
    ],
)
def test_each_is_found(text: str) -> None:
    assert len(forbidden(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a device agent runs its part",
        "GET /frames/work/1",
        "https://example.org/home/page",
        "$HOME/.cache",
        "postgresql://{user}:{password}@localhost",
        "a session is one boot",
    ],
)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    assert forbidden(text) == []
