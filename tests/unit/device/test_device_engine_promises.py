"""What a part promises of its outputs: the engine hands it on, after the steps that hold it back."""

from functools import partial

from catchment.engines.edge import EdgeEngine
from catchment.plan.build import build
from catchment.plan.history import Source
from tests.thread.program import thread

ME = Source("phone", "ada")


def test_a_port_gives_the_promises_of_what_stands_before_it() -> None:
    plan = build(thread)
    part = plan.part("readings@device")
    (sensor,) = part.sources
    port = plan.sync("readings").source
    given: list[tuple[str, object]] = []
    engine = EdgeEngine(plan.graph(part))
    engine.on_output(
        port,
        lambda number, at, source, row: given.append(("row", row)),
        progress=lambda source, at: given.append(("promise", (source, at))),
    )
    engine.progress(sensor, ME, 5)
    engine.element(sensor, 7, ME, ("ada", 7, 3))
    engine.element(sensor, 8, ME, ("ada", 8, -3))
    engine.progress(sensor, ME, 9)
    assert given == [("promise", (ME, 5)), ("row", ("ada", 7, 3)), ("promise", (ME, 9))]


def test_a_port_whose_promises_nobody_asked_for_gives_its_elements() -> None:
    plan = build(thread)
    part = plan.part("readings@device")
    taken: list[int] = []
    engine = EdgeEngine(plan.graph(part))
    engine.on_output(plan.sync("readings").source, partial(lambda number, *rest: taken.append(number)))
    engine.progress(part.sources[0], ME, 5)
    engine.element(part.sources[0], 7, ME, ("ada", 7, 3))
    assert taken == [0]
