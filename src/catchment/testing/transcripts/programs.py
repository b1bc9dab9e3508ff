"""The program of a story: one of the folder `programs` beside it, or streams that the story declares itself.

A declared stream is one Python expression. It may use `cm`, everything in `programs/records.py`, the streams declared
before it, and the sources that `SOURCES` in that file names with their records.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from catchment.errors import ProgramError, SourceLine
from catchment.program.program import Program
from catchment.testing.alone import add_source, add_stream
from catchment.testing.transcripts.story import Story, malformed


def program_of(story: Story) -> Program:
    """The story's program, declared anew."""
    folder = _folder(story)
    if story.program is not None:
        module, _, name = story.program.partition(".")
        found = getattr(module_of(folder / f"{module}.py"), name or module, None)
        if not isinstance(found, Program):
            raise _missing(story, f"{folder.name}/{module}.py has no program {name or module!r}")
        return found
    return _declared(story, module_of(folder / "records.py"))


def _declared(story: Story, records: ModuleType) -> Program:
    import catchment

    program = Program(story.name)
    for name, expression in story.streams.items():
        try:
            code = compile(expression.strip(), str(story.path), "eval")
        except SyntaxError as error:
            raise malformed(
                story.path, f"{name} is not an expression: {error}", "write one Python expression"
            ) from None
        for used in code.co_names:
            if used in records.SOURCES and used not in program.streams:
                add_source(program, used, records.SOURCES[used])
        scope = {**vars(records), "cm": catchment, **program.streams}
        add_stream(program, name, lambda code=code, scope=scope: _value(code, scope))  # type: ignore[misc]
    return program


def _value(code: CodeType, scope: dict[str, Any]) -> Any:
    return eval(code, scope)


def _folder(story: Story) -> Path:
    for parent in story.path.parents:
        if (parent / "programs").is_dir():
            return parent / "programs"
    raise _missing(story, "there is no folder `programs` beside the story, or above it")


@lru_cache(maxsize=256)
def module_of(path: Path) -> ModuleType:
    """A module of programs or records, under the name that its declared functions are found by."""
    name = f"catchment_transcripts_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise ProgramError(
            "T712",
            f"there is no {path.name} for stories to use",
            why=f"stories find their programs and records in {path.parent.name}/",
            fix=f"add {path.parent.name}/{path.name}",
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # declared functions are found again by their module's name
    spec.loader.exec_module(module)
    return module


def _missing(story: Story, reason: str) -> ProgramError:
    return ProgramError(
        "T707",
        f"the program of {story.name} is not there",
        why=reason,
        fix="name a program as module.name of that folder, or declare `stream:` in the story",
        at=SourceLine(str(story.path), 1),
    )
