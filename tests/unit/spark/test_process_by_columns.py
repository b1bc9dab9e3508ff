"""What an author's `on_elements` gives is checked like a call's, and a call that cannot be vectorised is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import catchment as cm
from catchment.engines.reference import evaluate
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Element, Entry, Progress, Source
from catchment.testing import alone
from tests.unit.edge.generated_records import Fix, Seen, Total
from tests.unit.spark.vectorised import Batches

ADA = Source("a1", "ada")


def late(context: cm.Context) -> None:
    context.wake_after("late", 5)


class Hidden(cm.Process[Fix, Total, Seen]):
    def on_element(self, element: Fix, state: Seen, context: cm.Context) -> list[Total]:
        late(context)
        return []


class Counts(cm.Process[Fix, Total, Seen]):
    """Counts by one call for all; `wrong` says how it breaks its declaration."""

    wrong: str

    def on_element(self, element: Fix, state: Seen, context: cm.Context) -> list[Total]:
        state.count += 1
        return [Total(at=element.at, n=state.count)]

    def on_elements(self, elements: cm.Elements) -> None:
        nth = np.arange(len(elements.at)) - np.repeat(elements.starts[:-1], np.diff(elements.starts)) + 1
        nth += np.repeat(elements.state["count"], np.diff(elements.starts))
        fields: dict[str, Any] = {"at": elements.at, "n": nth}
        elements.state["count"] = nth[elements.starts[1:] - 1]
        cause: Any = np.arange(len(nth))
        match self.wrong:
            case "a field too many":
                fields["m"] = nth
            case "a field too few":
                del fields["n"]
            case "floats":
                fields["n"] = nth * 1.5
            case "a value too few":
                fields["n"] = nth[1:]
            case "a cause that is none":
                cause = cause + 1
            case "a state of floats":
                elements.state["count"] = elements.state["count"] * 2.5
            case "a state too short":
                elements.state["count"] = elements.state["count"][:0]
            case "a null":
                fields["n"] = [None] * len(nth)
        elements.give(cause, fields)


def program(process: Any) -> Graph:
    return graph_of(alone(lambda left, right: left.key_by(Fix.user).process(process), left=Fix, right=Fix))


def entries(graph: Graph) -> list[Entry]:
    step = graph.vertices[0].id
    rows: list[Any] = [("ada", "a1", at, 0, None, None, None, True, None) for at in (3, 5, 9)]
    return [*(Element(step, row[2], ADA, row) for row in rows), Progress(step, ADA, 50)]


@pytest.mark.parametrize(
    "wrong",
    (
        *("", "a field too many", "a field too few", "floats", "a value too few", "a cause that is none"),
        *("a state of floats", "a state too short", "a null"),
    ),
)
def test_what_was_not_declared_is_computed_call_by_call(wrong: str) -> None:
    graph = program(Counts(wrong=wrong))
    running = Batches(graph, cut=0.0)
    for entry in entries(graph):
        running.feed(entry)
    assert running.outcome(None) == evaluate(graph, tuple(entries(graph)))


def test_a_timer_on_the_clock_that_the_class_hides_is_refused() -> None:
    running = Batches(program(Hidden()), cut=0.0)
    for entry in entries(running.graph):
        running.feed(entry)
    with pytest.raises(cm.ProgramError, match="C332") as refused:
        running.flush()
    assert refused.value.fix == "call context.wake_after in a method of the class"
