"""Checks of graphs that the methods of Stream cannot make: those that another tool might write, or a bug of ours."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

import catchment as cm
from catchment.plan.check import mistakes
from catchment.plan.graph import Graph, Vertex, graph_of
from catchment.program import steps
from tests.unit.plan.programs import Fix, everything, peir


def codes(graph: Graph) -> list[str]:
    return [mistake.code for mistake in mistakes(graph)]


def changed(graph: Graph, name: str, change: Callable[[Vertex], Vertex]) -> Graph:
    return graph.replace([change(graph.vertex(name))])


@pytest.fixture
def graph() -> Graph:
    return graph_of(peir())


def test_a_program_that_makes_sense_has_no_mistake(graph: Graph) -> None:
    assert codes(graph) == [] == codes(graph_of(everything()))


def test_an_input_port_has_exactly_one_edge(graph: Graph) -> None:
    def twice(vertex: Vertex) -> Vertex:
        return msgspec.structs.replace(vertex, inputs=(*vertex.inputs, *vertex.inputs))

    assert codes(changed(graph, "fixes/where", twice)) == ["C241"]
    none = changed(graph, "fixes/moved", lambda vertex: msgspec.structs.replace(vertex, inputs=()))
    # What stood above it now goes nowhere, but that is said once the graph is one.
    assert codes(none) == ["C241"]


def test_a_source_has_no_input(graph: Graph) -> None:
    fed = changed(graph, "fixes/sensor", lambda vertex: msgspec.structs.replace(vertex, inputs=(("fixes/where", 0),)))
    assert codes(fed) == ["C241", "C246"]


@pytest.mark.parametrize("source", [("gone/where", 0), ("fixes/where", 1), ("footprint/select", 0)])
def test_a_step_reads_a_port_of_a_step_before_it(graph: Graph, source: tuple[str, int]) -> None:
    moved = changed(graph, "fixes/moved", lambda vertex: msgspec.structs.replace(vertex, inputs=(source,)))
    assert codes(moved) == ["C246"]


def test_nothing_reads_a_sink() -> None:
    graph = graph_of(everything())
    sink = next(vertex for vertex in graph.vertices if isinstance(vertex.step, steps.Sink))
    reader = msgspec.structs.replace(
        sink, id="after/where", step=steps.Where((Fix.accuracy_m > 1).node), inputs=((sink.id, 0),)
    )
    assert "C246" in codes(msgspec.structs.replace(graph, vertices=(*graph.vertices, reader)))


def test_both_ends_of_an_edge_agree(graph: Graph) -> None:
    other = cm.Beat.schema

    def of_other(vertex: Vertex) -> Vertex:
        return msgspec.structs.replace(vertex, schemas=(other, *vertex.schemas[1:]))

    assert codes(changed(graph, "fixes/where", of_other)) == ["C242", "C242"]
    late = changed(graph, "trips/processed", lambda v: msgspec.structs.replace(v, schemas=(v.schemas[0], other)))
    assert codes(late) == ["C242"]


def test_an_expression_reads_fields_that_its_input_has(graph: Graph) -> None:
    def on_nothing(vertex: Vertex) -> Vertex:
        return msgspec.structs.replace(vertex, step=steps.Where((cm.col("depth_m") > 1).node))

    (mistake,) = mistakes(changed(graph, "fixes/where", on_nothing))
    assert mistake.code == "C242"
    assert "depth_m" in mistake.what
    assert mistake.at is not None
    assert mistake.at.file.endswith("programs.py")


def test_a_key_is_a_field_of_what_is_keyed(graph: Graph) -> None:
    def by_city(vertex: Vertex) -> Vertex:
        return msgspec.structs.replace(vertex, step=msgspec.structs.replace(vertex.step, keys=("city",)))

    assert codes(changed(graph, "trips/processed", by_city)) == ["C242"]


def test_a_loop_is_fed_what_it_begins_with() -> None:
    graph = graph_of(everything())
    ((_, start),) = graph.loops
    assert codes(msgspec.structs.replace(graph, loops=((("fixes/sensor", 0), start),))) == ["C242"]
    assert codes(msgspec.structs.replace(graph, loops=())) == ["C249"]


def test_a_sensor_is_on_a_device(graph: Graph) -> None:
    up = changed(graph, "fixes/sensor", lambda vertex: msgspec.structs.replace(vertex, site=cm.CLOUD))
    # And what it reads would be taken down to the device without an address.
    assert codes(up) == ["C259", "C261"]


def test_spark_s_own_sources_are_in_the_cloud() -> None:
    graph = graph_of(everything())
    source = next(vertex for vertex in graph.vertices if isinstance(vertex.step, steps.External))
    down = changed(graph, source.id, lambda vertex: msgspec.structs.replace(vertex, site=cm.DEVICE))
    assert "C251" in codes(down)


def test_every_mistake_of_a_program_is_told() -> None:
    program = cm.Program("two")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        read = device.sensor(Fix)
        read.where(Fix.accuracy_m > 1)
        return read.window(cm.session(cm.minutes(1), keep=cm.hours(1))).top(1, by=Fix.accuracy_m)

    assert codes(graph_of(program)) == ["C240", "C255"]


def test_a_subscription_is_kept_though_nothing_is_done_with_what_it_returns() -> None:
    @cm.function
    def told(fix: Fix) -> None:
        return None

    program = cm.Program("told")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        read = device.sensor(Fix)
        read.subscribe(told)
        return read

    fixes.subscribe(told)
    graph = graph_of(program)
    assert codes(graph) == []
    assert [(v.id, v.site) for v in graph.vertices if isinstance(v.step, steps.Subscribe)] == [
        ("fixes/subscribe", cm.DEVICE),
        ("fixes/subscribe.2", cm.DEVICE),
    ]
