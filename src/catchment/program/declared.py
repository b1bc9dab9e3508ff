"""A step that an author has made, before the program is a graph; and all steps made from one program's sources.

Streams share these as they are composed. What is made and then forgotten is found here, and a program says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.site import Site
from catchment.program.sync import Sync
from catchment.program.types import Schema


class NoSuchStepError(ProgramError, AttributeError):
    """A step that a stream does not offer: an error of the author's, and what `hasattr` expects."""


@dataclass(eq=False)
class Made:
    """All steps made so far from the sources of one program: what is made and then forgotten is found here."""

    program: str | None = None
    steps: list[Declared] = field(default_factory=list)


@dataclass(eq=False)
class Declared:
    """A step as the author wrote it: its data, what it reads, and where it stands in the program and the file."""

    step: steps.Step
    inputs: tuple[tuple[Declared, int], ...]
    schemas: tuple[Schema, ...]
    at: SourceLine
    site: Site | None = None
    stream: str | None = None
    policies: list[Sync] = field(default_factory=list)
    made: Made = field(default_factory=Made)

    def __post_init__(self) -> None:
        for upstream, _ in self.inputs:
            if self.made.program is not None and upstream.made.program not in (None, self.made.program):
                raise ProgramError(
                    "C224",
                    f"a stream of {upstream.made.program} is used in {self.made.program}",
                    why="a program is planned and shipped by itself; it shares no steps with another",
                    fix=f"declare the stream in {self.made.program} too, from the same function",
                    at=self.at,
                )
            if upstream.made.program is not None or self.made.program is None:
                self.made = upstream.made
        self.made.steps.append(self)
