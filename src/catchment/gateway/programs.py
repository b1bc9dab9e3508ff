"""What the cloud side of each program says of itself, for this gateway's page of metrics.

Supervisors write `programs/NAME/status.json` beside the gateway's stores, whole or not at all. It is read when somebody
looks, and where it cannot be read there is nothing to show: the metrics of a gateway do not depend on who else runs.

>>> gauges(Path("nowhere"))[0].ask()
{}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from catchment.gateway.metrics import Gauge


class _Spread(msgspec.Struct, frozen=True):
    p50: int
    p95: int
    p99: int


class _Delay(msgspec.Struct, frozen=True):
    results: int
    appended_ms: _Spread | None
    received_ms: _Spread | None


class _Standing(msgspec.Struct, frozen=True):
    behind_bytes: int
    batch_bytes: int
    batch_ms: int


class _Said(msgspec.Struct, frozen=True):
    program: str
    state: str
    restarts: int = 0
    latency: dict[str, _Delay] = {}
    flow: dict[str, _Standing] = {}


Values = dict[tuple[str, ...], float]


def gauges(data: Path) -> list[Gauge]:
    """Gauges of every program that runs on the gateway's directory."""

    def gauge(name: str, text: str, labels: tuple[str, ...], of: Callable[[_Said], Values]) -> Gauge:
        return Gauge(f"catchment_cloud_{name}", text, ("program", *labels), partial(_ask, data, of))

    return [
        gauge("up", "Programs whose supervisor says that it runs.", (), lambda said: {(): 1}),
        gauge("restarts", "Queries started anew since the supervisor's start.", (), lambda said: {(): said.restarts}),
        gauge(
            "results",
            "Results since the supervisor's start, by output.",
            ("output",),
            lambda said: {(output,): delay.results for output, delay in said.latency.items()},
        ),
        gauge(
            "latency_seconds",
            "How old the readings behind recent results were when those were in their sinks, by output: from the "
            "append on the device, or from the gateway's taking it.",
            ("output", "since", "quantile"),
            _latency,
        ),
        gauge(
            "behind_bytes",
            "Logged, and not yet in a batch, by query.",
            ("query",),
            lambda said: {(query,): one.behind_bytes for query, one in said.flow.items()},
        ),
        gauge(
            "batch_bytes",
            "What the last batch took, by query.",
            ("query",),
            lambda said: {(query,): one.batch_bytes for query, one in said.flow.items()},
        ),
        gauge(
            "batch_seconds",
            "How long the last batch took, by query.",
            ("query",),
            lambda said: {(query,): one.batch_ms / 1000 for query, one in said.flow.items()},
        ),
    ]


def _ask(data: Path, of: Callable[[_Said], Values]) -> Mapping[tuple[str, ...], float]:
    return {(said.program, *labels): value for said in _running(data) for labels, value in of(said).items()}


def _running(data: Path) -> Iterator[_Said]:
    for path in sorted((data / "programs").glob("*/status.json")):
        try:
            said = msgspec.json.decode(path.read_bytes(), type=_Said)
        except (OSError, msgspec.DecodeError):
            continue
        if said.state == "running":
            yield said


def _latency(said: _Said) -> Values:
    return {
        (output, since, quantile): milliseconds / 1000
        for output, delay in said.latency.items()
        for since, spread in (("append", delay.appended_ms), ("received", delay.received_ms))
        if spread is not None
        for quantile, milliseconds in (("0.5", spread.p50), ("0.95", spread.p95), ("0.99", spread.p99))
    }
