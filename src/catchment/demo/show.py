"""The demo's evening: what is said while it starts, what is watched while it runs, and how it ends.

Says each stage once, with the seconds since the start, so that nobody wonders whether anything happens. Knows the stage
and the trials; printing is given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from catchment.demo.stage import Stage
from catchment.demo.trials import Trials
from catchment.device.control import Control
from catchment.errors import PeerError
from catchment.gateway.page.accounts import OPERATOR

LOOK_S = 0.25


class Show:
    """Runs a stage until it is told to stop."""

    def __init__(self, stage: Stage, *, say: Callable[[str], None]) -> None:
        self._stage = stage
        self._say_line = say
        self._begun_s = time.monotonic()
        self._stopping = threading.Event()
        self._said: set[str] = set()

    def stop(self) -> None:
        """End in good order."""
        self._stopping.set()

    def run(self, *, seconds: float | None, open_browser: Callable[[str], Any] | None) -> int:
        """Start, watch, end; the exit code."""
        stage, wanted = self._stage, self._stage.wanted
        self._begun_s = time.monotonic()
        self._say(f"starting a gateway, Spark, and {wanted.devices} devices in {wanted.processes} processes")
        trials = Trials(stage)
        control: Control | None = None
        try:
            stage.open()
        except BaseException:
            stage.close()
            raise
        try:
            self._say("their recordings: tracks that people recorded, and days that a mobility model generates")
            (stage.cloud_data / "levers").mkdir(exist_ok=True)
            control = Control(stage.cloud_data / "levers", trials.ask)
            until_s = None if seconds is None else time.monotonic() + seconds
            while not self._stopping.wait(LOOK_S) and (until_s is None or time.monotonic() < until_s):
                self._watch(open_browser)
                trials.look()
        finally:
            self._say("ending: devices store and send what they have, queries finish their batch")
            if control is not None:
                control.stop()
            trials.close()
            stubborn = stage.close()
            ended = "all processes have ended; what was not sent yet waits in the outboxes of its devices"
            self._say(ended if not stubborn else f"ended by force, for they did not by themselves: {stubborn}")
            self._say(f"`--resume` goes on where this one stopped; what each process said is in {wanted.data}/journals")
        return 0

    def _watch(self, open_browser: Callable[[str], Any] | None) -> None:
        stage, wanted = self._stage, self._stage.wanted
        assert stage.cloud is not None
        for child in (stage.cloud, *stage.fleets):
            if not child.is_running:
                raise PeerError(
                    "E173",
                    f"the demo's process {child.name} has ended",
                    why=child.last_words() or f"it said nothing and returned {child.process.returncode}",
                    fix=f"its whole journal is {child.journal}; `catchment doctor` says what this machine lacks",
                )
        if "ready" not in self._said and stage.health() is not None:
            self._once("ready", f"the page is at {wanted.address}/")
            self._say_accounts()
            if open_browser is not None:
                # The fragment stays in the browser: it fills in the form, and is never sent.
                open_browser(f"{wanted.address}/#sign-in={OPERATOR}:{stage.passwords[OPERATOR]}")
            self._say("Spark is starting; meanwhile devices enrol and send, and the log keeps what they send")
        if "ready" in self._said and "enrolled" not in self._said:
            running = sum(answer.get("running", 0) for answer in stage.ask_fleets({"ask": "status"}))
            if running:
                self._once(f"enrolled {running * 4 // wanted.devices}", f"{running} of {wanted.devices} devices run")
            if running == wanted.devices:
                self._said.add("enrolled")
        status = stage.status()
        if status.get("state") == "running" and set(status["queries"].values()) == {"running"}:
            self._once("spark", "Spark runs the program's cloud part; its first batch takes the longest")
        given = sum(status.get("given", {}).values()) if status.get("state") == "running" else 0
        if given:
            self._once("results", f"first results: {given} so far. Ctrl-C ends everything that was started")

    def _say_accounts(self) -> None:
        for name, password in self._stage.passwords.items():
            what = "the whole fleet" if name == OPERATOR else "their own report"
            self._say_line(f"[demo]            sign in as {name:10} password {password}   ({what})")

    def _once(self, key: str, line: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._say(line)

    def _say(self, line: str) -> None:
        self._say_line(f"[demo] {time.monotonic() - self._begun_s:6.1f} s  {line}")
