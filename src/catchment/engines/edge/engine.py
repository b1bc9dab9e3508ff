"""The edge engine: runs a graph, or one part of it, event by event, in plain Python.

    engine = EdgeEngine(graph)
    engine.on_output(("slow/select", 0), lambda number, at, source, row: print(row))
    engine.element("slow/sensor", at, source, row)

It is given entries (an element, a promise, a device's presence, a tick) and finishes each before it takes the next:
all that follows from an entry has been given when the call returns. Time comes as entries only. It knows no clock,
socket or disk: whoever runs it does, and keeps its snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from catchment.engines.edge.reach import feeds_back, meets
from catchment.engines.edge.wiring import Edge, Promise, Take, Wiring
from catchment.errors import ProgramError
from catchment.operators.contract import Port, Snapshot
from catchment.plan.graph import Graph
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.row_error import ENDLESS_FEEDBACK, RowError
from catchment.program.types import Row

ROUNDS_MAX = 100
"""How many further rounds feedback may take after an entry; what is fed back after that is quarantined."""

Fail = Callable[[str, RowError, Row], None]
"""Takes what was quarantined: the step that failed, why, and what it was given."""

FORMAT = 1
"""The version of snapshots."""


def _ignore(step: str, error: RowError, row: Row) -> None:
    pass


class EdgeEngine:
    """A running graph. Say what takes its outputs before the first entry."""

    def __init__(self, graph: Graph, *, on_failure: Fail = _ignore) -> None:
        self.graph = graph
        self._on_failure = on_failure
        self._outputs: dict[Edge, Take] = {}
        self._promises: dict[Edge, Promise] = {}
        self._wiring: Wiring | None = None
        self._entries: dict[str, Port] = {}
        # Of each source step: whether its entries have to be finished by rounds, and whether events wait in those.
        self._rounds: dict[str, tuple[bool, bool]] = {}
        self._returned: dict[str, list[tuple[int, Source, Row]]] = {}

    def on_output(self, edge: Edge, take: Take, *, progress: Promise | None = None) -> None:
        """Call `take(number, at, source, row)` with each element that the port gives, numbered from 0.

        With `progress`, call that with each promise that the port gives: (source, nothing older than this is to come).
        """
        name, port = edge
        vertex = next((vertex for vertex in self.graph.vertices if vertex.id == name), None)
        if vertex is None or not 0 <= port < len(vertex.schemas):
            known = ", ".join(f"{v.id}:{number}" for v in self.graph.vertices for number in range(len(v.schemas)))
            raise ProgramError(
                "C320",
                f"the graph has no output {name}:{port}",
                why=f"its outputs are: {known}",
                fix="name one of them",
            )
        if self._wiring is not None:
            raise ProgramError(
                "C321",
                f"on_output({name}:{port}) came after the first entry",
                why="steps whose output nobody takes are fused into one function, so who takes what is settled first",
                fix="call on_output for each output that is wanted, then feed the engine",
            )
        self._outputs[edge] = take
        if progress is not None:
            self._promises[edge] = progress

    def element(self, step: str, at: int, source: Source, row: Row) -> None:
        """An element enters at a source step."""
        self._entry(step).element(at, source, row)
        self._finish(step)

    def feed_many(self, step: str, source: Source, rows: Iterable[Row]) -> None:
        """Many elements of one source, one entry each. Their times are those that the rows hold."""
        self._entry(step)
        chain = self.wiring.chains[step]
        if chain.rows is None:
            raise ProgramError(
                "C322",
                f"rows at {step} do not say when they happened",
                why=f"{self.graph.vertex(step).schemas[0].name} has no event-time field",
                fix="call element() with the time of each, or declare the field with event_time()",
            )
        if not any(self._rounds[step]):
            chain.rows(source, rows)
            return
        position = next(i for i, c in enumerate(self.graph.vertex(step).schemas[0].fields) if c.event_time)
        for row in rows:
            self.element(step, row[position], source, row)

    def progress(self, step: str, source: Source, at: int) -> None:
        """A source promises that nothing older than `at` is still to come at a source step."""
        self._entry(step).progress(source, at)
        self._finish(step)

    def presence(self, source: Source, since: int | None) -> None:
        """A source went away at that moment of the clock, or came back (None)."""
        self._everywhere(lambda port: port.presence(source, since))

    def tick(self, now: int) -> None:
        """The clock reads `now`."""
        self._everywhere(lambda port: port.tick(now))

    def snapshot(self) -> Snapshot:
        """All that the engine remembers between two entries, as plain data: each step's state and its time context."""
        wiring = self.wiring
        return {
            "format": FORMAT,
            "states": {name: operator.snapshot() for name, operator in wiring.operators.items()},
            "time_context": wiring.time_context(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Remember exactly that; go on as the engine that gave it would have."""
        wiring = self.wiring
        states = snapshot.get("states", {})
        if snapshot.get("format") != FORMAT or states.keys() != wiring.operators.keys():
            missing = ", ".join(sorted(set(wiring.operators) ^ set(states))) or f"format {snapshot.get('format')}"
            raise ProgramError(
                "C323",
                f"the snapshot is of another graph than {self.graph.program}",
                why=f"they differ in: {missing}",
                fix="restore it into the graph that it was taken of, or begin anew without it",
            )
        for name, operator in wiring.operators.items():
            operator.restore(states[name])
        wiring.set_time_context(snapshot["time_context"])

    def time_context(self) -> dict[str, dict[str, list[int]]]:
        """How many elements each port of each step took (`in`) and gave (`out`)."""
        return self.wiring.time_context()

    @property
    def wiring(self) -> Wiring:
        """The connected operators; connected on first use, when it is known what takes the outputs."""
        if self._wiring is None:
            wiring = self._wiring = Wiring(self.graph, self._outputs, self._on_failure, self._bring, self._promises)
            self._entries = wiring.entries
            for start in wiring.entries:
                self._rounds[start] = (feeds_back(self.graph, start), meets(self.graph, (start,)))
            self._feedback = [v.id for v in self.graph.vertices if isinstance(v.step, steps.Feedback)]
            self._all_meet = meets(self.graph, wiring.entries)
            self._feedback_meets = meets(self.graph, self._feedback)
        return self._wiring

    def _entry(self, step: str) -> Port:
        port = self._entries.get(step) or self.wiring.entries.get(step)
        if port is None:
            raise ProgramError(
                "C324",
                f"nothing enters at {step}",
                why=f"the source steps of the graph are: {', '.join(self._entries) or 'none'}",
                fix="name one of them",
            )
        waits = self._rounds[step][1]
        if waits:
            self.wiring.rounds.queueing[0] = True
        return port

    def _everywhere(self, give: Callable[[Port], None]) -> None:
        rounds = self.wiring.rounds
        rounds.queueing[0] = self._all_meet
        for port in self._entries.values():
            give(port)
        rounds.finish()
        rounds.queueing[0] = False
        if self._returned:
            self._go_round()

    def _finish(self, step: str) -> None:
        _, waits = self._rounds[step]
        if waits:
            rounds = self.wiring.rounds
            rounds.finish()
            rounds.queueing[0] = False
        if self._returned:
            self._go_round()

    def _bring(self, start: str, at: int, source: Source, row: Row) -> None:
        self._returned.setdefault(start, []).append((at, source, row))

    def _go_round(self) -> None:
        """What was fed back enters in the next round, until nothing is or it was often enough."""
        rounds = self.wiring.rounds
        for _ in range(ROUNDS_MAX):
            if not self._returned:
                return
            returned, self._returned = self._returned, {}
            rounds.queueing[0] = self._feedback_meets
            for start in self._feedback:
                for element in returned.get(start, ()):
                    self._entries[start].element(*element)
            rounds.finish()
            rounds.queueing[0] = False
        returned, self._returned = self._returned, {}
        for start in self._feedback:
            for _, _, row in returned.get(start, ()):
                self._on_failure(start, RowError(ENDLESS_FEEDBACK), row)
