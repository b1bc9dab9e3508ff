"""Writes docs/reference/{commands,metrics,errors}.md from the code: every command, option, metric and error code.

    python tools/reference.py            writes them
    python tools/reference.py --check    says which are stale, and exits with 1

Commands are asked of their parsers; metrics and errors are read from the source, so that nothing has to be started. A
part of a text that is computed is shown as `…`. `make docs` runs it, and a test holds the pages to it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "catchment"
REFERENCE = ROOT / "docs" / "reference"
CODE = re.compile(r"[A-Z]\d{3}")
WRITTEN = "Written by `make docs` from the code; a test fails when it is stale."

KINDS = {"ProgramError": "yours", "PeerError": "the other side's", "InternalError": "ours"}
AREAS = {
    "C": "Programs, plans and engines",
    "D": "Devices",
    "E": "Commands and the cloud",
    "G": "The gateway",
    "I": "Inside Catchment: please report these",
    "S": "Sync streams and their policies",
    "T": "Testing",
    "V": "Reliability: levels, verifier and certificate",
}
METRICS = {"Counter": "counter", "counter": "counter", "Gauge": "gauge", "gauge": "gauge", "Histogram": "histogram"}


@dataclass(frozen=True, slots=True)
class Error:
    """One code, as the place that raises it says it."""

    code: str
    kind: str
    what: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]


def trees() -> Iterator[ast.Module]:
    """Every module of the product."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def calls() -> Iterator[ast.Call]:
    """Every call in the product."""
    for tree in trees():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@cache
