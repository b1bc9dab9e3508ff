"""The report as HTML and as Markdown: the same sections, from the same blocks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple, TypeAlias


class Text(NamedTuple):
    """A paragraph."""

    words: str


class Table(NamedTuple):
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Figure(NamedTuple):
    """A plot."""

    name: str
    svg: str
    caption: str

    def standing_alone(self) -> str:
        """As a file, which has no page to take its colours from."""
        style = "<style>svg{font:12px sans-serif;background:#fff}.grid{stroke:#d5dae0}</style>"
        return self.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
            "<title>", f"{style}<title>", 1
        )


Block: TypeAlias = Text | Table | Figure


class Section(NamedTuple):
    """A table or figure of the paper, and ours."""

    title: str
    blocks: Sequence[Block]


STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d5dae0; --quiet: #59636e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171a; --line: #333a42; --quiet: #9aa4af } }
body { margin: 2rem auto; max-width: 52rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif }
h1 { font-size: 1.7rem }
h2 { font-size: 1.2rem; margin-top: 2.6rem; border-top: 1px solid var(--line); padding-top: 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0 }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line) }
th { color: var(--quiet); font-weight: 500 } .scroll { overflow-x: auto }
figure { margin: 1rem 0 } figcaption { color: var(--quiet); font-size: .9rem }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif } svg text { fill: currentColor }
.grid { stroke: var(--line) } code { font-size: .92em }
"""


def html(title: str, lead: str, sections: Sequence[Section]) -> str:
    """One file without anything from elsewhere."""
    parts = [f"<h1>{escape(title)}</h1><p>{_marked(lead)}</p>"]
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2>{''.join(map(_as_html, section.blocks))}")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n'


def markdown(title: str, lead: str, sections: Sequence[Section]) -> str:
    """With the plots in files beside it."""
    parts = [f"# {title}", lead]
    for section in sections:
        parts += [f"## {section.title}", *map(_as_markdown, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _as_html(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{_marked(block.words)}</p>"
    if isinstance(block, Figure):
        return f"<figure>{block.svg}<figcaption>{escape(block.caption)}</figcaption></figure>"
    head = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in block.headings)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _as_markdown(block: Block) -> str:
    if isinstance(block, Text):
        return block.words
    if isinstance(block, Figure):
        return f"![{block.caption}]({block.name}.svg)"
    rows = [block.headings, ["---"] * len(block.headings), *block.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _marked(words: str) -> str:
    """Escaped, with Markdown's `code` and **strong** words."""
    for mark, tag in (("`", "code"), ("**", "strong"), ("*", "em")):
        parts = (escape(words) if mark == "`" else words).split(mark)
        words = "".join(f"<{tag}>{part}</{tag}>" if number % 2 else part for number, part in enumerate(parts))
    return words
