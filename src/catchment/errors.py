"""Errors: a code, the author's line, the cause, and a repair that a test has executed.

Whose fault it is, is in the type: `ProgramError` is the author's, `PeerError` the other side's,
`InternalError` ours. Nothing here knows a layer; every layer raises these.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parent)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Where in the author's file something was written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def author_line() -> SourceLine:
    """The innermost frame that is not ours: the line that the author wrote."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<") and "/functools.py" not in name:
            break
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


class CatchmentError(Exception):
    """What every error of ours holds: `code`, `at`, `what`, `why`, `fix`."""

    def __init__(self, code: str, what: str, *, why: str, fix: str, at: SourceLine | None = None) -> None:
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.at = at
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.at}: " if self.at is not None else ""
        return f"{type(self).__name__}[{self.code}] {place}{self.what}\n  why: {self.why}\n  fix: {self.fix}"


class ProgramError(CatchmentError):
    """The author's: the program, its declarations, or the data it was told to expect."""


class PeerError(CatchmentError):
    """The other side's: a frame, a credential, a promise it did not keep."""


class InternalError(CatchmentError):
    """Ours: an invariant that should have held."""
