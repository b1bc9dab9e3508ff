"""Every error has a code of its own, its cause and its fix, and every code of an author's or a peer's is tested.

Read from the source, so an error in a place that no test reaches is held to the same rules.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.tidy.source import ROOT, Module, assert_none, module, product

BASES = {"ProgramError", "PeerError", "InternalError"}
CODE = re.compile(r"[A-Z]\d{3}")
# A code that stands for several mistakes, with the one meaning that they share.
SHARED: dict[str, str] = {}
WRITTEN = {".py", ".yaml", ".json", ".md"}  # what a test or a story is written in


@dataclass(frozen=True, slots=True)
class Site:
    """A place that makes an error. `what` is its text with each computed part as `{}`."""

    code: str
    kind: str
    what: str
    where: str


@cache
def sites(modules: tuple[Module, ...]) -> tuple[list[Site], list[str]]:
    """All places that make an error, and what is wrong with those that cannot be read."""
    kinds = _kinds(modules)
    found: list[Site] = []
    wrong: list[str] = []
    for each in modules:
        makers = kinds | dict(_factories(each, kinds))
        for node in each.nodes:
            if not isinstance(node, ast.Call) or (name := _called(node)) not in makers:
                continue
            where = f"{each.path}:{node.lineno}"
            code = node.args[0] if node.args else None
            if isinstance(code, ast.Name) and code.id == "code":
                continue  # inside a factory: its callers are the places
            if not (isinstance(code, ast.Constant) and isinstance(code.value, str) and CODE.fullmatch(code.value)):
                wrong.append(f"{where}: the code of an error is a literal of one letter and three digits")
                continue
            what = node.args[1] if len(node.args) > 1 else None
            found.append(Site(code.value, makers[name], _skeleton(what), where))
            if name in kinds:
                wrong.extend(f"{where}: {code.value} has no {word}" for word in ("why", "fix") if not _says(node, word))
    return found, wrong


def ambiguous(found: list[Site]) -> list[str]:
    """Codes that mean two things."""
    by_code: dict[str, list[Site]] = defaultdict(list)
    for site in found:
        by_code[site.code].append(site)
    return [
        f"{code} is raised with several meanings: " + "; ".join(f"{s.where} {s.kind}({s.what!r})" for s in same)
        for code, same in sorted(by_code.items())
        if len({site.kind for site in same}) > 1 or (len({site.what for site in same}) > 1 and code not in SHARED)
    ]


def _kinds(modules: tuple[Module, ...]) -> dict[str, str]:
    """The three kinds of error and every class made from one of them."""
    kinds = {name: name for name in BASES}
    classes = [node for each in modules for node in each.nodes if isinstance(node, ast.ClassDef)]
    while True:
        more = {c.name: kinds[b.id] for c in classes for b in c.bases if isinstance(b, ast.Name) and b.id in kinds}
        if more.keys() <= kinds.keys():
            return kinds
        kinds |= more


def _factories(each: Module, kinds: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Functions of this module that take `code` and make one kind of error with it."""
    for node in each.nodes:
        if isinstance(node, ast.FunctionDef) and "code" in {argument.arg for argument in node.args.args}:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and _called(inner) in kinds:
                    yield node.name, kinds[_called(inner)]


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _skeleton(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return "{}"


def _says(node: ast.Call, word: str) -> bool:
    """Whether the keyword is there and is not an empty text."""
    return any(
        keyword.arg == word and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in node.keywords
    )


def test_every_error_has_a_literal_code_a_cause_and_a_fix() -> None:
    assert_none(sites(product())[1])


def test_every_code_has_one_meaning() -> None:
    assert_none(ambiguous(sites(product())[0]))


def test_every_shared_code_is_still_shared() -> None:
    found, _ = sites(product())
    assert {code for code in SHARED if len({s.what for s in found if s.code == code}) > 1} == set(SHARED)


def test_every_mistake_of_an_author_or_a_peer_is_made_in_a_test() -> None:
    texts = [path for path in (ROOT / "tests").rglob("*.*") if path.suffix in WRITTEN and "tidy" not in path.parts]
    written = [path.read_text(encoding="utf-8") for path in texts]
    said = set(re.findall(r"\b[A-Z]\d{3}\b", "\n".join(written)))
    found, _ = sites(product())
    assert_none(f"{s.code} {s.where}: {s.what}" for s in found if s.kind != "InternalError" and s.code not in said)


GOOD = 'ProgramError("C101", f"{name} is no key", why="there is none", fix="add one")'


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace('"C101"', "CODE"),
        GOOD.replace('"C101"', '"c101"'),
        GOOD.replace('"C101"', '"C1010"'),
        GOOD.replace(', fix="add one"', ""),
        GOOD.replace('why="there is none"', 'why=""'),
        f'class Unavailable(PeerError): ...\nraise Unavailable("C1", "gone", why="x", fix="y")\n{GOOD}',
        'def bad(code, what):\n    return PeerError(code, what, why="x", fix="y")\nraise bad(number, "gone")',
    ],
)
def test_an_error_without_one_of_its_parts_is_found(text: str) -> None:
    assert len(sites((module("catchment.x", text),))[1]) == 1


@pytest.mark.parametrize(
    "other",
    [
        GOOD.replace("is no key", "is no record"),
        GOOD.replace("ProgramError", "PeerError"),
        'def bad(code, what):\n    return ProgramError(code, what, why="x", fix="y")\nraise bad("C101", "gone")',
    ],
)
def test_a_code_with_two_meanings_is_found(other: str) -> None:
    found, wrong = sites((module("catchment.x", GOOD), module("catchment.y", other)))
    assert wrong == []
    assert len(ambiguous(found)) == 1


def test_one_meaning_in_two_places_is_not() -> None:
    found, _ = sites((module("catchment.x", GOOD), module("catchment.y", GOOD.replace("name", "field"))))
    assert (len(found), ambiguous(found)) == (2, [])
