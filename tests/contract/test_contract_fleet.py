"""The contract suits a fleet: partial aggregates of many peers are summaries that merge by window, in any tree.

`Partial` is the one operator of the fleet that this project has before the fleet exists. At a peer it takes elements
and gives summaries, each labelled with the index of its window; further up it takes summaries and merges those of one
index. At the root a summary becomes the result. It uses the aggregates as every other step does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catchment as cm
from catchment.engines.edge import run
from catchment.errors import author_line
from catchment.operators.aggregates.bundle import Bundle
from catchment.operators.contract import Operator, Port, Quarantine, Snapshot, Source
from catchment.operators.windows.agenda import Agenda
from catchment.plan.graph import graph_of
from catchment.plan.history import Element, Progress
from catchment.program.aggregate import named
from catchment.program.types import Row
from catchment.testing import alone

SIZE = 10


class Heard(cm.Record):
    """What a peer measures."""

    peer: cm.Field[str] = cm.key(stamp="device")
    at: cm.Field[cm.Instant] = cm.event_time()
    level: cm.Field[float] = cm.field(step=0.5)
    n: cm.Field[int | None]


N: Any = Heard.n  # where it is null, it is passed over


class Widest(cm.UserAggregate[int, tuple[int, int], int]):
    """The largest less the smallest."""

    def lift(self, value: int) -> tuple[int, int]:
        return value, value

    def merge(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return min(left[0], right[0]), max(left[1], right[1])

    def lower(self, summary: tuple[int, int]) -> int:
        return summary[1] - summary[0]


ASKED = {
    "peers": cm.count(),
    "mean": cm.mean(Heard.level),
    "spread": cm.variance(Heard.level),
    "most": cm.max(Heard.n),
    "widest": Widest()(N),
    "frequent": cm.top(2, Heard.n),
    "spectrum": cm.dft(Heard.level, bins=3),
}
BUNDLE = Bundle(named(Heard.schema, ASKED, author_line()), Heard.schema, SIZE)


class Partial(Operator):
    """Merges what it is given of each window, and gives one summary of it when its children have promised past it."""

    def __init__(self, summary_of: Callable[[int, Row], tuple[int, Any]], children: int) -> None:
        self.summary_of, self.summaries = summary_of, dict[int, Any]()
        self.children, self.promised, self.agenda = children, dict[Source, int](), Agenda[int]()

    def connect(self, outputs: tuple[Port, ...], quarantine: Quarantine) -> tuple[Port, ...]:
        def element(at: int, source: Source, row: Row) -> None:
            index, summary = self.summary_of(at, row)
            if index not in self.summaries:
                self.agenda.add(None, (index + 1) * SIZE, index)
            self.summaries[index] = BUNDLE.merge(self.summaries.get(index) or BUNDLE.empty(), summary)

        def progress(source: Source, at: int) -> None:
            self.promised[source] = at
            if len(self.promised) == self.children:
                for end, index in self.agenda.due(None, min(self.promised.values())):
                    row = (index, msgspec.msgpack.encode(BUNDLE.save(self.summaries.pop(index))))
                    outputs[0].element(end - 1, Source("", None), row)
                outputs[0].progress(Source("", None), min(self.promised.values()))

        return (Port(element, progress, outputs[0].presence, outputs[0].tick),)

    def snapshot(self) -> Snapshot:
        summaries = [[index, BUNDLE.save(summary)] for index, summary in self.summaries.items()]
        return {"summaries": summaries, "promised": [[*source, at] for source, at in self.promised.items()]}

    def restore(self, state: Snapshot) -> None:
        self.promised = {Source(device, owner): at for device, owner, at in state["promised"]}
        self.summaries = {index: BUNDLE.load(saved) for index, saved in state["summaries"]}
        self.agenda.clear()
        for index in self.summaries:
            self.agenda.add(None, (index + 1) * SIZE, index)


def measured(at: int, row: Row) -> tuple[int, Any]:
    """At a peer: an element is a summary of itself, in the window that holds its time."""
    summary = BUNDLE.empty()
    BUNDLE.add(summary, BUNDLE.look(row), at, None)
    return at // SIZE, summary


def received(at: int, row: Row) -> tuple[int, Any]:
    """Further up: a summary, as a peer sent it."""
    return row[0], BUNDLE.load(msgspec.msgpack.decode(row[1]))


Tree = Any
"""A peer's name, or a list of trees."""


