"""Metrics: what happened, counted, and rendered as Prometheus reads it.

Every metric is declared in `GatewayMetrics`, with its help, so that the reference can list them; values that are
simply there (a queue's length, a disk's free bytes) are asked for when somebody looks. No I/O; any thread may count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class Counter:
    """Only goes up.

    >>> frames = Counter("frames_total", "Frames.", ("kind",))
    >>> frames.add("data"); frames.add("data", by=2)
    >>> list(frames.lines())[-1]
    'frames_total{kind="data"} 3'
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: dict[tuple[str, ...], float] = field(default_factory=dict)

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0) + by

    def total(self) -> float:
        """Over all labels."""
        return sum(self.values.values())

    def lines(self) -> Iterator[str]:
        """Prometheus text."""
        yield from _head(self.name, self.help, "counter")
        values = self.values if self.labels else {(): 0, **self.values}
        for labels, value in sorted(values.items()):
            yield f"{self.name}{_labels(zip(self.labels, labels, strict=True))} {_number(value)}"


@dataclass(slots=True)
class Gauge:
    """What is there now, asked for when somebody looks: a number, or one per label values."""

    name: str
    help: str
    labels: tuple[str, ...]
    ask: Callable[[], Mapping[tuple[str, ...], float]]

    def lines(self) -> Iterator[str]:
        """Prometheus text."""
        yield from _head(self.name, self.help, "gauge")
        for labels, value in sorted(self.ask().items()):
            yield f"{self.name}{_labels(zip(self.labels, labels, strict=True))} {_number(value)}"


@dataclass(slots=True)
class Histogram:
    """Durations, in seconds."""

    name: str
    help: str
    counts: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))
    sum: float = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Count a duration."""
        self.counts[bisect_left(_SECONDS, seconds)] += times
        self.sum += seconds * times

    def lines(self) -> Iterator[str]:
        """Prometheus text."""
        yield from _head(self.name, self.help, "histogram")
        below = 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self.counts, strict=True):
            below += count
            yield f'{self.name}_bucket{{le="{bound}"}} {below}'
        yield f"{self.name}_sum {_number(self.sum)}"
        yield f"{self.name}_count {below}"


class GatewayMetrics:
    """All that a gateway counts."""

    def __init__(self) -> None:
        counter = Counter
        self.frames = counter("catchment_gateway_frames_total", "Frames received, by kind.", ("kind",))
        self.uploads = counter("catchment_gateway_uploads_total", "Uploads made durable.")
        self.elements = counter("catchment_gateway_elements_total", "Elements made durable, by stream.", ("stream",))
        self.payload_bytes = counter("catchment_gateway_payload_bytes_total", "Bytes of payload made durable.")
        self.lost = counter(
            "catchment_gateway_lost_elements_total",
            "Elements that devices report as given up, by stream and reason.",
            ("stream", "reason"),
        )
        self.duplicates = counter("catchment_gateway_duplicates_total", "Uploads that were already durable.")
        self.refused = counter("catchment_gateway_refused_total", "Frames and requests refused, by code.", ("code",))
        self.quarantined = counter(
            "catchment_gateway_quarantined_total",
            "Inputs put into quarantine, by code and whether bytes were kept.",
            ("code", "kept"),
        )

        self.results = counter("catchment_gateway_results_total", "Results handed to devices, by stream.", ("stream",))
        self.results_expired = counter(
            "catchment_gateway_results_expired_total", "Results let go because a device did not fetch them in time."
        )
        self.requests = counter(
            "catchment_gateway_http_requests_total", "HTTP requests, by path and status.", ("path", "status")
        )
        self.acknowledge = Histogram(
            "catchment_gateway_acknowledge_seconds", "From the arrival of an upload to its being durable."
        )
        self.gauges: list[Gauge] = []

    def gauge(
        self, name: str, text: str, labels: tuple[str, ...], ask: Callable[[], Mapping[tuple[str, ...], float]]
    ) -> None:
        """Show what `ask` says whenever somebody looks."""
        self.gauges.append(Gauge(f"catchment_gateway_{name}", text, labels, ask))

    def text(self) -> str:
        """The page."""
        counted = [value for value in vars(self).values() if isinstance(value, Counter | Histogram)]
        return "\n".join([line for metric in (*counted, *self.gauges) for line in metric.lines()]) + "\n"


def _head(name: str, text: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _labels(pairs: Iterable[tuple[str, str]]) -> str:
    text = ",".join([f'{name}="{_escaped(value)}"' for name, value in pairs])
    return f"{{{text}}}" if text else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
