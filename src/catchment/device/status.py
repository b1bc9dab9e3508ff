"""What there is to say about a device: for people and for tools, as plain data.

`live` asks a running agent, `at_rest` reads the directory of a device that does not run. Both change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from catchment.device import remembered
from catchment.device.agent import Agent
from catchment.device.ledger import PLAN_KEY
from catchment.errors import ProgramError
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.plan.portable import outgoing
from catchment.program.site import DEVICE
from catchment.sync.frame import Lost
from catchment.sync.outbox import Result
from catchment.sync.outbox.database import Database, connect_to, is_sound
from catchment.sync.outbox.inbox import Inbox
from catchment.sync.outbox.queue import Queue
from catchment.sync.outbox.register import Register

RESULTS_AT_ONCE = 1000
_Results = Callable[[str, int], Iterable[Result]]


def live(agent: Agent) -> dict[str, Any]:
    """The status of a running device."""
    now_us = agent.clock.reading_us()
    correspondent = agent.correspondent
    used = agent.meter.used(now_us)
    return {
        "running": True,
        "plan": "" if correspondent is None else correspondent.plan_tag,
        "program": agent.running.plan.program,
        "connected": correspondent is not None and correspondent.exchange.is_connected,
        "gateway": None if correspondent is None else correspondent.gateway,
        "last_answer_s_ago": None
        if correspondent is None or correspondent.last_heard_us is None
        else round((now_us - correspondent.last_heard_us) / 1e6, 3),
        "epoch": str(agent.outbox.epoch),
        "health": agent.outbox.health.value,
        "streams": _streams(agent.outbox.streams(), agent.outbox.size, agent.outbox.lost),
        "taken": agent.taken,
        "quarantined": agent.quarantined,
        "refused": agent.ledger.refused,
        "given_up": agent.ledger.given_up + agent.outbox.uncounted,
        "clock": {
            "offset_us": agent.keeper.offset_us,
            "error_us": agent.keeper.error_us,
            "bridged": agent.keeper.bridged,
            "wall_error_us": agent.keeper.wall_error_us,
        },
        "surroundings": msgspec.to_builtins(agent.around),
        "traffic": {}
        if correspondent is None
        else {
            "requests": correspondent.requests,
            "sent_bytes": correspondent.bytes_sent,
            "received_bytes": correspondent.bytes_received,
        },
        "energy_model": {
            "watts": round(used.watts, 4),
            "base_j": round(used.base_j, 3),
            "sensors_j": {kind: round(joules, 3) for kind, joules in used.sensors_j.items()},
            "radio_j": round(used.radio_j, 3),
        },
    }


def answer(agent: Agent, question: Mapping[str, Any]) -> dict[str, Any]:
    """What a running device answers."""
    match question.get("ask"):
        case "status":
            return live(agent)
        case "results":
            after = int(question.get("after", 0))
            return {"results": results(agent.running.plan, agent.outbox_results, after, question.get("stream"))}
        case asked:
            return {"error": f"{asked!r} is none of: status, results"}


def results(plan: Plan, find: _Results, after: int, only: str | None) -> list[dict[str, Any]]:
    """Results that came down, by the order in which they came."""
    found: list[dict[str, Any]] = []
    names = [name for part in plan.at(DEVICE) for name in part.inputs if only in (None, name)]
    if only is not None and not names:
        raise ProgramError(
            "D650",
            f"no results of {only!r} come to this device",
            why=f"those that do are: {', '.join(n for p in plan.at(DEVICE) for n in p.inputs) or 'none'}",
            fix="name one of them, or leave --stream out",
        )
    for name in names:
        fields = plan.schemas[plan.sync(name).schema].fields
        for result in find(f"{plan.program}/{name}", after):
            row = {column.name: outgoing(value, column.type) for column, value in zip(fields, result.row, strict=False)}
            found.append({"id": result.id, "stream": name, "row": row})
    return sorted(found, key=lambda one: int(one["id"]))[:RESULTS_AT_ONCE]


class AtRest:
    """The directory of a device that does not run, opened to be looked at."""

    def __init__(self, outbox: Path) -> None:
        if not outbox.exists():
            raise ProgramError(
                "D651",
                f"there is no device in {outbox.parent}",
                why=f"it has no {outbox.name}",
                fix="name its directory: --data DIR, as in catchment device run --data DIR",
            )
        self._database = Database(connect_to(outbox))
        register = Register(self._database)
        self._queue = Queue(self._database, register, -1)
        self._inbox = Inbox(self._database, register)

    def close(self) -> None:
        """Let go of it."""
        self._database.close()

    def plan(self) -> Plan | None:
        """The plan that ran last."""
        stored = self._stored()
        return None if stored is None else document.read(stored.document)

    def status(self) -> dict[str, Any]:
        """The status of a device that does not run."""
        stored = self._stored()
        return {
            "running": False,
            "plan": "" if stored is None else stored.tag,
            "health": self._database.health.value,
            "streams": _streams(self._queue.names(), self._queue.size, self._queue.lost),
        }

    def results(self, stream: str, after: int) -> Iterable[Result]:
        """Results that came down."""
        return self._inbox.results(stream, after, RESULTS_AT_ONCE)

    def _stored(self) -> remembered.StoredPlan | None:
        row = self._database.connection.execute("SELECT * FROM state WHERE key = ?", (PLAN_KEY,)).fetchone()
        return remembered.plan_of(row[1]) if row is not None and is_sound("state", row) else None


def _streams(names: Iterable[str], size: Callable[[str], tuple[int, int]], lost: Callable[[str], Lost]) -> list[Any]:
    """What waits of each stream, and what was given up of it."""
    listed = []
    for name in names:
        records, waiting_bytes = size(name)
        given_up = lost(name)
        listed.append(
            {
                "stream": name,
                "backlog": records,
                "backlog_bytes": waiting_bytes,
                "lost": {"refused": given_up.refused, "dropped": given_up.dropped, "thinned": given_up.thinned},
            }
        )
    return listed