def grown(tree: Tree, parent: Port, name: str, leaves: dict[str, Port], restart: bool) -> None:
    """Connect a tree of operators below a port; each child is a source of its own to its parent."""
    own = Source(name, None)
    up = Port(
        lambda at, source, row: parent.element(at, own, row),
        lambda source, at: parent.progress(own, at),
        parent.presence,
        parent.tick,
    )
    operator = Partial(received if isinstance(tree, list) else measured, len(tree) if isinstance(tree, list) else 1)
    (port,) = operator.connect((up,), lambda error, row: None)
    if restart:  # every peer is restarted before each event, and knows only what its snapshot says
        port = _restarted(operator, port)
    if isinstance(tree, list):
        for number, branch in enumerate(tree):
            grown(branch, port, f"{name}.{number}", leaves, restart)
    else:
        leaves[tree] = port


def _restarted(operator: Operator, port: Port) -> Port:
    def before(take: Callable[..., None]) -> Callable[..., None]:
        def taken(*event: Any) -> None:
            operator.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(operator.snapshot())))
            take(*event)

        return taken

    return Port(before(port.element), before(port.progress), before(port.presence), before(port.tick))


TREES: list[Tree] = [
    [["a", "b"], ["c", ["d"]]],
    [["a", "b", "c", "d"]],
    [[["a"]], "b", [["c", "d"]]],
]
MEASURED = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.integers(0, 49),
        st.integers(-9, 9).map(lambda steps: steps / 2),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(elements=MEASURED, tree=st.sampled_from(TREES), restart=st.booleans())
def test_a_tree_of_peers_finds_what_one_place_would(elements: list[Any], tree: Tree, restart: bool) -> None:
    found: list[Row] = []

    def result(at: int, source: Source, row: Row) -> None:
        (given_row,), failure = BUNDLE.rows((row[0] * SIZE,), received(at, row)[1])
        assert failure is None
        found.append(given_row)

    leaves: dict[str, Port] = {}
    grown(tree, Port(result, *[lambda *event: None] * 3), "root", leaves, restart)
    for peer, at, level, n in elements:
        leaves[peer].element(at, Source(peer, None), (peer, at, level, n))
    for peer, port in leaves.items():
        port.progress(Source(peer, None), 100)

    graph = graph_of(alone(lambda heard: heard.window(cm.tumble(SIZE)).agg(**ASKED), heard=Heard))
    history = [Element("heard/append", at, Source(peer), (peer, at, level, n)) for peer, at, level, n in elements]
    outcome = run(graph, [*history, Progress("heard/append", Source("all"), 100)], [("alone/aggregated", 0)])
    expected = [(row[0], *row[4:]) for row in (result.row for result in outcome.results["alone/aggregated", 0])]
    assert len(found) == len(expected)
    assert all(map(_close, sorted(found), expected))


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def test_what_is_exact_is_so_in_every_tree() -> None:
    # 0.1 + 0.2 + 0.3 depends on the order for floats, and does not for steps.
    exact = Bundle(named(Heard.schema, {"total": cm.sum(Heard.level)}, author_line()), Heard.schema, None)
    parts = []
    for level in (0.5, 1e6 + 0.5, -1e6):
        summary = exact.empty()
        exact.add(summary, exact.look(("a", 0, level, None)), 0, None)
        parts.append(summary)
    ways = [
        exact.merge(exact.merge(parts[0], parts[1]), parts[2]),
        exact.merge(parts[0], exact.merge(parts[1], parts[2])),
        exact.merge(exact.merge(parts[2], parts[0]), parts[1]),
    ]
    assert [exact.results(way)[0] for way in ways] == [(1.0,)] * 3


def test_a_summary_may_leave_a_running_total_again() -> None:
    # What Mortar's `remove` is for: a window slides over the summaries of a peer.
    exact = Bundle(
        named(Heard.schema, {"n": cm.count(), "mean": cm.mean(Heard.level)}, author_line()), Heard.schema, None
    )
    summaries = []
    for level in (1.0, 2.0, 6.0):
        summary = exact.empty()
        exact.add(summary, exact.look(("a", 0, level, None)), 0, None)
        summaries.append(summary)
    total = exact.merge(exact.merge(*summaries[:2]), summaries[2])
    assert exact.results(exact.remove(total, summaries[0]))[0] == (2, pytest.approx(4.0))
