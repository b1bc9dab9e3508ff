"""The demo's trials: what the page's buttons break, for real, and what is seen of the recovery.

    cut        every third device loses its network for a while; what it reads waits in its outbox
    kill       one of Spark's executors is ended with SIGKILL, with all that it held
    burst      every device plays the next minutes of its recording at once
    certify    the log is computed again by the reference engine, and compared with what devices hold

A trial begins with a line, and ends with one that says after how long everything was as before. Questions come from the
gateway's page over a socket, which only this user may open. Knows the stage; not who asks.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from catchment.demo.processes import Child
from catchment.demo.stage import Stage
from catchment.device.control import Answer, Question

CUT_S = 15.0
BURST_S = 900.0
"""So much of its recording each device plays at once: of life, not of the demo."""
LOOK_S = 1.0
STORY_MAX = 50
GIVEN_UP_S = 300.0

LEVERS = (
    ("cut", "Disconnect a third", "Every third device loses its network for 15 seconds. It goes on reading."),
    ("kill", "Kill an executor", "One of Spark's two executor processes is ended with SIGKILL, in the middle of work."),
    ("burst", "Send a burst", "Every device reads the next 15 minutes of its life at once, and sends them."),
    (
        "certify",
        "Issue the certificate",
        "The whole log is computed again by the reference engine, and compared result by result.",
    ),
)


@dataclass(slots=True)
class Trial:
    """One that goes on: `is_over` says what there is to say at its end, or nothing yet."""

    name: str
    since_s: float
    is_over: Callable[[], str | None]


@dataclass(slots=True)
class Fleets:
    """What all processes of devices said when they were last asked."""

    names: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    linked: set[str] = field(default_factory=set)
    waiting: int = 0
    taken: int = 0


class Trials:
    """See the module."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._lock = threading.Lock()
        self._fleets = Fleets()
        self._running: dict[str, Trial] = {}
        self._story: list[dict[str, Any]] = []
        self._looked_s = 0.0
        self._certifier: Child | None = None
        self._certificate: dict[str, Any] | None = None

    def close(self) -> None:
        """End what a trial has started."""
        if self._certifier is not None and self._certifier.is_running:
            self._certifier.process.kill()
            self._certifier.process.wait()

    def ask(self, question: Question, answers: queue.SimpleQueue[Answer]) -> None:
        """From the page: a trial to begin, or what there is to see."""
        with self._lock:
            match question:
                case {"pull": str() as name}:
                    answers.put(self._pull(name))
                case _:
                    answers.put(self._state())

    def look(self) -> None:
        """Follow what goes on: call it a few times a second."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        said = self._stage.ask_fleets({"ask": "status"})
        with self._lock:
            self._fleets = Fleets(
                names=sorted(name for one in said for name in one.get("names", ())),
                cut=sorted(name for one in said for name in one.get("cut", ())),
                linked={name for one in said for name in one.get("linked", ())},
                waiting=sum(one.get("waiting", 0) for one in said),
                taken=sum(one.get("taken", 0) for one in said),
            )
            for trial in list(self._running.values()):
                words = trial.is_over()
                if words is None and trial.name != "certify" and now_s - trial.since_s > GIVEN_UP_S:
                    words = f"not yet as before after {GIVEN_UP_S:.0f} s"
                if words is not None:
                    del self._running[trial.name]
                    self._say(trial.name, "end", f"{words} ({now_s - trial.since_s:.1f} s)")

    # -- what is asked ---------------------------------------------------------------------------------------------

    def _state(self) -> Answer:
        return {
            "levers": [
                {"name": name, "title": title, "text": text, "busy": name in self._running}
                for name, title, text in LEVERS
            ],
            "story": self._story[-STORY_MAX:],
            "devices": len(self._fleets.names),
            "cut": self._fleets.cut,
            "waiting": self._fleets.waiting,
            "executors": self._stage.executors(),
            "certificate": self._certificate,
        }

    def _pull(self, name: str) -> Answer:
        begin = {"cut": self._cut, "kill": self._kill, "burst": self._burst, "certify": self._certify}.get(name)
        if begin is None:
            return {"error": f"there is no lever {name}"}
        if name in self._running:
            return {"error": "this goes on already: wait for its end"}
        begun = begin()
        if isinstance(begun, str):
            return {"error": begun}
        self._running[name] = begun
        return self._state()

    # -- trials ----------------------------------------------------------------------------------------------------

    def _cut(self) -> Trial | str:
        chosen = self._fleets.names[::3]
        if not chosen:
            return "no device runs yet"
        for home in self._fleet_homes():
            there = [name for name in chosen if name in home.names]
            home.ask({"ask": "cut", "devices": there, "seconds": CUT_S})
        before = self._fleets.waiting
        self._say("cut", "begin", f"{len(chosen)} of {len(self._fleets.names)} devices have no network")
        peak = before
        back = False

        def is_over() -> str | None:
            nonlocal peak, back
            peak = max(peak, self._fleets.waiting)
            if not back and not self._fleets.cut and time.monotonic() - since_s > CUT_S / 2:
                back = True
                self._say("cut", "turn", f"the network is back; {peak:,} readings waited on devices")
            if back and set(chosen) <= self._fleets.linked and self._is_usual(before):
                return "outboxes have drained: every reading is in the log"
            return None

        since_s = time.monotonic()
        return Trial("cut", since_s, is_over)

    def _kill(self) -> Trial | str:
        executors = self._stage.executors()
        if not executors:
            return "Spark has no executor at the moment"
        victim, rest = executors[-1], set(executors)
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        self._say("kill", "begin", f"executor process {victim} got SIGKILL")
        since_s = time.monotonic()
        given: int | None = None

        def is_over() -> str | None:
            nonlocal given
            fresh = set(self._stage.executors()) - rest
            if given is None and fresh:
                given = self._given()
                self._say("kill", "turn", f"Spark started executor process {min(fresh)} in its place")
            if given is not None and self._given() > given:
                return "results flow again, each once: state came back from its checkpoint"
            return None

        return Trial("kill", since_s, is_over)

    def _burst(self) -> Trial | str:
        if not self._fleets.names:
            return "no device runs yet"
        before, taken = self._fleets.waiting, self._fleets.taken
        for home in self._fleet_homes():
            home.ask({"ask": "burst", "seconds": BURST_S})
        self._say("burst", "begin", f"{len(self._fleets.names)} devices read {BURST_S / 60:.0f} minutes at once")
        peak, told, since_s = 0, False, time.monotonic()
        drained: dict[str, Any] | None = None

        def is_over() -> str | None:
            nonlocal peak, told, drained
            peak = max(peak, self._fleets.waiting)
            if not told and self._fleets.waiting < peak:
                told = True
                self._say("burst", "turn", f"{self._fleets.taken - taken:,} readings; {peak:,} waited at the most")
            flow = self._stage.status().get("flow", {})
            if told and drained is None and self._is_usual(before):
                drained = flow
            # Of what was logged until then speaks only a batch that ended after it.
            if drained not in (None, flow) and all(one["behind_bytes"] == 0 for one in flow.values()):
                return "all of it is in the log, and Spark is level with the log"
            return None

        return Trial("burst", since_s, is_over)

    def _certify(self) -> Trial | str:
        if self._fleets.cut:
            return f"{len(self._fleets.cut)} devices have no network: what they hold cannot be compared yet"
        path = self._stage.wanted.data / "certificate.json"
        path.unlink(missing_ok=True)
        self._certificate = None
        words = ["catchment.demo.certificate", str(self._stage.wanted.data), str(self._stage.wanted.examples)]
        certifier = Child("certificate", words, self._stage.wanted.data / "journals" / "certificate.log")
        self._certifier = certifier
        self._say("certify", "begin", "the log is read from its beginning and computed again")

        def is_over() -> str | None:
            if certifier.is_running:
                return None
            try:
                self._certificate = msgspec.json.decode(path.read_bytes())
            except (OSError, msgspec.DecodeError):
                return f"there is no certificate: {certifier.last_words(1)}"
            assert self._certificate is not None
            return "the verifier says KEPT" if self._certificate["kept"] else "the verifier says BROKEN"

        return Trial("certify", time.monotonic(), is_over)

    # -- how -------------------------------------------------------------------------------------------------------

    def _is_usual(self, before: int) -> bool:
        """Whether no more readings wait on devices than do while they gather for a moment."""
        return self._fleets.waiting <= max(before * 1.5, 3 * len(self._fleets.names))

    def _given(self) -> int:
        return sum(self._stage.status().get("given", {}).values())

    def _fleet_homes(self) -> list[_FleetHome]:
        found = []
        for fleet in self._stage.fleets:
            home = _FleetHome(self._stage, fleet)
            home.names = set((home.ask({"ask": "status"}) or {}).get("names", ()))
            found.append(home)
        return found

    def _say(self, trial: str, step: str, text: str) -> None:
        self._story.append({"at_ms": time.time_ns() // 1_000_000, "trial": trial, "step": step, "text": text})


class _FleetHome:
    """One process of devices, as it is asked."""

    def __init__(self, stage: Stage, fleet: Child) -> None:
        self._directory = stage.wanted.data / "fleets" / fleet.name
        self.names: set[str] = set()

    def ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """Its answer, if it gives one."""
        from catchment.device.control import ask

        return ask(self._directory, question)
