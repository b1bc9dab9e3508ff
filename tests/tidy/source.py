"""The product's source as the tidiness tests see it: modules, their trees, and what they import.

Nothing is imported from what is looked at, so a rule holds for a module that cannot even be imported here.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "catchment"


@dataclass(frozen=True, eq=False)
class Module:
    """One file: its dotted name, its text and its tree."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def layer(self) -> str:
        """The first name under the package: `program` of `catchment.program.types`; the package itself is ''."""
        return self.name.partition(".")[2].partition(".")[0]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))

    def imports(self) -> list[tuple[str, int]]:
        """Each module or name that is imported anywhere in the file, absolute and dotted, with its line."""
        found: list[tuple[str, int]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.extend((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                found.extend((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.path.endswith("__init__.py") else self.name.split(".")[:-1]
        above = package[: len(package) - (node.level - 1)]
        return ".".join([*above, *([node.module] if node.module else [])])


def module(name: str, text: str, path: str = "") -> Module:
    """A module from its text, as the tests of the rules write them."""
    return Module(name, path or f"src/{name.replace('.', '/')}.py", text, ast.parse(text))


@cache
def product() -> tuple[Module, ...]:
    """Every module under src/catchment."""
    return tuple(
        module(_name(path), path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
        for path in sorted((ROOT / "src" / PACKAGE).rglob("*.py"))
    )


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that the repository holds, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # A file that is deleted and not yet committed is still listed.
    return tuple(Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file())


def assert_none(found: Iterable[str]) -> None:
    """Fails with every line that was found, where pytest would show the first."""
    lines = list(found)
    assert not lines, "\n" + "\n".join(lines)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
