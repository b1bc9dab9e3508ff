"""Wiring: a graph as operators that push into one another, with stateless neighbours fused into one function.

Vertices are connected from the last to the first, so each finds the ports that it pushes into. A chain of stateless
steps is fused as far as one gives to the next and to nobody else. The wiring also keeps what the operators themselves
do not: how many elements each port took and gave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from catchment.engines.edge.rounds import Rounds
from catchment.operators.build import operator_of
from catchment.operators.chain import Chain, Fused
from catchment.operators.contract import NOWHERE, Operator, Port, Quarantine
from catchment.operators.stateless import Stateless
from catchment.plan.graph import Graph, Vertex
from catchment.plan.history import Source
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row

NESTED_MAX = 8
"""How many steps that give many may be fused: each is a loop in a loop, of which Python allows some twenty."""

Edge: TypeAlias = tuple[str, int]
"""A vertex's id and the number of one of its output ports."""
Take: TypeAlias = Callable[[int, int, Source, Row], None]
"""Takes what a port gives: (number, time, source, row), where numbers count from 0."""
Promise: TypeAlias = Callable[[Source, int], None]
"""Takes the promises that a port gives: (source, nothing older than this is to come)."""


@dataclass
class Wiring:
    """A connected graph.

    `outputs` says what takes what ports give, `promises` what takes their promises, and `loop` takes what feedback
    edges are given.
    """

    graph: Graph
    outputs: dict[Edge, Take]
    fail: Callable[[str, RowError, Row], None]
    loop: Callable[[str, int, Source, Row], None]
    promises: dict[Edge, Promise] = field(default_factory=dict)
    rounds: Rounds = field(default_factory=Rounds)
    operators: dict[str, Operator] = field(default_factory=dict)
    entries: dict[str, Port] = field(default_factory=dict)
    """The input port of each source step."""
    chains: dict[str, Fused] = field(default_factory=dict)
    """The chain that begins at each source step, which can take many elements at once."""
    _given: dict[Edge, list[int]] = field(default_factory=dict)
    _numbers: dict[Edge, list[int]] = field(default_factory=dict)
    _failed: dict[str, list[int]] = field(default_factory=dict)
    _chains: list[tuple[list[str], Fused]] = field(default_factory=list)
    _inputs: dict[str, tuple[Port, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vertices = {vertex.id: vertex for vertex in self.graph.vertices}
        self._readers: dict[Edge, list[Edge]] = {}
        for vertex in self.graph.vertices:
            for port, edge in enumerate(vertex.inputs):
                self._readers.setdefault(edge, []).append((vertex.id, port))
        self._loops: dict[Edge, list[str]] = {}
        for edge, start in self.graph.loops:
            self._loops.setdefault(edge, []).append(start)
        for vertex in self.graph.vertices:
            given = tuple(vertices[name].schemas[port] for name, port in vertex.inputs)
            self.operators[vertex.id] = operator_of(vertex.step, given)
        fused = self._fused()
        for vertex in reversed(self.graph.vertices):
            operator = self.operators[vertex.id]
            if not isinstance(operator, Stateless):
                self._connect(vertex, operator)
            elif vertex.id in fused:
                self._fuse(vertex, fused[vertex.id])

    def time_context(self) -> dict[str, dict[str, list[int]]]:
        """How many elements each port of each vertex took (`in`) and gave (`out`), and how many it quarantined."""
        given = {edge: count[0] for edge, count in self._given.items()}
        for names, chain in self._chains:
            _, *counts = chain.counts()
            given.update({(name, 0): count for name, count in zip(names, counts, strict=True)})
        taken = {names[0]: chain.counts()[0] for names, chain in self._chains}
        return {
            vertex.id: {
                "in": [given.get(edge, 0) for edge in vertex.inputs] or [taken.get(vertex.id, 0)],
                "out": [given.get((vertex.id, port), 0) for port in range(len(vertex.schemas))],
                "failed": [self._failed[vertex.id][0]],
            }
            for vertex in self.graph.vertices
        }

    def set_time_context(self, context: dict[str, dict[str, list[int]]]) -> None:
        """Count on from there."""
        for counters in (self._given, self._numbers):
            for (name, port), count in counters.items():
                count[0] = context[name]["out"][port]
        for name, count in self._failed.items():
            count[0] = context[name]["failed"][0]
        for names, chain in self._chains:
            chain.set_counts([context[names[0]]["in"][0], *(context[name]["out"][0] for name in names)])

    def _fused(self) -> dict[str, list[str]]:
        """The chains of stateless steps that become one function, by their first step."""
        chains: dict[str, list[str]] = {}  # by the last step so far
        for vertex in self.graph.vertices:
            if not isinstance(self.operators[vertex.id], Stateless):
                continue
            names = [vertex.id]
            if vertex.inputs and self._only_reader(vertex.inputs[0]):
                before = chains.get(vertex.inputs[0][0], [])
                if sum(map(self._loops_over, [*before, vertex.id])) <= NESTED_MAX:
                    chains.pop(vertex.inputs[0][0], None)
                    names = [*before, vertex.id]
            chains[vertex.id] = names
        return {names[0]: names for names in chains.values()}

    def _loops_over(self, name: str) -> bool:
        step = self.graph.vertex(name).step
        return isinstance(step, steps.Map) and step.many

    def _only_reader(self, edge: Edge) -> bool:
        return len(self._readers.get(edge, ())) == 1 and edge not in self.outputs and edge not in self._loops

    def _connect(self, vertex: Vertex, operator: Operator) -> None:
        outputs = tuple(self._counted((vertex.id, port)) for port in range(len(vertex.schemas)))
        ports = operator.connect(outputs, self._quarantine(vertex.id))
        self._inputs[vertex.id] = self.rounds.queued(ports) if len(ports) > 1 else ports

    def _fuse(self, vertex: Vertex, names: list[str]) -> None:
        operators = [operator for name in names if isinstance(operator := self.operators[name], Stateless)]
        chain = Chain(operators[0].given)
        for number, operator in enumerate(operators):
            if number:
                chain.next_step()
            operator.write(chain)
        last = (names[-1], 0)
        output = self._reached(last)
        quarantines = [self._quarantine(name) for name in names]
        if last in self.outputs and last not in self._readers and last not in self._loops:
            # The chain counts what it gives, so it can say the numbers itself.
            made = chain.compile(self.outputs[last], quarantines, numbered=True)
        else:
            made = chain.compile(output.element, quarantines)
        self._chains.append((names, made))
        port = Port(made.element, output.progress, output.presence, output.tick)
        self._inputs[vertex.id] = (port,)
        if isinstance(vertex.step, steps.SOURCES):
            self.entries[vertex.id] = port
            self.chains[vertex.id] = made

    def _quarantine(self, name: str) -> Quarantine:
        count = self._failed[name] = [0]
        fail = self.fail

        def quarantine(error: RowError, row: Row) -> None:
            count[0] += 1
            fail(name, error, row)

        return quarantine

    def _counted(self, edge: Edge) -> Port:
        """Where an output of a step with state goes, counting elements on the way."""
        reached = self._reached(edge)
        count = self._given[edge] = [0]
        if reached is NOWHERE:
            return Port(_counter(count), NOWHERE.progress, NOWHERE.presence, NOWHERE.tick)
        give = reached.element

        def element(at: int, source: Source, row: Row) -> None:
            count[0] += 1
            give(at, source, row)

        return Port(element, reached.progress, reached.presence, reached.tick)

    def _reached(self, edge: Edge) -> Port:
        """All that an output goes to, as one port."""
        ports = [self._inputs[name][port] for name, port in self._readers.get(edge, ())]
        if edge in self.outputs or edge in self._loops:
            ports.insert(0, self._taken(edge))
        if not ports:
            return NOWHERE
        return ports[0] if len(ports) == 1 else _all(ports)

    def _taken(self, edge: Edge) -> Port:
        """What takes elements outside the graph, and what brings them back into it."""
        take, loops, bring = self.outputs.get(edge), self._loops.get(edge, ()), self.loop
        number = self._numbers[edge] = [0]

        def give(at: int, source: Source, row: Row) -> None:
            if take is not None:
                take(number[0], at, source, row)
            number[0] += 1
            for start in loops:
                bring(start, at, source, row)

        return Port(give, self.promises.get(edge, NOWHERE.progress), NOWHERE.presence, NOWHERE.tick)


def _counter(count: list[int]) -> Callable[[int, Source, Row], None]:
    def element(at: int, source: Source, row: Row) -> None:
        count[0] += 1

    return element


def _all(ports: list[Port]) -> Port:
    """One port for several, each given every event in turn."""
    elements = [port.element for port in ports]

    def element(at: int, source: Source, row: Row) -> None:
        for give in elements:
            give(at, source, row)

    def progress(source: Source, at: int) -> None:
        for port in ports:
            port.progress(source, at)

    def presence(source: Source, since: int | None) -> None:
        for port in ports:
            port.presence(source, since)

    def tick(now: int) -> None:
        for port in ports:
            port.tick(now)

    return Port(element, progress, presence, tick)
