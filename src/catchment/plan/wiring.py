"""Who reads what: a graph's edges, feedback included, looked up from either end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from catchment.plan.graph import Graph, Port, Vertex


class Wiring:
    """The edges of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.by_id: dict[str, Vertex] = {vertex.id: vertex for vertex in graph.vertices}
        self._readers: dict[Port, list[tuple[Vertex, int]]] = defaultdict(list)
        for vertex in graph.vertices:
            for number, source in enumerate(vertex.inputs):
                self._readers[source].append((vertex, number))
        self.looped: dict[Port, list[Vertex]] = defaultdict(list)
        for source, start in graph.loops:
            if start in self.by_id:
                self.looped[source].append(self.by_id[start])
        self.named: dict[Port, str] = {port: name for name, port in graph.streams}
        self._results = {port for name, port in graph.streams if name in graph.results}

    def readers(self, port: Port) -> tuple[tuple[Vertex, int], ...]:
        """The vertices that read a port, each with the input that it reads it at; feedback aside."""
        return tuple(self._readers.get(port, ()))

    def read(self, port: Port) -> bool:
        """Whether a step, or a feedback edge, reads a port."""
        return bool(self._readers.get(port) or self.looped.get(port))

    def observed(self, port: Port) -> bool:
        """Whether anything but steps may look at a port: it is one of the program's results, or it goes round."""
        return bool(self.looped.get(port)) or port in self._results

    def only_reader(self, port: Port) -> Vertex | None:
        """The one vertex that a port is there for, if there is one and nothing else looks at the port."""
        readers = self.readers(port)
        return readers[0][0] if len(readers) == 1 and not self.observed(port) else None

    def below(self, vertex: Vertex) -> Iterator[Vertex]:
        """The vertices that read any output of this one, feedback included."""
        for number in range(len(vertex.schemas)):
            yield from (reader for reader, _ in self.readers((vertex.id, number)))
            yield from self.looped.get((vertex.id, number), ())
