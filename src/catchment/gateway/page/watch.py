"""The watch: what there is to see of a gateway and its programs, looked at once a second and kept for some minutes.

Rates are differences of what the gateway counts; delays and the backlog are the supervisor's own word; places, streams
and reports come from those who follow the log and the downlink. Each look has a number, so that a browser is sent what
is new to it. Knows the gateway's service; nothing of browsers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from catchment.errors import CatchmentError
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.page.follower import Follower
from catchment.gateway.page.levers import Levers
from catchment.gateway.page.outline import outline
from catchment.gateway.page.reports import Reports
from catchment.gateway.service import Service
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.plan.physical import Plan

EVERY_S = 1.0
KEPT = 300
"""So many looks are kept for the charts: five minutes."""
ERRORS_KEPT = 50
FORGET_LOOKS = 30
"""So often it is looked whether somebody was forgotten, whose places and results are then let go of."""
QUIET_S = 30.0
"""After so long without anybody who looks, the log is not followed until somebody does."""


class Recent(logging.Handler):
    """The latest warnings and errors of this process's journal."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: deque[dict[str, Any]] = deque(maxlen=ERRORS_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        fields = {key: str(value)[:300] for key, value in getattr(record, "fields", {}).items()}
        self.add(record.levelname.lower(), record.getMessage()[:300], fields)

    def add(self, level: str, event: str, fields: dict[str, str]) -> None:
        """Keep what was learned elsewhere."""
        self.lines.append({"at_ms": time.time_ns() // 1_000_000, "level": level, "event": event, "fields": fields})


class Watch:
    """Looks while it runs. `moved` is set, and made anew, with each look."""

    def __init__(self, service: Service) -> None:
        data = service.options.data
        self.number = 0
        self.moved = asyncio.Event()
        self.history: deque[dict[str, Any]] = deque(maxlen=KEPT)
        """What changes each second, for the charts."""
        self.recent = Recent()
        self.levers = Levers(data / "levers")
        self.follower = Follower(LocalDisk(data / "log"), lambda program: _schemas(self.plan(program)))
        self.trials: dict[str, Any] | None = None
        self._service = service
        self._data: Path = data
        self._plans: dict[str, tuple[str, Plan]] = {}
        self._downlink = open_downlink(data, durable=False)
        self.reports = Reports(self._downlink, self.plan)
        self._task: asyncio.Task[None] | None = None
        self._asked_s = 0.0
        self._counted: tuple[float, dict[str, float]] | None = None
        self._states: dict[str, dict[str, Any]] = {}
        self._refused: dict[str, float] = {}

    def begin(self) -> None:
        """Look from now on."""
        logging.getLogger().addHandler(self.recent)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        """Look no more."""
        logging.getLogger().removeHandler(self.recent)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._downlink.close()

    def asked(self) -> None:
        """Somebody looks."""
        self._asked_s = time.monotonic()

    def plan(self, program: str) -> Plan | None:
        """The program's present plan, if there is one that can be read."""
        plans = self._service.stores.plans
        try:
            fingerprint = plans.current(program)
            if fingerprint is None:
                return None
            known = self._plans.get(program)
            if known is None or known[0] != fingerprint:
                known = self._plans[program] = (fingerprint, document.read(plans.plan(program).body))
            return known[1]
        except (CatchmentError, OSError):
            return None

    def programs(self) -> list[str]:
        """Those that were run on this gateway's directory."""
        return sorted(path.parent.name for path in (self._data / "programs").glob("*/status.json"))

    def outlines(self) -> list[dict[str, Any]]:
        """The plans, to be drawn."""
        return [outline(plan) for program in self.programs() if (plan := self.plan(program)) is not None]

    def now(self) -> dict[str, Any]:
        """What there is to see of the fleet now, but for the charts and the map."""
        metrics = self._service.metrics
        return {
            "health": {**self._service.health(), "ready": self._service.ready()},
            "programs": self._states,
            "streams": self._streams(),
            "results": _by_label(metrics.results.values),
            "refused": _by_label(metrics.refused.values),
            "errors": list(self.recent.lines),
            "trials": self.trials,
            "partial": self.follower.skipped,
            "devices": {
                "enrolled": len(self._service.stores.enrolment.devices()),
                "connected": self._service.presence.connected,
                "seen": len(self._service.presence.there()),
            },
        }

    async def _run(self) -> None:
        while True:
            started = time.monotonic()
            try:
                await self._look()
            except Exception:
                # The page is no reason for a gateway to stumble; its trace is in the journal.
                logging.getLogger("catchment.gateway").exception("the page could not look")
            await asyncio.sleep(max(0.1, EVERY_S - (time.monotonic() - started)))

    async def _look(self) -> None:
        is_watched = time.monotonic() - self._asked_s < QUIET_S
        await asyncio.to_thread(self._look_aside, is_watched)
        if is_watched:
            self.trials = await self.levers.state()
        self._count()
        self.number += 1
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()

    def _look_aside(self, is_watched: bool) -> None:
        """What takes reading of files: in a thread."""
        self.reports.look()
        if self.number % FORGET_LOOKS == 0:
            known = self._service.stores.enrolment.devices()
            names = {device.device for device in known}
            self.reports.keep({device.user for device in known}, names)
            self.follower.keep(names)
        if is_watched:
            self.follower.look()
        for program in self.programs():
            try:
                said = msgspec.json.decode((self._data / "programs" / program / "status.json").read_bytes())
            except (OSError, msgspec.DecodeError):
                continue
            before = self._states.get(program, {})
            for query, state in said.get("queries", {}).items():
                if state not in ("running", "starting", "stopped") and before.get("queries", {}).get(query) != state:
                    self.recent.add("warning", "query failed", {"query": query, "why": str(state)[:300]})
            self._states[program] = said

    def _count(self) -> None:
        metrics = self._service.metrics
        now_s = time.monotonic()
        counted = {
            "elements": metrics.elements.total(),
            "uploads": metrics.uploads.total(),
            "bytes": metrics.payload_bytes.total(),
            "results": metrics.results.total(),
            "requests": metrics.requests.total(),
            "given": float(sum(n for said in self._states.values() for n in said.get("given", {}).values())),
        }
        if self._counted is not None:
            before_s, before = self._counted
            took_s = max(0.01, now_s - before_s)
            rates = {name: max(0.0, round((value - before[name]) / took_s, 2)) for name, value in counted.items()}
            self.history.append({"at_ms": time.time_ns() // 1_000_000, **rates, **self._standing()})
        self._counted = (now_s, counted)
        for code, value in _by_label(metrics.refused.values).items():
            if value > self._refused.get(code, 0) and not code.startswith("G6"):
                self.recent.add("warning", "refused", {"code": code, "times": str(int(value))})
            self._refused[code] = value

    def _standing(self) -> dict[str, Any]:
        said = [one for one in self._states.values() if one.get("state") == "running"]
        newest = [spread for one in said for spread in one.get("newest", {}).values()]
        return {
            "behind_bytes": sum(flow["behind_bytes"] for one in said for flow in one.get("flow", {}).values()),
            "batch_ms": max([flow["batch_ms"] for one in said for flow in one.get("flow", {}).values()], default=None),
            "p50_ms": max([spread["p50"] for spread in newest], default=None),
            "p95_ms": max([spread["p95"] for spread in newest], default=None),
            "connected": self._service.presence.connected,
            "waiting": None if self.trials is None else self.trials.get("waiting"),
        }

    def _streams(self) -> list[dict[str, Any]]:
        return [
            {
                "stream": stream,
                "elements": traffic.elements,
                "filtered": traffic.filtered,
                "plain_bytes": traffic.plain_bytes,
                "sent_bytes": traffic.sent_bytes,
                "uploads": traffic.uploads,
                "lost": traffic.lost,
                "durable": self._service.metrics.elements.values.get((stream,), 0),
            }
            for stream, traffic in sorted(self.follower.streams.items())
        ]


def _schemas(plan: Plan | None) -> dict[str, Any]:
    return {} if plan is None else dict(plan.schemas)


def _by_label(values: dict[tuple[str, ...], float]) -> dict[str, float]:
    return {labels[0]: value for labels, value in sorted(values.items())}
