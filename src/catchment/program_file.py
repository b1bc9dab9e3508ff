"""A program from its file: `peir.py`, or `peir.py:peir` where the file declares several.

The file's folder goes on the path and the file is imported under its own name, so that the functions it declares are
found under that name by every process that runs a part of it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from catchment.errors import ProgramError
from catchment.program.program import Program


def load_program(place: str) -> Program:
    """The program in a file."""
    name, _, wanted = place.partition(":")
    path = Path(name).resolve()
    if not path.is_file():
        raise ProgramError(
            "E031",
            f"there is no file {name}",
            why="a program is a Python file that declares one",
            fix="give the path of the file, such as examples/figures/figure_1.py",
        )
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(path.stem)
    if Path(module.__file__ or "").resolve() != path:
        raise ProgramError(
            "E032",
            f"{name} cannot be imported as {path.stem!r}",
            why=f"that name already means {module.__file__}",
            fix="give the file a name of its own",
        )
    programs = {key: value for key, value in vars(module).items() if isinstance(value, Program)}
    if wanted in programs:
        return programs[wanted]
    if len(programs) == 1 and not wanted:
        return next(iter(programs.values()))
    raise ProgramError(
        "E033",
        f"{name} declares {len(programs)} programs" if not wanted else f"{name} declares no program {wanted!r}",
        why=f"it declares: {', '.join(programs) or 'none'}",
        fix=f"say which: {name}:{next(iter(programs), 'name')}",
    )
