"""What leaves a cloud part: toward devices, and to sinks; and how the part is cut so that it does.

Knows plans alone: whoever asks what a part gives need not load Spark.
"""

from __future__ import annotations

from catchment.engines.spark.stages import Stages, cut
from catchment.plan import document
from catchment.plan.graph import Port
from catchment.plan.physical import Part, Plan
from catchment.program import steps


def outputs_of(plan: Plan, part: Part) -> dict[str, Port]:
    """What leaves a cloud part: sync streams toward devices by name, and what sinks keep."""
    return {**{name: plan.sync(name).source for name in part.outputs}, **kept_by(plan, part)[1]}


def kept_by(plan: Plan, part: Part) -> tuple[dict[str, str], dict[str, Port]]:
    """The output that each sink of a part takes, and where outputs come from that nothing else gives.

    Several sinks of one stream take one output, which is that of a delivery where there is one.
    """
    outputs = {plan.sync(name).source: name for name in part.outputs}
    taken: dict[str, str] = {}
    more: dict[str, Port] = {}
    for vertex in part.vertices:
        if isinstance(vertex.step, steps.Sink):
            port = vertex.inputs[0]
            name = outputs.setdefault(port, f"{port[0]}:{port[1]}")
            taken[vertex.id] = name
            if name not in part.outputs:
                more[name] = port
    return taken, more


def stages_of(plan_document: bytes, part_name: str) -> Stages:
    """The stages of a part of a shipped plan: cut again wherever they run, for a plan is data and they are not."""
    plan = document.read(plan_document)
    part = plan.part(part_name)
    return cut(plan.graph(part), outputs_of(plan, part))
