"""Many of the demo's devices in one process: their agents turned by one loop, each when it is due.

    python -m catchment.demo.fleet FLEET.json

One process of sixty would keep a core busy with nothing but waiting for disks; one for each would need sixty
interpreters. What happens outside the loop (an answer, a signal, a question) comes in by one queue. At SIGTERM every
device stores what it has, sends what there is time for, and says goodbye.
"""

from __future__ import annotations

import heapq
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from catchment.demo.phone import Cast, Phone, open_phone
from catchment.device.clock import SystemClock
from catchment.device.control import Answer, Control, Question
from catchment.device.journal import Journal
from catchment.device.transport import Reply
from catchment.program_file import load_program

GOODBYE_S = 6.0
REST_S = 0.5


class Playing(msgspec.Struct, frozen=True):
    """How the mobility model is played: see examples/peir/mobility.py."""

    module: str
    seed: int
    speed: str
    tracks: str
    days: int
    rests: float


class Fleet(msgspec.Struct, frozen=True):
    """What a process of devices is told."""

    name: str
    home: str
    """Its own directory, with the socket where it is asked."""
    data: str
    """Where its devices keep themselves."""
    gateway: str
    program: str
    mobility: Playing
    devices: dict[int, tuple[str, str]]
    """By number: the device's name and its token."""