def constants() -> dict[str, str]:
    """The texts that modules hold under a name."""
    return {
        target.id: node.value.value
        for tree in trees()
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def said(node: ast.expr | None) -> str:
    """A text as it is written, with `…` for what is computed."""
    match node:
        case None:
            return ""
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return said(left) + said(right)
        case ast.IfExp(body=body, orelse=orelse):
            return f"{said(body)} / {said(orelse)}"
        case ast.Name(id=name):
            return constants().get(name, "…")
        case ast.BoolOp(values=[*_, last]):
            return said(last)
        case _:
            return "…"


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def kinds() -> dict[str, str]:
    """Each class and function that makes an error, and the kind of error that it makes."""
    found = {name: name for name in KINDS}
    nodes = [node for tree in trees() for node in ast.walk(tree)]
    grew = True
    while grew:
        grew = False
        for node in nodes:
            made: str | None = None
            if isinstance(node, ast.ClassDef):
                made = next((found[b.id] for b in node.bases if isinstance(b, ast.Name) and b.id in found), None)
            elif isinstance(node, ast.FunctionDef) and any(a.arg == "code" for a in node.args.args):
                raised = (called(one) for one in ast.walk(node) if isinstance(one, ast.Call))
                made = next((found[name] for name in raised if name in found), None)
            name = getattr(node, "name", "")
            if made is not None and name not in found:
                found[name] = made
                grew = True
    return found


def errors() -> list[Error]:
    """Every error that the product raises, by code."""
    makers = kinds()
    factories = {
        node.name: node
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in makers
    }
    found: dict[str, Error] = {}
    for call in calls():
        first = call.args[0] if call.args else None
        if called(call) not in makers or not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
            continue
        if not CODE.fullmatch(first.value):
            continue
        what, why, fix = (said(_word(call, factories, word)) for word in ("what", "why", "fix"))
        error = Error(first.value, makers[called(call)], what, why, fix)
        # A code that is raised at several places is shown as the one that says most says it.
        known = found.get(error.code)
        if known is None or len(error.why) + len(error.fix) > len(known.why) + len(known.fix):
            found[error.code] = error
    return [found[code] for code in sorted(found)]


def _word(call: ast.Call, factories: dict[str, ast.FunctionDef], word: str) -> ast.expr | None:
    """What an error is given as its `what`, `why` or `fix`, be it by a function that makes it."""
    named = {given.arg: given.value for given in call.keywords}
    if word in named:
        return named[word]
    factory = factories.get(called(call))
    if factory is None:
        return call.args[1] if word == "what" and len(call.args) > 1 else None
    parameters = [given.arg for given in factory.args.args]
    if word in parameters and parameters.index(word) < len(call.args):
        return call.args[parameters.index(word)]
    inside = (one for one in ast.walk(factory) if isinstance(one, ast.Call))
    within = [given.value for one in inside for given in one.keywords if given.arg == word]
    return within[0] if within else None


def metrics() -> list[Metric]:
    """Every metric that the product shows, by name."""
    found = set()
    for call in calls():
        kind, texts = METRICS.get(called(call)), [said(arg) for arg in call.args[:2]]
        if kind is None or len(texts) < 2 or not re.fullmatch(r"[a-z][a-z0-9_]+", texts[0]) or "…" in texts[1]:
            continue
        labels = call.args[2] if len(call.args) > 2 else None
        names = tuple(said(one) for one in labels.elts) if isinstance(labels, ast.Tuple) else ()
        prefix = "catchment_gateway_" if called(call) == "gauge" else ""
        found.add(Metric(prefix + texts[0], kind, texts[1], names))
    return sorted(found, key=lambda metric: metric.name)


def errors_page() -> str:
    """docs/reference/errors.md."""
    lines = [
        "# Errors",
        "",
        "An error says its code, where you wrote it, what is wrong, why, and a repair that works. Its kind says whose",
        "fault it is: `ProgramError` yours, `PeerError` the other side's, `InternalError` ours. `…` stands for what",
        "depends on the case.",
        "",
        WRITTEN,
    ]
    area = ""
    for error in errors():
        if error.code[0] != area:
            area = error.code[0]
            lines += ["", f"## {AREAS[area]}", "", "| code | what | why | fix |", "|---|---|---|---|"]
        kind = "" if error.kind == "ProgramError" else f" ({KINDS[error.kind]})"
        lines.append(f"| {error.code}{kind} | {_cell(error.what)} | {_cell(error.why)} | {_cell(error.fix)} |")
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """docs/reference/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "`GET /metrics` of a gateway is Prometheus text. It asks for no credential: keep the path inside your network.",
        "",
        WRITTEN,
        "",
        "| metric | kind | labels | |",
        "|---|---|---|---|",
    ]
    for metric in metrics():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {_cell(metric.help)} |")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """docs/reference/commands.md."""
    from catchment.cli import COMMANDS

    lines = [
        "# Commands",
        "",
        "`catchment COMMAND --help` prints the same. Exit codes: 0 it did what was asked; 1 it answers no; 2 it could",
        "not, and the reason and the fix are on standard error; 130 it was interrupted.",
        "",
        WRITTEN,
        "",
        "| command | |",
        "|---|---|",
        *(f"| [`catchment {name}`](#catchment-{name}) | {summary} |" for name, summary in COMMANDS.items()),
    ]
    for name, summary in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"catchment {name}", description=summary)
        importlib.import_module(f"catchment.cli.{name.replace('-', '_')}").configure(parser)
        lines += ["", f"## catchment {name}", "", f"{summary[0].upper()}{summary[1:]}.", *_options(parser)]
    return "\n".join(lines) + "\n"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A parser's arguments as a table, then each of its actions."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    rows = [action for action in parser._actions if action not in below and action.dest != "help"]
    if rows:
        yield from ("", "| argument | default | |", "|---|---|---|")
    for action in rows:
        if action.help is argparse.SUPPRESS:
            continue
        value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
        words = ", ".join(action.option_strings) or f"{value}"
        if action.option_strings and action.nargs != 0:
            choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else value
            words += f" {choices}"
        unsaid = action.default in (None, argparse.SUPPRESS, "", []) or action.nargs == 0
        default = "" if unsaid else f"`{action.default}`"
        text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
        yield f"| `{_cell(words)}` | {default} | {_cell(text)} |"
    for action in below:
        summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, inner in action.choices.items():
            about = summaries.get(name) or inner.description or ""
            yield from ("", f"### {inner.prog.partition(' ')[0]} {inner.prog.partition(' ')[2]}", "")
            yield f"{about[:1].upper()}{about[1:].rstrip('.')}."
            yield from _options(inner)


def _cell(text: str) -> str:
    """A text inside a table, where nothing of it is taken for HTML or for a cell's end."""
    lines = [re.sub(r"\s{2,}", "  ", line.strip()) for line in text.splitlines()]
    return "<br>".join(line.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;") for line in lines)


PAGES = {"commands.md": commands_page, "metrics.md": metrics_page, "errors.md": errors_page}


def main(words: list[str]) -> int:
    """Write the pages, or say which are stale."""
    stale = []
    for name, page in PAGES.items():
        path, text = REFERENCE / name, page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in words:
            path.write_text(text, encoding="utf-8")
            print(f"[docs] wrote docs/reference/{name}")
    if "--check" in words and stale:
        print(f"[docs] stale: {', '.join(stale)}\n[docs] fix: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
