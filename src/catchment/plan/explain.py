"""The planner's account of a program: its graph before and after each rewrite, its parts, what travels, and why.

Pure: from a graph to data, and from that to text, Mermaid or JSON. `catchment explain` prints it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from catchment.plan.crossing import crossings, inert
from catchment.plan.graph import Graph, Vertex
from catchment.plan.physical import Plan
from catchment.plan.place import place
from catchment.plan.portable import departing
from catchment.plan.rewrites import Stage, stages
from catchment.plan.wording import policy, step


class Reason(msgspec.Struct, frozen=True):
    """Something that the planner decided, and why."""

    about: str
    what: str
    why: str


class Explanation(msgspec.Struct, frozen=True):
    """All there is to say of how a program becomes its plan."""

    program: str
    before: Graph
    stages: tuple[Stage, ...]
    placement: tuple[Reason, ...]
    notes: tuple[Reason, ...]
    plan: Plan


def explain(graph: Graph, without: Collection[str] = ()) -> Explanation:
    """The account of a checked graph."""
    done = stages(graph, without)
    after = done[-1].graph if done else graph
    plan = place(after)
    return Explanation(graph.program, graph, done, _placement(after, plan), _notes(graph), plan)


def _placement(graph: Graph, plan: Plan) -> tuple[Reason, ...]:
    found = []
    arrived = {stream.target for stream in plan.syncs}
    for part in plan.parts:
        own = [vertex for vertex in part.vertices if vertex.id not in arrived]
        streams = ", ".join(dict.fromkeys(vertex.stream for vertex in own))
        count = "one step" if len(own) == 1 else f"{len(own)} connected steps"
        where = "where it is declared" if "," not in streams else "where they are declared"
        found.append(Reason(part.name, f"{count} at {part.site}", f"{streams}: at={part.site.name} {where}"))
    for crossing, stream in zip(crossings(graph), plan.syncs, strict=True):
        readers = ", ".join(crossing.targets)
        found.append(
            Reason(
                f"sync {crossing.name}",
                f"{stream.from_part} to {stream.to_part}: {policy(crossing.policy)}",
                f"{readers} reads what {crossing.source[0]} gives at {crossing.from_site}; {crossing.because}",
            )
        )
    return tuple(found)


def _notes(graph: Graph) -> tuple[Reason, ...]:
    return tuple(
        Reason(
            vertex.stream,
            "its sync policy does nothing",
            "a policy binds to the next crossing of sites downstream, and there is none that no nearer policy binds to",
        )
        for vertex in inert(graph)
    )


def listing(graph: Graph, indent: str = "", arrivals: Mapping[str, str] | None = None) -> list[str]:
    """A graph, one line for each step: its id, its site, what it does and what it reads."""
    said = arrivals or {}
    rows = [
        (vertex.id, str(vertex.site), said.get(vertex.id) or step(vertex.step), _reads(vertex, graph))
        for vertex in graph.vertices
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)).rstrip()
        for row in rows
    ]


def _reads(vertex: Vertex, graph: Graph) -> str:
    sources = [
        name if port == 0 else f"{name} late" if port == 1 else f"{name} late right" for name, port in vertex.inputs
    ]
    sources += [f"{name} (round again)" for (name, _), start in graph.loops if start == vertex.id]
    return f"< {', '.join(sources)}" if sources else ""


def text(account: Explanation, *, every_stage: bool) -> str:
    """The account for people."""
    lines = [f"program {account.program}", ""]
    if every_stage:
        lines += ["as written", *listing(account.before, "  "), ""]
    for stage in account.stages:
        if not stage.changes:
            continue
        lines.append(f"rewrite {stage.rewrite}")
        for change in stage.changes:
            lines += [f"  {change.step} {change.what}", f"    because {change.why}"]
        if every_stage and any(change.done for change in stage.changes):
            lines += ["", *listing(stage.graph, "  ")]
        lines.append("")
    lines += ["parts"]
    arrivals = {stream.target: f"what {stream.from_part} sends" for stream in account.plan.syncs}
    for part in account.plan.parts:
        lines += [f"  {part.name}", *listing(account.plan.graph(part), "    ", arrivals)]
    lines += ["", "placement"]
    for reason in (*account.placement, *account.notes):
        lines += [f"  {reason.about}: {reason.what}", f"    because {reason.why}"]
    lines += ["", f"plan {account.plan.fingerprint}"]
    return "\n".join(lines) + "\n"


def mermaid(account: Explanation, *, every_stage: bool) -> str:
    """The plan as a Mermaid flowchart; with every stage, a Markdown page with one for each."""
    plan = _diagram_of_plan(account.plan)
    if not every_stage:
        return plan
    pages = [("As written", _diagram(account.before))]
    for stage in account.stages:
        if any(change.done for change in stage.changes):
            pages.append((f"After {stage.rewrite}", _diagram(stage.graph)))
    pages.append(("The plan", plan))
    return "\n".join(f"## {title}\n\n```mermaid\n{diagram}```\n" for title, diagram in pages)


def _diagram(graph: Graph) -> str:
    lines = ["flowchart LR"]
    names = {vertex.id: f"s{number}" for number, vertex in enumerate(graph.vertices)}
    for site in dict.fromkeys(vertex.site for vertex in graph.vertices):
        lines.append(f"  subgraph {site.name}[{_quoted(site)}]")
        lines += [f"    {_box(names, v)}" for v in graph.vertices if v.site == site]
        lines.append("  end")
    return "\n".join([*lines, *_arrows(graph, names)]) + "\n"


def _diagram_of_plan(plan: Plan) -> str:
    lines = ["flowchart LR"]
    names = {v.id: f"s{number}" for number, v in enumerate(v for part in plan.parts for v in part.vertices)}
    for number, part in enumerate(plan.parts):
        lines.append(f"  subgraph p{number}[{_quoted(part.name)}]")
        lines += [f"    {_box(names, vertex)}" for vertex in part.vertices]
        lines.append("  end")
    for part in plan.parts:
        lines += _arrows(plan.graph(part), names)
    for stream in plan.syncs:
        label = _quoted(f"{stream.name}: {policy(stream.policy)}")
        lines.append(f"  {names[stream.source[0]]} ==>|{label}| {names[stream.target]}")
    return "\n".join(lines) + "\n"


def _arrows(graph: Graph, names: dict[str, str]) -> list[str]:
    lines = []
    for vertex in graph.vertices:
        for name, port in vertex.inputs:
            late = f"|{_quoted('late')}|" if port else ""
            lines.append(f"  {names[name]} -->{late} {names[vertex.id]}")
    lines += [f"  {names[name]} -.->|{_quoted('round again')}| {names[start]}" for (name, _), start in graph.loops]
    return lines


def _box(names: dict[str, str], vertex: Vertex) -> str:
    return f"{names[vertex.id]}[{_quoted(f'{vertex.id}<br/>{_escaped(step(vertex.step))}', escape=False)}]"


def _quoted(label: str, *, escape: bool = True) -> str:
    return f'"{_escaped(label) if escape else label}"'


def _escaped(label: str) -> str:
    # Inside quotes Mermaid still reads HTML, and ends at a quote.
    return label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def json(account: Explanation, *, every_stage: bool) -> bytes:
    """The account as data, on several lines."""
    whole: dict[str, Any] = {
        "program": account.program,
        "before": account.before if every_stage else None,
        "rewrites": [
            {
                "rewrite": stage.rewrite,
                "changes": stage.changes,
                **({"after": stage.graph} if every_stage else {}),
            }
            for stage in account.stages
        ],
        "placement": account.placement,
        "notes": account.notes,
        "plan": departing(account.plan),
    }
    if not every_stage:
        del whole["before"]
    return msgspec.json.format(msgspec.json.encode(_departing(whole), order="deterministic"), indent=2) + b"\n"


def _departing(tree: Any) -> Any:
    match tree:
        case dict():
            return {name: _departing(value) for name, value in tree.items()}
        case list():
            return [_departing(value) for value in tree]
        case _:
            return departing(tree)
