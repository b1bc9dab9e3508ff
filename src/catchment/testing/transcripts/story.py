"""A story as it is written: loaded from YAML and checked, so that a misspelt word is an error and not a silent pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.errors import ProgramError, SourceLine
from catchment.testing.engines import engines

EXPECTATIONS = ("expect", "expect_some", "expect_late", "expect_late_right", "expect_failures")
_WORDS = ("name", "shows", "program", "stream", "streams", "input", "quiet", "differs_on", *EXPECTATIONS)


@dataclass(frozen=True)
class Story:
    """One transcript: what it shows, its program, what arrives, and what is expected."""

    path: Path
    name: str
    shows: str
    program: str | None
    """A program of the folder `programs` beside the story: `module` or `module.name`."""
    streams: dict[str, str]
    """Or streams made of that folder's sources, each as one expression."""
    input: tuple[Any, ...]
    expected: dict[str, Any]
    """By the word of `EXPECTATIONS`, what the whole story must give."""
    differs_on: dict[str, str]
    """Engines that do not perform it yet, each with the reason. It fails on the day they do."""

    def __str__(self) -> str:
        return self.name


def load(path: Path) -> Story:
    """The story in that file."""
    written = _yaml(path)
    if not isinstance(written, dict):
        raise malformed(path, "it is not a mapping", f"begin with name: {path.stem}")
    unknown = [word for word in written if word not in _WORDS]
    if unknown:
        raise malformed(path, f"it says {unknown[0]!r}", f"its words are {', '.join(_WORDS)}")
    if written.get("name") != path.stem or not written.get("shows"):
        raise malformed(
            path, "it lacks its name or what it shows", f"write name: {path.stem}, and shows: in a sentence"
        )
    program, stream, streams = (written.get(word) for word in ("program", "stream", "streams"))
    if sum(each is not None for each in (program, stream, streams)) != 1:
        raise malformed(path, "it has no program, or two", "give one of program, stream and streams")
    entries = [*written.get("input", ()), *({"quiet": written["quiet"]} for _ in range("quiet" in written))]
    expected = {word: written[word] for word in EXPECTATIONS if word in written}
    if not expected and not any(isinstance(entry, dict) and "expect" in entry for entry in entries):
        raise ProgramError(
            "T706",
            f"{path.stem} expects nothing",
            why="a story without an expectation passes whatever an engine does",
            fix=f"say what comes out, with one of {', '.join(EXPECTATIONS)}; expect: [] where nothing does",
            at=SourceLine(str(path), 1),
        )
    return Story(
        path,
        written["name"],
        written["shows"],
        program,
        streams if streams is not None else {"out": stream} if stream is not None else {},
        tuple(entries),
        expected,
        written.get("differs_on") or {},
    )


def stories(folder: Path | str) -> list[Story]:
    """All stories below a folder."""
    return [load(path) for path in sorted(Path(folder).rglob("*.yaml"))]


def cases(folder: Path | str) -> list[tuple[Story, str]]:
    """Every story below a folder on every engine that is here: parametrise a test of `perform` with them."""
    return [(story, engine) for story in stories(folder) for engine in engines()]


def malformed(path: Path, reason: str, fix: str) -> ProgramError:
    """The story cannot be read as one."""
    return ProgramError(
        "T705",
        f"the story {path.stem} is malformed",
        why=reason,
        fix=fix,
        at=SourceLine(str(path), 1),
    )


def _yaml(path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ProgramError(
            "T709",
            "stories cannot be read here",
            why="they are YAML, and PyYAML is not installed",
            fix="pip install PyYAML",
        ) from error
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise malformed(path, f"it is not YAML: {error}", "mend the line that is named") from error
