"""A program and a history for it, to be run on engines that must agree."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from catchment.plan.graph import Graph, Port
from catchment.plan.history import Outcome
from catchment.program import steps
from catchment.testing.engines import Restart, begin, feed
from catchment.testing.generate.generated import About, Generated, programs
from catchment.testing.generate.happenings import Entries, histories

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Case:
    """One example: a program as text and as its graph, and what arrives."""

    generated: Generated
    graph: Graph
    history: Entries

    def on(self, engine: str, *, watch: Collection[Port] | None = None, restarts: bool = True) -> Outcome:
        """What the engine gives, on the ports watched or on all."""
        running = begin(engine, self.graph)
        feed(running, (entry for entry in self.history if restarts or not isinstance(entry, Restart)))
        return running.outcome(watch)

    def __repr__(self) -> str:
        return "\n".join([repr(self.generated), *(f"  {entry}" for entry in self.history)])


@st.composite
def cases(draw: Draw, *, about: About = "anything", panes: bool = False) -> Case:
    """Cases; with `panes`, windows are told to combine panes, as a plan may tell them."""
    generated = draw(programs(about=about))
    graph = generated.graph
    if panes:
        graph = graph.replace(
            msgspec.structs.replace(vertex, step=msgspec.structs.replace(vertex.step, panes=True))
            for vertex in graph.vertices
            if isinstance(vertex.step, steps.Aggregated)
        )
    return Case(generated, graph, draw(histories(graph)))
