"""What a definition is given and gives: a step where it stands, all that arrives there, and all that it sends.

A definition is a function of a `Place` and of the whole list of arrivals. It keeps nothing between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from catchment.engines.reference.events import Arrival, Event, Round, Sent
from catchment.engines.reference.expressions import evaluate
from catchment.plan.graph import Vertex
from catchment.plan.history import Failure
from catchment.program.function import declared
from catchment.program.nodes import Node
from catchment.program.returned import conform
from catchment.program.row_error import FUNCTION_FAILED, FUNCTION_RESULT, RowError
from catchment.program.steps import Named
from catchment.program.types import FLOAT, INT, Column, RecordType, Row, Schema


class _Declared(Mapping[str, Callable[..., Any]]):
    """Declared functions by reference, as expressions look them up."""

    def __getitem__(self, reference: str) -> Callable[..., Any]:
        body: Callable[..., Any] = declared(reference).body
        return body

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Effects:
    """What subscribers were called with. A graph with feedback is evaluated many times; an effect happens once."""

    def __init__(self) -> None:
        self._called: dict[tuple[str, int], RowError | None] = {}

    def once(self, step: str, number: int, call: Callable[[], None]) -> None:
        """Make the step's n-th call, unless it was made before; what it raised then, it raises again."""
        if (step, number) not in self._called:
            self._called[step, number] = None
            try:
                call()
            except RowError as error:
                self._called[step, number] = error
        raised = self._called[step, number]
        if raised is not None:
            raise raised


@dataclass(frozen=True)
class Place:
    """A step where it stands: the vertex, and the schemas of its inputs."""

    vertex: Vertex
    inputs: tuple[Schema, ...]
    effects: Effects

    def value(self, node: Node, *rows: Row) -> Any:
        """The value of an expression over a row of each input."""
        return evaluate(node, rows, self.inputs, _Declared())

    def computed(self, columns: tuple[Named, ...], record: Schema, *rows: Row) -> Row:
        """The row of these columns; a field that none of them computes has its default."""
        known = {column.name: column for column in columns}
        return tuple(
            self._as(target, known[target.name], rows) if target.name in known else target.default
            for target in record.fields
        )

    def _as(self, target: Column, column: Named, rows: tuple[Row, ...]) -> Any:
        """An int that becomes a float field is that float."""
        value = self.value(column.value, *rows)
        return float(value) if value is not None and (column.type, target.type) == (INT, FLOAT) else value


def call(body: Callable[..., Any], *args: Any) -> Any:
    """What an author's function returns; what it raises fails the row."""
    try:
        return body(*args)
    except Exception as error:
        raise RowError(FUNCTION_FAILED, repr(error)) from error


def record_of(value: Any, record: Schema) -> Row:
    """A returned record as a row, or a failure where it is none."""
    row: Row = conform(value, RecordType(record), nullable=False)
    return row


def records_of(values: Any, record: Schema) -> list[Row]:
    """Returned records as rows: all of them, or a failure. An author may also `yield` them."""
    if not isinstance(values, Iterable):
        raise RowError(FUNCTION_RESULT, f"{values!r}, where many {record.name} were declared")
    return [record_of(value, record) for value in call(list, values)]


def time_of(row: Row, record: Schema, otherwise: int) -> int:
    """The time of a computed element: its record's event time, where there is one and it is not null."""
    name = record.event_time
    at = row[record.position(name)] if name is not None else None
    return otherwise if at is None else at


@dataclass
class Given:
    """What a step sends by each of its output ports, and what it quarantines."""

    step: str
    ports: list[list[Sent]]
    failures: list[tuple[Round, Failure]] = field(default_factory=list)

    def send(self, round_: Round, event: Event, port: int = 0) -> None:
        """One more event."""
        self.ports[port].append(Sent(round_, event))

    def fail(self, round_: Round, error: RowError, row: Row) -> None:
        """One more row in quarantine."""
        self.failures.append((round_, Failure(self.step, error.reason, row)))


def nothing(place: Place) -> Given:
    """What a step gives before anything arrives."""
    return Given(place.vertex.id, [[] for _ in place.vertex.schemas])


Definition: TypeAlias = Callable[[Place, list[Arrival]], Given]
