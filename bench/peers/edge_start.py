"""The edge engine in a fresh interpreter: what it costs to import it and to run a small program to its first result."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


def first_result() -> list[Any]:
    """A device's program: a filter, and a mean per user and minute."""
    import catchment as cm
    from catchment.engines.edge import EdgeEngine
    from catchment.plan.graph import graph_of
    from catchment.plan.history import Source

    class Fix(cm.Record):
        user: cm.Field[str] = cm.key(stamp="user")
        at: cm.Field[cm.Instant] = cm.event_time()
        speed_mps: cm.Field[float] = cm.field(step=0.25)
        accuracy_m: cm.Field[float] = cm.field(step=0.1)

    program = cm.Program("small")

    @program.stream(at=cm.DEVICE)
    def means(device: cm.DeviceSite) -> cm.Stream[Any]:
        good = device.sensor(Fix).where(Fix.accuracy_m <= 20)
        return good.key_by(Fix.user).window(cm.tumble(cm.minutes(1))).agg(mean_mps=cm.mean(Fix.speed_mps))

    found: list[Any] = []
    phone = Source("phone", "ada")
    engine = EdgeEngine(graph_of(program))
    engine.on_output(("means/aggregated", 0), lambda number, at, source, row: found.append(row))
    engine.element("means/sensor", 5, phone, ("ada", 5, 3.0, 5.0))
    engine.progress("means/sensor", phone, 60_000_000)
    return found


def held_kb() -> int:
    """How much memory this process holds."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise OSError("/proc/self/status has no VmRSS")


if __name__ == "__main__":
    wall, cpu = time.perf_counter(), time.process_time()
    assert len(first_result()) == 1
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**seconds, "held_kb": held_kb()}))
