"""Histories drawn at random for generated programs, and in what two outcomes of one differ."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

import msgspec

from catchment.plan.graph import Graph
from catchment.plan.history import Element, Entry, Outcome, Presence, Progress, Source, Tick
from catchment.program import steps

SOURCES = (Source("a1", "ada"), Source("a2", "ada"), Source("b1", "bob"), Source("c1", None))
COLLAPSED = (Source("", "ada"), Source("", "bob"), Source("", None))


def history(draw: random.Random, drawn: Graph, size: int) -> list[Entry]:
    """Elements that come in time, late and very late, promises, silence, absence and ticks."""
    starts = [vertex.id for vertex in drawn.vertices if isinstance(vertex.step, steps.Append)]
    sources = [*draw.sample(SOURCES, draw.choice((1, 2, 4))), *draw.sample(COLLAPSED, draw.choice((0, 0, 1)))]
    now = 0
    found: list[Entry] = []
    for _ in range(size):
        now += draw.choice((0, 1, 2, 5, 20))
        source = draw.choice(sources)
        kind = draw.random()
        if kind < 0.6:
            found.append(_element(draw, draw.choice(starts), now - draw.choice((0, 0, 1, 5, 30, 100)), source))
        elif kind < 0.85:
            for start in draw.sample(starts, draw.choice((1, 2))):
                found.append(Progress(start, source, now - draw.choice((0, 3, 20))))
        elif kind < 0.9:
            found.append(Presence(source, draw.choice((None, now))))
        else:
            found.append(Tick(now + draw.choice((-5, 0, 10))))
    if draw.random() < 0.7:
        found += [Progress(start, source, now + 500) for start in starts for source in sources]
        found.append(Tick(now + 10**6))
    return found


def _element(draw: random.Random, start: str, at: int, source: Source) -> Element:
    row = (
        draw.choice((source.owner, source.owner, source.owner, "ada", None)),
        source.device or "a1",
        at,
        draw.choice((0, 1, 1, 2, 2, 3, 4, 5)),
        draw.choice((None, 0.0, 0.1, 2.5, -7.3, 12.0, 100.0, *((math.nan, math.inf) if draw.random() < 0.1 else ()))),
        draw.choice((None, 0.0, -0.0, 1.5, 2.25, -3.125, *((math.nan, -math.inf) if draw.random() < 0.1 else ()))),
        draw.choice((None, 0, 1, 7, -4, *((2**62, 2**63 - 1) if draw.random() < 0.1 else ()))),
        draw.choice((True, False)),
        draw.choice((None, "x", "y", "é", "")),
    )
    return Element(start, at, source, row)


def by_panes(drawn: Graph) -> Graph:
    """The graph with windows of time made of panes."""
    changed = [
        msgspec.structs.replace(vertex, step=msgspec.structs.replace(vertex.step, panes=True))
        for vertex in drawn.vertices
        if isinstance(vertex.step, steps.Aggregated)
    ]
    return drawn.replace(changed)


def ends(drawn: Graph) -> list[tuple[str, int]]:
    """The outputs that nothing in the graph reads, as far as a device would take them."""
    read = {edge for vertex in drawn.vertices for edge in vertex.inputs}
    known = [(vertex.id, port) for vertex in drawn.vertices for port in range(len(vertex.schemas))]
    return [edge for edge in known if edge not in read]


def differences(expected: Outcome, actual: Outcome, ports: Iterable[tuple[str, int]]) -> list[str]:
    """What differs, in words; floats may by a relative 1e-9."""
    found = []
    for edge in ports:
        wanted, given = expected.results[edge], actual.results[edge]
        if len(wanted) != len(given):
            found.append(f"{edge}: {len(wanted)} results and {len(given)}")
        for one, other in zip(wanted, given, strict=False):
            if (one.number, one.at, one.source) != (other.number, other.at, other.source) or not close(
                one.row, other.row
            ):
                found.append(f"{edge}: {one} and {other}")
                break
    wanted_failures = [(f.step, f.reason, f.row) for f in expected.failures]
    given_failures = [(f.step, f.reason, f.row) for f in actual.failures]
    if not close(tuple(wanted_failures), tuple(given_failures)):
        found.append(f"failures: {wanted_failures} and {given_failures}")
    return found


def close(one: Any, other: Any) -> bool:
    """Equal, but for what rounding may do to floats; NaN is NaN."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return (one != one and other != other) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return type(one) is type(other) and bool(one == other)