class Loop:
    """Turns the agents of one process."""

    def __init__(self, told: Fleet) -> None:
        self._told = told
        self._clock = SystemClock()
        self._journal = Journal(sys.stderr, self._clock.wall_us)
        self._things: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._phones: dict[str, Phone] = {}
        self._due: list[tuple[int, str]] = []
        self._wakes: dict[str, int] = {}

    def stop(self, *signal_and_frame: object) -> None:
        """End in good order."""
        self._stopping.set()
        self._things.put(None)

    def run(self) -> None:
        """Until told to stop."""
        Path(self._told.home).mkdir(parents=True, exist_ok=True)
        control = Control(Path(self._told.home), self._ask)
        arrivals = threading.Thread(target=self._arrive, name="arrivals", daemon=True)
        arrivals.start()
        while not self._stopping.is_set():
            self._turn()
            self._wait()
        control.stop()
        arrivals.join(timeout=5.0)
        self._say_goodbye()

    # -- devices come ----------------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        """One after the other, beside the loop: those that are there already go on meanwhile."""
        for cast in self._cast():
            if self._stopping.is_set():
                return
            phone = open_phone(
                cast,
                Path(self._told.data),
                self._told.gateway,
                clock=self._clock,
                journal=self._journal,
                put=self._answered,
                stopping=self._stopping,
            )
            if phone is not None:
                self._things.put(lambda phone=phone: self._joined(phone))  # type: ignore[misc]

    def _cast(self) -> Iterator[Cast]:
        """How each device of this process is played, one after the other as its recordings are written."""
        playing = self._told.mobility
        load_program(self._told.program)  # its folder is where the mobility model is
        model: Any = __import__(playing.module)
        folder = Path(self._told.data).parent / "recordings"
        made = model.devices(
            len(self._told.devices),
            playing.seed,
            folder,
            speed=playing.speed,
            tracks=Path(playing.tracks),
            numbers=sorted(self._told.devices),
            days=playing.days,
            rests=playing.rests,
        )
        for number, (_, _, sensors) in zip(sorted(self._told.devices), made, strict=True):
            yield Cast(*self._told.devices[number], sensors)

    def _joined(self, phone: Phone) -> None:
        self._phones[phone.name] = phone
        self._plan(phone.name, self._clock.reading_us())

    # -- the loop --------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        now_us = self._clock.reading_us()
        while self._due and self._due[0][0] <= now_us:
            at_us, name = heapq.heappop(self._due)
            if self._wakes.get(name) != at_us:
                continue  # it was woken before, and planned anew
            phone = self._phones[name]
            if phone.back_us is not None and phone.back_us <= now_us:
                phone.mend()
            wake_us = phone.agent.turn()
            # A reading that is due in a millisecond is taken with the next ones: a turn costs more than a reading.
            self._plan(name, max(now_us + 50_000, wake_us or now_us + 1_000_000))

    def _plan(self, name: str, at_us: int) -> None:
        self._wakes[name] = at_us
        heapq.heappush(self._due, (at_us, name))

    def _wait(self) -> None:
        rest_s = REST_S
        if self._due:
            rest_s = min(REST_S, max(0.0, (self._due[0][0] - self._clock.reading_us()) / 1e6))
        try:
            thing = self._things.get(timeout=rest_s) if rest_s > 0 else self._things.get_nowait()
            while True:
                if thing is not None:
                    thing()
                thing = self._things.get_nowait()
        except queue.Empty:
            return

    def _answered(self, name: str, reply: Reply) -> None:
        def take() -> None:
            self._phones[name].agent.answered(reply)
            if not self._stopping.is_set():
                self._plan(name, self._clock.reading_us())

        self._things.put(take)

    # -- questions -------------------------------------------------------------------------------------------------

    def _ask(self, question: Question, answers: queue.SimpleQueue[Answer]) -> None:
        self._things.put(lambda: answers.put(self._answer(question)))

    def _answer(self, question: Question) -> Answer:
        now_us = self._clock.reading_us()
        match question:
            case {"ask": "status"}:
                return self._status()
            case {"ask": "cut", "devices": [*names], "seconds": float() | int() as seconds}:
                for name in names:
                    self._phones[name].cut(now_us + round(seconds * 1e6))
                return {"cut": len(names)}
            case {"ask": "mend"}:
                for phone in self._phones.values():
                    phone.mend()
                return {}
            case {"ask": "burst", "seconds": float() | int() as seconds}:
                for name, phone in self._phones.items():
                    phone.agent.running.schedule.hurry(round(seconds * 1e6))
                    self._plan(name, now_us)
                return {"hurried": len(self._phones)}
            case {"ask": "numbered"}:
                return {"numbered": {k: n for phone in self._phones.values() for k, n in phone.numbered().items()}}
            case {"ask": "results"}:
                return {"results": {name: phone.results() for name, phone in self._phones.items()}}
            case _:
                return {"error": f"this is no question of a fleet: {question}"}

    def _status(self) -> Answer:
        phones = self._phones.values()
        return {
            "devices": len(self._told.devices),
            "running": len(self._phones),
            "cut": sorted(phone.name for phone in phones if phone.link.is_cut),
            "names": sorted(self._phones),
            "linked": sorted(phone.name for phone in phones if phone.is_linked),
            "taken": sum(phone.agent.taken for phone in phones),
            "waiting": sum(phone.agent.backlog() for phone in phones),
        }

    # -- the end ---------------------------------------------------------------------------------------------------

    def _say_goodbye(self) -> None:
        """Store everything, send what there is time for, and say that the devices are leaving."""
        self._due.clear()
        until_s = time.monotonic() + GOODBYE_S
        leaving = set(self._phones)
        for phone in self._phones.values():
            phone.mend()
            phone.agent.commit()
        while leaving or any(map(self._is_talking, self._phones.values())):
            for name in [name for name in leaving if not self._is_talking(self._phones[name])]:
                self._phones[name].agent.say_goodbye()
                leaving.discard(name)
            if time.monotonic() >= until_s:
                break
            self._wait()
        waiting = sum(phone.agent.backlog() for phone in self._phones.values())
        for phone in self._phones.values():
            phone.link.stop()
            phone.outbox.close()
        self._journal.say("fleet stopped", fleet=self._told.name, waiting=waiting)

    @staticmethod
    def _is_talking(phone: Phone) -> bool:
        return phone.agent.correspondent is not None and phone.agent.correspondent.is_waiting


def main() -> int:
    """Run the devices that the file names."""
    # The lowest priority of all that the demo starts: what is watched is the gateway and the cloud.
    os.nice(5)
    loop = Loop(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Fleet))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, loop.stop)
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
