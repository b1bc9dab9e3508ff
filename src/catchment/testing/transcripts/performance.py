"""A story performed on an engine: fed line by line, and held to what it expects on the way and at the end."""

from __future__ import annotations

from typing import Any

from catchment.plan.graph import Graph, Port, graph_of
from catchment.plan.history import Failure, Outcome
from catchment.program.types import Row, Schema
from catchment.testing.engines import Running, begin, feed
from catchment.testing.history import History
from catchment.testing.running import late_port_of, port_of, schema_of
from catchment.testing.transcripts.programs import program_of
from catchment.testing.transcripts.script import say
from catchment.testing.transcripts.story import Story, malformed
from catchment.testing.transcripts.values import agree, shown, value

_WINDOW = ("window_start", "window_end")


def perform(story: Story, engine: str = "reference") -> None:
    """Perform the story; raise `AssertionError` where the engine gives something else.

    Where the story says that it differs on this engine, it must: on the day they agree, that is the error.
    """
    reason = story.differs_on.get(engine)
    if reason is None:
        _Performance(story, engine).play()
        return
    try:
        _Performance(story, engine).play()
    except AssertionError:
        return
    raise AssertionError(f"{story.name} is performed by {engine} now: take `{engine}: {reason}` out of differs_on")


class _Performance:
    def __init__(self, story: Story, engine: str) -> None:
        self.story = story
        self.engine = engine
        self.graph: Graph = graph_of(program_of(story))
        self.running: Running = begin(engine, self.graph)
        self.seen: dict[Port, int] = {}

    def play(self) -> None:
        history = History(self.graph)
        fed = 0
        for line in self.story.input:
            if isinstance(line, dict) and line.keys() == {"expect"}:
                self.expect("expect", line["expect"], since_last=True)
                continue
            say(self.story, history, line)
            entries = list(history)
            feed(self.running, entries[fed:])
            fed = len(entries)
        for word, expected in self.story.expected.items():
            if word == "expect_failures":
                self.expect_failures(expected)
            else:
                self.expect(word, expected, since_last=False)

    def expect(self, word: str, expected: Any, *, since_last: bool) -> None:
        """What one stream gave, or each of several by name."""
        if not isinstance(expected, dict):
            expected = {self.graph.streams[-1][0]: expected}
        outcome = self.running.outcome(None)
        for name, rows in expected.items():
            port = self.port(word, name)
            skipped = self.seen.get(port, 0) if since_last else 0
            given = [result.row for result in outcome.results[port]]
            self.seen[port] = max(self.seen.get(port, 0), len(given)) if since_last else self.seen.get(port, 0)
            schema = schema_of(self.graph, port)
            wanted = [self.wanted(schema, row) for row in rows]
            good = _all_there if word == "expect_some" else _same
            if not good(wanted, given[skipped:]):
                raise AssertionError(self.report(word, name, schema, rows, given[skipped:], outcome))

    def port(self, word: str, name: str) -> Port:
        match word:
            case "expect_late":
                return late_port_of(self.graph, name)
            case "expect_late_right":
                return late_port_of(self.graph, name, side=1)
            case _:
                return port_of(self.graph, name)

    def wanted(self, schema: Schema, row: dict[str, Any]) -> dict[int, Any]:
        """The fields that the story names, by their place in a row."""
        fields = dict(row)
        if "window" in fields:
            fields.update(zip(_WINDOW, fields.pop("window"), strict=True))
        stray = next((name for name in fields if name not in schema.names), None)
        if stray is not None:
            known = ", ".join(schema.names)
            raise malformed(self.story.path, f"it expects {stray!r} of {schema.name}", f"its fields are {known}")
        return {schema.position(name): value(written, schema.column(name).type) for name, written in fields.items()}

    def expect_failures(self, expected: list[dict[str, Any]]) -> None:
        failures = self.running.outcome(()).failures
        if len(expected) == len(failures) and all(map(self.is_failure, expected, failures)):
            return
        lines = [f"{f.step}: {f.reason}: {f.row}" for f in failures]
        raise AssertionError(f"{self.heading()}\nexpect_failures:\n{_listed(expected)}\nbut it gave:\n{_listed(lines)}")

    def is_failure(self, expected: dict[str, Any], failure: Failure) -> bool:
        """Whether it is the one: the step by its id or its kind, and as many fields of its row as are named."""
        kind = failure.step.rpartition("/")[2].partition(".")[0]
        row = expected.get("row", {})
        if isinstance(row, dict):
            schema = self.input_schema(failure.step)
            fits = _fits({schema.position(n): value(w, schema.column(n).type) for n, w in row.items()}, failure.row)
        else:
            fits = agree(row, failure.row)
        return expected.get("step") in (None, failure.step, kind) and expected["reason"] == failure.reason and fits

    def input_schema(self, step: str) -> Schema:
        vertex = self.graph.vertex(step)
        return schema_of(self.graph, vertex.inputs[0]) if vertex.inputs else vertex.schemas[0]

    def heading(self) -> str:
        return f"{self.story.name} on {self.engine}: {self.story.shows}"

    def report(self, word: str, name: str, schema: Schema, rows: Any, given: list[Row], outcome: Outcome) -> str:
        got = [{c.name: shown(v, c.type) for c, v in zip(schema.fields, row, strict=True)} for row in given]
        quarantined = [f"{failure.step}: {failure.reason}: {failure.row}" for failure in outcome.failures]
        more = f"\nand quarantined:\n{_listed(quarantined)}" if quarantined else ""
        return f"{self.heading()}\n{word} of {name}:\n{_listed(rows)}\nbut it gave:\n{_listed(got)}{more}"


def _listed(lines: Any) -> str:
    return "\n".join(f"  - {line}" for line in lines) or "  nothing"


def _fits(wanted: dict[int, Any], row: Row) -> bool:
    return all(agree(expected, row[position]) for position, expected in wanted.items())


def _same(wanted: list[dict[int, Any]], given: list[Row]) -> bool:
    """Exactly these, in this order."""
    return len(wanted) == len(given) and all(map(_fits, wanted, given))


def _all_there(wanted: list[dict[int, Any]], given: list[Row]) -> bool:
    """All of these, in this order, whatever else comes between."""
    rest = iter(given)
    return all(any(_fits(each, row) for row in rest) for each in wanted)
